"""Every figure the pages show stands in a record, and every record came from a script."""

import dataclasses
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "benchmarks" / "records"
sys.path.insert(0, str(ROOT))

from benchmarks import (  # noqa: E402  (a package of the repository)
    ages,
    measuring,
    occasion,
    quoting,
    shipped,
    short_table,
    tables,
)


def run_tables(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.tables", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copies(tmp_path):
    """A folder with the records, and both READMEs."""
    shutil.copytree(RECORDS, tmp_path / "records")
    for name in ("README.md", "README.zh.md"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def change(record, what, field, text):
    """Put `text` into a field of the record's first figure whose name begins with `what`."""
    stored = json.loads(record.read_text("utf-8"))
    figure = next(figure for figure in stored["figures"] if figure["what"].startswith(what))
    assert figure[field] != text
    figure[field] = text
    record.write_text(json.dumps(stored, ensure_ascii=False), "utf-8")


def test_the_pages_show_the_figures_of_the_records():
    done = run_tables("--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_changed_figure_fails_the_check_and_writing_cures_it(copies):
    where = ("--pages", copies, "--records", copies / "records")
    assert run_tables(*where).returncode == 0
    assert run_tables("--check", *where).returncode == 0

    record = copies / "records" / "additive_attention.json"
    change(record, "Additive attention, forward", "ours", "9.99 s")
    stale = run_tables("--check", *where)
    assert stale.returncode == 1
    assert "+| Additive attention, 512 × 512, forward and backward | 9.99 s, " in stale.stdout
    assert "measured.md, README.md, README.zh.md and the records differ" in stale.stderr

    assert run_tables(*where).returncode == 0
    assert run_tables("--check", *where).returncode == 0


def test_a_sentence_that_the_records_no_longer_bear_out_is_named(copies):
    record = copies / "records" / "attention.json"
    change(record, "Window", "note", "0.5 × as fast, ±6%; asked for: 7.0 × as fast; threads: 1")
    done = run_tables("--check", "--pages", copies, "--records", copies / "records")
    assert done.returncode == 1
    assert "{window.note[0]} > 1 no longer holds (0.5, 1)" in done.stderr


def test_a_summary_that_is_no_better_than_a_sentence_is_marked():
    figures = [
        {
            "what": f"Titles: {ours}",
            "ours": f"{ours} ± 1.0 (20.0 / 9.0)",
            "beside": "19.0 by the first 9 words (p = 0.0010); 12.0 by TextRank (p = 0.0010)",
            "note": "",
        }
        for ours in ("18.9", "19.1")
    ]
    marked = shipped.no_better([{"name": "summarisation", "figures": figures}])
    assert [figure["what"] for figure in marked] == ["Titles: 18.9"]


def test_a_figure_of_no_group_is_named(copies):
    (copies / "records" / "made_up.json").write_text(
        '{"name": "made_up", "date": "2026-01-31", "machine": {"cpu": "a CPU", "cores": 2},'
        ' "figures": [{"what": "Speed", "ours": "3 ×", "beside": "peer", "note": ""}]}',
        "utf-8",
    )
    done = run_tables("--pages", copies, "--records", copies / "records")
    assert done.returncode == 1
    assert "no group has 'Speed'" in done.stderr


@pytest.fixture
def sentences():
    """All texts into which numbers of records are written."""
    rows = short_table.ROWS
    cells = [cell for row in rows for cell in (*row.what, row.ours, *row.beside, *row.how)]
    claims = [claim for row in rows for claim in row.compared]
    claims += [claim for group in tables.GROUPS for claim in group.holds]
    return [*cells, *(group.says for group in tables.GROUPS), *claims]


def test_sentences_quote_figures_that_exist(sentences):
    names = {name for sentence in sentences for name in re.findall(r"{(\w+)\.", sentence)}
    assert names <= tables.QUOTED.keys()


def test_no_number_of_a_sentence_is_typed_by_hand(sentences):
    for sentence in sentences:
        if re.search(r" [<>] ", sentence):  # a claim, which no page shows
            continue
        typed = quoting.Numbers.of(
            {"what": re.sub(r"{.*?}", "", sentence), "ours": "", "beside": "", "note": ""}
        )
        assert not typed.what, (typed.what, sentence)


def test_the_short_table_has_ten_figures():
    assert len(short_table.ROWS) == 10


@pytest.mark.parametrize(
    ("ours", "is_less_better", "word"),
    [
        *[("3", False, ""), ("2.01", False, "; **level**"), ("1.5", False, "; **behind**")],
        *[("1.5", True, ""), ("1.99", True, "; **level**"), ("3", True, "; **behind**")],
    ],
)
def test_a_row_that_is_no_better_says_so(ours, is_less_better, word):
    row = dataclasses.replace(
        short_table.ROWS[0],
        compared=("{x.ours[0]}", "{x.beside[0]}"),
        less_is_better=is_less_better,
    )
    figure = {"what": "", "ours": f"{ours} s", "beside": "peer: 2 s", "note": ""}
    assert short_table.word(row, {"x": quoting.Numbers.of(figure)}, 0) == word


def test_what_is_not_measured_is_marked_and_has_no_row(copies):
    (copies / "records" / "training_speed.json").unlink()
    done = run_tables("--pages", copies, "--records", copies / "records")
    assert done.returncode == 0, done.stderr
    page = (copies / tables.MEASURED).read_text("utf-8")
    assert "## Speed of training\n\nNot measured since its script changed.\n" in page
    assert "Training a small" not in (copies / "README.md").read_text("utf-8")


def test_marks_fit_the_history():
    ages_ = {record["name"]: ages.is_old(record) for record in measuring.read_records()}
    if None in ages_.values():
        pytest.skip("the commits of the records are not in this clone: nobody can tell their age")
    names = [name for name, is_old in ages_.items() if is_old]
    assert (ROOT / ages.NAMES).read_text("utf-8").split() == names, "python -m benchmarks.tables"


def test_what_an_old_record_measured_is_marked_on_the_pages():
    names = (ROOT / ages.NAMES).read_text("utf-8").split()
    rows = [
        row for row in (ROOT / tables.MEASURED).read_text("utf-8").splitlines() if ".py)" in row
    ]
    for row in rows:
        (name,) = re.findall(r"\[`([\w/]+)`\]\(\.\./benchmarks/\w+\.py\)", row)
        assert row.endswith(f"{ages.MARK} |") == (name in names), row


def test_records_keep_to_the_rules():
    for record in measuring.read_records():
        if record["format"] < 2:  # from before there were rules: its page says what it lacks
            continue
        for field in ("commit", "command", "threads"):
            assert record[field], (record["name"], field)
        assert record["machine"]["flags"]
        if record["rounds"] is not None:
            assert not record["commit"].endswith("+"), record["name"]
            assert record["rounds"] >= occasion.FEWEST_ROUNDS, record["name"]
            assert record["machine"]["load_at_start"] <= occasion.HIGHEST_LOAD, record["name"]


def test_every_record_says_what_code_it_measures():
    for record in measuring.read_records():
        for path in ages.CODE[measuring.script_of(record["name"])]:
            assert list((ROOT / "src" / "regard").glob(path)), (record["name"], path)


def test_every_record_names_a_script_that_exists():
    for record in RECORDS.glob("*.json"):
        assert (ROOT / "benchmarks" / f"{record.stem}.py").exists(), record.name
