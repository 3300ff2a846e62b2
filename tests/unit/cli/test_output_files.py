"""A file that a command writes is there, whole, or is what it was before."""

import resource
import shutil
import signal
from pathlib import Path

import pytest

from regard.cli import output, run_command
from regard.errors import Interrupted
from regard.inference import lines

FULL = "must fit on its disk; got 'No space left on device'"


@pytest.fixture
def numbers(tmp_path):
    path = tmp_path / "numbers.txt"
    path.write_text("0.5\n" * 9, encoding="utf-8")
    return path


@pytest.fixture
def out(tmp_path):
    """A file of somebody's work, beside which nothing else is to be left."""
    path = tmp_path / "out" / "mine.txt"
    path.parent.mkdir()
    path.write_text("my work\n", encoding="utf-8")
    return path


def refused(capsys, *words):
    assert run_command([*map(str, words)]) == 2
    return capsys.readouterr().err


def assert_untouched(out):
    assert out.read_text(encoding="utf-8") == "my work\n"
    assert [path.name for path in out.parent.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["predict", "RUN", "missing.csv"], "missing.csv must exist; it does not"),
        (["predict", "no-run", "NUMBERS"], "no-run must be a run folder; got nothing there"),
        (["predict", "RUN", "NUMBERS", "--beam-size", "3"], "--beam-size must be left out"),
        (["predict", "RUN", "NUMBERS", "--precision", "int4"], "int4"),
        (["predict", "RUN", "NUMBERS", "--device", "cuda:99"], "--device must"),
        (["predict", "RUN", "NUMBERS", "RUN/run.json"], "run.json:"),  # after nine good lines
        (["look", "no-run", "text"], "no-run must be a run folder"),
        (["look", "RUN", "0.5", "--layers", "x"], "--layers must"),
        (["look", "RUN", "0.5", "--live"], "Leave out --live"),
        (["look", "--model", "no-folder", "text"], "no-folder"),
    ],
)
def test_a_command_that_is_refused_leaves_the_file(
    points_run, numbers, out, capsys, words, message
):
    names = {"RUN": str(points_run), "NUMBERS": str(numbers)}
    words = [word.replace("RUN", names["RUN"]) for word in words]
    assert message in refused(capsys, *(names.get(word, word) for word in words), "-o", out)
    assert_untouched(out)


def test_a_file_without_an_error_is_replaced(points_run, numbers, out, capsys):
    assert run_command(["predict", str(points_run), str(numbers), "-o", str(out)]) == 0
    assert out.read_text(encoding="utf-8") == "3\n" * 9
    assert [path.name for path in out.parent.iterdir()] == ["mine.txt"]


def test_a_file_larger_than_allowed_leaves_the_one_before(points_run, tmp_path, out, capsys):
    numbers = tmp_path / "many.txt"
    numbers.write_text("0.5\n" * 9000, encoding="utf-8")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        code = run_command(["predict", str(points_run), str(numbers), "-o", str(out)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert code == 2
    assert "mine.txt must fit on its disk; got 'File too large'" in capsys.readouterr().err
    assert_untouched(out)


@pytest.fixture
def stopped_after_a_group(monkeypatch):
    """An interrupted command: after the first lines are answered, and half of the next printed."""
    answers = lines.answers

    def stopped(groups, answering, **options):
        first, _, *_ = answers(groups, answering, **options)
        yield first
        output.say("half a line", end="")
        raise Interrupted(signal.SIGTERM)

    monkeypatch.setattr(lines, "answers", stopped)


@pytest.mark.usefixtures("stopped_after_a_group")
def test_the_answers_before_a_stop_are_kept_beside_the_file(points_run, tmp_path, out, capsys):
    numbers = tmp_path / "many.txt"
    numbers.write_text("0.5\n" * 600, encoding="utf-8")
    assert run_command(["predict", str(points_run), str(numbers), "-o", str(out)]) == 143
    assert out.read_text(encoding="utf-8") == "my work\n"
    part = out.with_name("mine.txt.part")
    assert sorted(out.parent.iterdir()) == [out, part]
    assert part.read_text(encoding="utf-8") == "3\n" * 256
    message = capsys.readouterr().err
    assert f"stopped; the answers so far, 256 lines, are in {part}." in message
    assert "wrote" not in message


@pytest.mark.usefixtures("stopped_after_a_group")
def test_a_device_that_was_written_to_keeps_no_part(points_run, tmp_path, capsys):
    numbers = tmp_path / "many.txt"
    numbers.write_text("0.5\n" * 600, encoding="utf-8")
    assert run_command(["predict", str(points_run), str(numbers), "-o", "/dev/null"]) == 143
    assert capsys.readouterr().err == ""
    assert Path("/dev/null").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_device_is_named(points_run, numbers, capsys):
    message = refused(capsys, "predict", points_run, numbers, "-o", "/dev/full")
    assert f"error: /dev/full {FULL}" in message


@pytest.mark.parametrize("words", [["predict", "RUN"], ["look", "RUN", "a"], ["evaluate", "RUN"]])
def test_folders_of_a_misspelt_path_are_not_made(points_run, numbers, tmp_path, capsys, words):
    words = [str(points_run) if word == "RUN" else word for word in words]
    words += [str(numbers)] if words[0] != "look" else []
    option = "--plot" if words[0] == "evaluate" else "-o"
    message = refused(capsys, *words, option, tmp_path / "nowhere" / "x" / "y.svg")
    assert "y.svg must be in a folder that exists; there is no" in message
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("words", [["predict", "IN", "NUMBERS"], ["look", "IN", "0.5"]])
def test_what_is_read_is_not_written_over(points_run, numbers, tmp_path, capsys, words):
    bundle = tmp_path / "points.regard"
    assert run_command(["export", str(points_run), str(bundle)]) == 0
    content = bundle.read_bytes()
    names = {"IN": bundle, "NUMBERS": numbers}
    message = refused(capsys, *(names.get(word, word) for word in words), "-o", bundle)
    assert "--output must be another file than those that are read" in message
    assert bundle.read_bytes() == content


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["predict", "RUN", "NUMBERS", "-o"], "recipe.toml"),
        (["look", "RUN", "0.5", "-o"], "model.safetensors"),
        (["look", "RUN", "0.5", "-o"], "lock"),
    ],
)
def test_files_of_the_run_that_is_read_are_not_written_over(
    points_run, numbers, tmp_path, capsys, words, name
):
    run = tmp_path / "run"
    shutil.copytree(points_run, run)
    content = (run / name).read_bytes()
    names = {"RUN": run, "NUMBERS": numbers}
    message = refused(capsys, *(names.get(word, word) for word in words), run / name)
    assert "--output must be another file than those that are read" in message
    assert (run / name).read_bytes() == content
    assert run_command(["predict", str(run), str(numbers), "-o", str(run / "answers.txt")]) == 0
    assert run_command(["predict", str(run), str(numbers), "-o", str(run / "answers.txt")]) == 0


@pytest.mark.parametrize("name", ["plot", "plot.xyz", "plot.svg.gz"])
def test_a_plot_without_a_pictures_ending_is_refused_before_there_is_work(
    points_run, tmp_path, capsys, name
):
    message = refused(capsys, "evaluate", points_run, "--plot", tmp_path / name)
    assert message == f"error: --plot must end in .svg, .png or .pdf; got {tmp_path / name}.\n"
    assert not list(tmp_path.glob("*plot*"))
