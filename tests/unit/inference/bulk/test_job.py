"""The contract of shards, without Ray: complete or absent, once, of one model, with errors."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from tests.unit.inference.bulk.conftest import contents

from regard.cli import run_command
from regard.errors import DataError, Interrupted, RunError, SettingError
from regard.inference.bulk import BulkOptions, answer_files, ray_engine
from regard.inference.bulk.engines import _interrupted_by_sigterm, local_engine
from regard.runs import Run

NAMES = ["a.txt", "b.txt", "c.tsv", "d.txt.gz", "deep/e.jsonl"]


@pytest.fixture
def out(tmp_path):
    return tmp_path / "answers"


def test_each_file_has_its_answers_as_the_command_gives_them(
    translator, files, patterns, out, capsys, one_thread
):
    report = answer_files(translator, patterns, out)
    assert (report.answered, report.skipped, report.errors, report.failed) == (5, 0, 0, [])
    assert report.rows == 6 + 8 + 6 + 3 + 3
    answers = contents(out)
    assert [*answers] == [f"{name}.jsonl" for name in NAMES]
    for name in NAMES:
        capsys.readouterr()
        command = ["predict", str(translator), str(files / name), "--output-format", "jsonl"]
        assert run_command(command) == 0
        assert capsys.readouterr().out.encode() == answers[f"{name}.jsonl"]


def test_as_text_and_by_command(translator, files, out, capsys):
    words = ["predict", str(translator), "--input", f"{files}/*.txt", f"{files}/c.tsv"]
    assert run_command([*words, "--output", str(out)]) == 0
    assert "answered 3 files, 20 rows; in" in capsys.readouterr().err
    assert [*contents(out)] == ["a.txt.txt", "b.txt.txt", "c.tsv.txt"]
    assert run_command(["predict", str(translator), str(files / "b.txt")]) == 0
    assert contents(out)["b.txt.txt"].decode() == capsys.readouterr().out
    assert run_command([*words, "--output", str(out)]) == 0
    assert "3 were answered before" in capsys.readouterr().err


def test_later_runs_answer_only_what_is_absent_or_changed(translator, files, patterns, out):
    answer_files(translator, [files / "a.txt", files / "c.tsv"], out)
    report = answer_files(translator, patterns, out)
    assert (report.answered, report.skipped) == (3, 2)
    whole = contents(out)
    (out / "b.txt.jsonl").unlink()
    written = (out / "a.txt.jsonl").stat().st_mtime_ns
    report = answer_files(translator, patterns, out)
    assert (report.answered, report.skipped) == (1, 4)
    assert contents(out) == whole
    assert (out / "a.txt.jsonl").stat().st_mtime_ns == written
    (files / "a.txt").write_text("ag\n", "utf-8")
    report = answer_files(translator, patterns, out)
    assert (report.answered, report.rows) == (1, 1)
    assert len((out / "a.txt.jsonl").read_bytes().splitlines()) == 1


def read(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_rows_that_cannot_be_answered_are_listed_in_a_file_of_errors(translator, files, out):
    (files / "bad.txt").write_bytes(b"ag\n\xff\xfe\nbh\n")
    records = ['{"source": "ag"}', '{"sauce": "ag"}', "no object"]
    (files / "bad.jsonl").write_text("\n".join(records), "utf-8")
    report = answer_files(translator, [f"{files}/bad.*"], out)
    assert (report.answered, report.rows, report.errors) == (2, 6, 3)
    errors = read(out / "bad.txt.errors.jsonl")
    assert [(each["row"], each["where"]) for each in errors] == [(2, "bad.txt:2")]
    assert "not UTF-8" in errors[0]["problem"]
    errors = read(out / "bad.jsonl.errors.jsonl")
    assert [each["row"] for each in errors] == [2, 3]
    assert len((out / "bad.jsonl.jsonl").read_text("utf-8").splitlines()) == 3
    (files / "bad.txt").write_text("ag\nbh\n", "utf-8")
    answer_files(translator, [f"{files}/bad.*"], out)
    assert not (out / "bad.txt.errors.jsonl").exists()


def test_a_file_that_is_cut_short_leaves_nothing_and_the_others_are_answered(
    translator, files, patterns, out, capsys
):
    packed = files / "d.txt.gz"
    packed.write_bytes(packed.read_bytes()[:-9])
    summary = answer_files(translator, patterns, out)
    assert summary.answered == 4
    assert [report.name for report in summary.failed] == ["d.txt.gz"]
    assert "must be a whole compressed file" in summary.failed[0].problem
    assert [name for name in contents(out) if "d.txt" in name] == []
    words = ["predict", str(translator), "--input", f"{files}/*.gz", "--output", str(out / "x")]
    assert run_command(words) == 2
    message = capsys.readouterr().err
    assert "not answered:" in message
    assert "every file must be readable to its end; 1 of 1 are not" in message


def test_files_that_moved_are_the_same_and_others_of_their_names_are_refused(
    translator, files, out, tmp_path
):
    answer_files(translator, [files / "a.txt"], out)
    moved = tmp_path / "moved"
    moved.mkdir()
    shutil.copy2(files / "a.txt", moved)
    assert answer_files(translator, [moved / "a.txt"], out).skipped == 1
    (moved / "a.txt").write_text("other\n", "utf-8")
    os.utime(moved / "a.txt", ns=(1, 1))
    # The manifest has the new place by now; the old one is another file.
    shutil.copy(moved / "a.txt", files / "a.txt")
    with pytest.raises(RunError, match=r"must hold the answers to .*another file of its name"):
        answer_files(translator, [files / "a.txt"], out)


def test_another_model_is_refused_or_remade(translator, other_translator, files, patterns, out):
    answer_files(translator, patterns, out)
    before = contents(out)
    with pytest.raises(RunError, match=r"the weights of the run are others\. .*anew: --remake"):
        answer_files(other_translator, patterns, out)
    assert contents(out) == before
    report = answer_files(other_translator, patterns, out, remake=True)
    assert report.answered == 5
    assert contents(out).keys() == before.keys()
    assert contents(out) != before
    # Said again, it resumes with what was remade; of another model, other files are removed.
    assert answer_files(other_translator, patterns, out, remake=True).skipped == 5
    answer_files(translator, [files / "a.txt"], out, remake=True)
    assert [*contents(out)] == ["a.txt.jsonl"]


def test_other_options_are_refused(translator, files, out):
    answer_files(translator, [files / "a.txt"], out)
    for options, message in (
        ({"decoding": {"beam_size": 1}}, "decoding.beam_size was 2, now 1"),
        ({"output_format": "text"}, "output_format was 'jsonl', now 'text'"),
        ({"threads": 2}, "threads was 1, now 2"),
    ):
        with pytest.raises(RunError, match=message):
            answer_files(translator, [files / "a.txt"], out, options=BulkOptions(**options))


def test_what_is_remade_is_never_counted_although_it_is_killed_in_between(
    translator, other_translator, files, patterns, out, monkeypatch
):
    answer_files(translator, [files / "b.txt"], out)
    answer_files(translator, patterns, out)

    def killed(*args, **named):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("regard.inference.bulk.job._remove", killed)
        with pytest.raises(KeyboardInterrupt):
            answer_files(other_translator, patterns, out, remake=True)
    assert answer_files(other_translator, patterns, out).answered == 5


def test_a_folder_of_something_else_and_a_damaged_manifest_are_refused(translator, files, out):
    out.mkdir()
    (out / "thesis.tex").write_text("mine")
    with pytest.raises(RunError, match=r"bulk\.json is missing, and it holds thesis\.tex"):
        answer_files(translator, [files / "a.txt"], out)
    assert [path.name for path in out.iterdir() if path.name != "lock"] == ["thesis.tex"]
    (out / "thesis.tex").unlink()
    answer_files(translator, [files / "a.txt"], out)
    manifest = out / "bulk.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"threads": 1', b'"threads": 2'))
    with pytest.raises(RunError, match="must carry the checksum of its content"):
        answer_files(translator, [files / "a.txt"], out)


def test_one_job_at_a_time(translator, files, out):
    def engine(run, options, shards):
        with pytest.raises(RunError, match=r"already in use by process .*choose another: --output"):
            answer_files(translator, [files / "a.txt"], out)
        yield from local_engine(run, options, shards)

    answer_files(translator, [files / "a.txt"], out, engine=engine)


def test_no_files_and_answers_among_them_are_refused(translator, files, out, monkeypatch):
    monkeypatch.chdir(files)
    for inputs, message in (
        ([], "--input must name files to answer; got nothing"),
        (["absent.txt"], r"absent\.txt must be a readable file"),
        (["*.absent"], "must fit some file"),
    ):
        with pytest.raises(DataError, match=message):
            answer_files(translator, inputs, out)
    for folder in (files, files.parent):
        with pytest.raises(SettingError, match=r"--output must be a folder without files to answ"):
            answer_files(translator, [f"{files}/*.txt"], folder)


def test_names_are_from_where_a_pattern_begins_whatever_it_finds(translator, files, out):
    for name in ("de", "fr"):
        (files / name).mkdir()
        (files / name / "a.txt").write_text("ag\n", "utf-8")
    answer_files(translator, [f"{files}/d*/*"], out)
    assert [*contents(out)] == ["de/a.txt.jsonl", "deep/e.jsonl.jsonl"]
    answer_files(translator, [f"{files}/*/*.txt", files / "a.txt"], out)
    assert [*contents(out)][:2] == ["a.txt.jsonl", "de/a.txt.jsonl"]
    with pytest.raises(SettingError, match=r"/a\.txt and .*would both be answered in a\.txt\.js"):
        answer_files(translator, [files / "de", files / "fr"], out)


def test_a_run_in_training_is_refused(files, out, tmp_path):
    Run.create(tmp_path / "new", {"task": "translation"}, "translation").close()
    with pytest.raises(RunError, match="must have finished training"):
        answer_files(tmp_path / "new", [files / "a.txt"], out)
    assert not out.exists()


def test_options_that_need_others(translator, files, out, capsys):
    run, file = str(translator), str(files / "a.txt")
    for words, message in (
        (["--remake"], "--remake must go with --input"),
        (["--engine", "ray"], "--engine must go with --input"),
        (["--input", file], "--input must go with --output FOLDER"),
        (["--input", file, "--output", str(out), "--actors", "2"], "--actors must go with --engi"),
        (["--input", file, "--output", str(out), "--score"], "--score must be left out with --in"),
        (["--input", file, "--output", str(out), "--threads", "0"], "--threads must be at least"),
    ):
        assert run_command(["predict", run, *words]) == 2
        assert message in " ".join(capsys.readouterr().err.split())
    assert not out.exists()


def test_without_ray_its_engine_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("regard.inference.bulk.engines.find_spec", lambda name: None)
    with pytest.raises(
        SettingError, match=r"ray must be installed .* pip install 'regard\[bulk\]'"
    ):
        ray_engine()


def test_a_ray_that_is_broken_is_reported_before_anything_is_written(
    translator, files, out, tmp_path, monkeypatch, capsys
):
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "__init__.py").write_text("raise OSError('libray.so: cannot open')")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "ray"]:
        monkeypatch.delitem(sys.modules, name)
    words = ["predict", str(translator), "--input", str(files), "--engine", "ray"]
    assert run_command([*words, "--output", str(out)]) == 2
    message = " ".join(capsys.readouterr().err.split())
    assert "ray must be importable for --engine ray" in message
    assert "libray.so: cannot open. Install it again" in message
    assert not out.exists()


_KILLED = """
import os, signal, sys
from regard.inference.bulk import answering, answer_files
run, pattern, out, rows = sys.argv[1:]
add, left = answering._Writer.add, int(rows)
def counted(self, text, line):
    global left
    add(self, text, line)
    left -= 1
    if not left:
        for file in self._files.values():
            file.flush()
        os.kill(os.getpid(), signal.SIGKILL)
answering._Writer.add = counted
answer_files(run, [pattern], out)
"""


@pytest.mark.slow
def test_killed_in_the_middle_and_started_again(translator, patterns, out, tmp_path):
    answer_files(translator, patterns, tmp_path / "plain")
    whole = contents(tmp_path / "plain")
    for rows in (3, 9):
        words = [sys.executable, "-c", _KILLED, translator, *patterns, out, str(rows)]
        assert subprocess.run(words).returncode == -signal.SIGKILL
        there = contents(out)
        assert [name for name in there if ".tmp-" in name]
        done = {name: text for name, text in there.items() if ".tmp-" not in name}
        assert done.items() <= whole.items()
    assert len(done) < 5
    answer_files(translator, patterns, out)
    assert contents(out) == whole


def test_tables_and_folders_are_answered_as_objects_of_jsonl(translator, files, out):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [json.loads(line) for line in (files / "deep" / "e.jsonl").read_text().splitlines()]
    parquet.write_table(pyarrow.Table.from_pylist(rows), files / "deep" / "f.parquet")
    answer_files(translator, [files / "deep"], out)
    answers = contents(out)
    assert answers["e.jsonl.jsonl"] == answers["f.parquet.jsonl"]
    assert answers["e.jsonl.jsonl"].count(b"\n") == len(rows)


def test_a_table_without_the_column_is_refused_before_anything_is_written(translator, files, out):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"text": ["ag"], "id": [1]}), files / "f.parquet")
    with pytest.raises(
        DataError,
        match=r"f\.parquet:1: expected .* text at 'source'\. No row .*; its columns are text, id\.",
    ):
        answer_files(translator, [files / "a.txt", files / "f.parquet"], out)
    assert not out.exists()
    (files / "f.parquet").write_bytes(b"PAR1 cut short")
    report = answer_files(translator, [files / "a.txt", files / "f.parquet"], out)
    assert (report.answered, [each.name for each in report.failed]) == (1, ["f.parquet"])


@pytest.mark.usefixtures("unchecked_shapes")
def test_options_say_what_they_do_not_take():
    with pytest.raises(SettingError, match=r"output_format must be one of jsonl, text; got 'csv'"):
        BulkOptions(output_format="csv")
    with pytest.raises(SettingError, match=r"threads must be at least 1; got 0"):
        BulkOptions(threads=0)


@pytest.mark.parametrize("is_taken_over", [True, False])
def test_sigterm_ends_work_on_ray_as_it_ends_other_work(is_taken_over):
    before = signal.getsignal(signal.SIGTERM)

    def work():
        with _interrupted_by_sigterm() as take_over:
            if not is_taken_over:
                sys.exit(signal.SIGTERM)  # as Ray's own handler does
            take_over()
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)

    with pytest.raises(Interrupted) as caught:
        work()
    assert caught.value.signal_number == signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) == before
