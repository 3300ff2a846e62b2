"""Every figure the pages show stands in a record, and every record came from a script."""

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

from benchmarks import measuring, occasion, tables  # noqa: E402  (packages of the repository)


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
    for name in tables.READMES:
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def change(record, what, **fields):
    """Put other texts into a record's first figure whose name begins with `what`."""
    stored = json.loads(record.read_text("utf-8"))
    figure = next(figure for figure in stored["figures"] if figure["what"].startswith(what))
    assert figure | fields != figure
    figure |= fields
    record.write_text(json.dumps(stored, ensure_ascii=False), "utf-8")


def test_the_pages_show_the_figures_of_the_records():
    done = run_tables("--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_changed_figure_fails_the_check_and_writing_cures_it(copies):
    where = ("--pages", copies, "--records", copies / "records")
    assert run_tables(*where).returncode == 0
    assert run_tables("--check", *where).returncode == 0

    change(copies / "records" / "additive_attention.json", "Additive attention, f", ours="9.99 s")
    stale = run_tables("--check", *where)
    assert stale.returncode == 1
    assert "measured.md, README.md, README.zh.md and the records differ" in stale.stderr

    assert run_tables(*where).returncode == 0
    assert run_tables("--check", *where).returncode == 0
    assert "forward and backward | 9.99 / " in (copies / "README.md").read_text("utf-8")


def test_a_sentence_that_the_records_no_longer_bear_out_is_named(copies):
    note = "0.5 × as fast, ±6%; asked for: 7.0 × as fast; threads: 1"
    change(copies / "records" / "attention.json", "Window", note=note)
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
    records = [{"name": "summarisation", "figures": figures}]
    assert tables.no_better(records, {"place": "summarisation"}) == figures[:1]
    fewer = {"place": "summarisation", "less_is_better": True}
    assert tables.no_better(records, fewer) == figures[1:]


def test_every_comparison_with_a_method_without_a_model_means_a_figure():
    for trivial in tables.TRIVIAL:
        assert tables.find(measuring.read_records(), trivial["place"]), trivial


def test_a_figure_of_no_group_is_named(copies):
    (copies / "records" / "made_up.json").write_text(
        '{"name": "made_up", "date": "2026-01-31", "machine": {"cpu": "a CPU", "cores": 2},'
        ' "figures": [{"what": "Speed", "ours": "3 ×", "beside": "peer", "note": ""}],'
        ' "details": {}}',
        "utf-8",
    )
    done = run_tables("--pages", copies, "--records", copies / "records")
    assert done.returncode == 1
    assert "no group has 'Speed'" in done.stderr


@pytest.fixture
def sentences():
    """All texts into which numbers of records are written."""
    texts = [group["says"] for group in tables.TEXTS["groups"].values()]
    texts += [text for recipe in tables.RECIPES.values() for text in recipe.values()]
    for row in tables.ROWS["rows"]:
        texts += [row["ours"], *row["what"], *row["beside"], *row["how"]]
        texts += [number for pair in row["pairs"] for number in pair]
    return texts


def test_sentences_quote_figures_that_exist(sentences):
    claims = [
        claim for group in tables.TEXTS["groups"].values() for claim in group.get("holds", ())
    ]
    names = {name for text in [*sentences, *claims] for name in re.findall(r"{(\w+)\.", text)}
    assert names <= tables.QUOTED.keys()


def test_no_number_of_a_sentence_is_typed_by_hand(sentences):
    for sentence in sentences:
        typed = tables.NUMBER.findall(re.sub(r"{.*?}|SST-2|WNUT-17|CMRC 2018", "", sentence))
        assert not typed, (typed, sentence)


def test_the_short_table_has_ten_figures():
    assert len(tables.ROWS["rows"]) == 10


@pytest.mark.parametrize(
    ("ours", "is_less_better", "word"),
    [
        *[("3", False, "better"), ("2.01", False, "level"), ("1.5", False, "behind")],
        *[("1.5", True, "better"), ("1.99", True, "level"), ("3", True, "behind")],
    ],
)
def test_a_row_that_is_no_better_says_so(ours, is_less_better, word):
    far = ["100", "1"] if not is_less_better else ["1", "100"]
    row = {"pairs": [far, [ours, "2"]], "less_is_better": is_less_better}
    assert tables.remark(row, {}) == word


def test_what_is_not_measured_is_marked_and_has_no_row(copies):
    (copies / "records" / "training_speed.json").unlink()
    done = run_tables("--pages", copies, "--records", copies / "records")
    assert done.returncode == 0, done.stderr
    page = (copies / tables.MEASURED).read_text("utf-8")
    assert "## Speed of training\n\nNot measured since its script changed.\n" in page
    assert "Training a small" not in (copies / "README.md").read_text("utf-8")


def test_what_has_not_been_found_to_hold_is_marked_everywhere(copies):
    for path in copies.rglob("records/**/*.json"):
        record = json.loads(path.read_text("utf-8"))
        holds = record["name"] in ("attention", "tagging")
        record["held"] = {"date": "2026-01-31", "commit": "abc1234"} if holds else None
        record["fingerprint"] = {"pairs-esim": {"is_recorded": True}}
        path.write_text(json.dumps(record), "utf-8")
    assert run_tables("--pages", copies, "--records", copies / "records").returncode == 0
    for row in (copies / tables.MEASURED).read_text("utf-8").splitlines():
        if names := re.findall(r"\[`([\w/]+)`\]\(\.\./benchmarks/\w+\.py\)", row):
            holds = names[0] in ("attention", "tagging") or ", ESIM, accuracy" in row
            assert row.endswith(f"{tables.OLD} |") != holds, row
    lines = (copies / "README.md").read_text("utf-8").splitlines()
    (window,) = [line for line in lines if line.startswith("| A window of")]
    (brown,) = [line for line in lines if line.startswith("| The Brown corpus")]
    assert tables.OLD not in window
    assert tables.OLD in brown
    figures = json.loads((copies / tables.FIGURES).read_text("utf-8"))
    names = ("tagging-words", "pair-matching", "pair-matching-cross", "rnn-copy")
    assert [figures[name]["old"] for name in names] == [False, False, True, True]


def test_records_keep_to_the_rules():
    for record in measuring.read_records():
        if record["format"] < 2:  # from before there were rules
            continue
        for field in ("commit", "command", "threads"):
            assert record[field], (record["name"], field)
        assert record["machine"]["flags"]
        if record["rounds"] is not None:
            assert not record["commit"].endswith("+"), record["name"]
            assert record["rounds"] >= occasion.FEWEST_ROUNDS, record["name"]
            assert record["machine"]["load_at_start"] <= occasion.HIGHEST_LOAD, record["name"]


def test_every_record_names_a_script_that_exists():
    for record in RECORDS.glob("*.json"):
        assert (ROOT / "benchmarks" / f"{record.stem}.py").exists(), record.name
