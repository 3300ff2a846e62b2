"""Examples of extending run, and CONTRIBUTING.md names rooms and files that are there."""

import re
import runpy
import shlex
import shutil
import sys
import tomllib
from pathlib import Path

import pytest
from tests.end_to_end.test_views import document, opened, texts

from regard.attention.call.choice import BACKENDS
from regard.attention.masks.parse import RULES
from regard.attention.scores.content import SCORES
from regard.models import MODELS
from regard.tasks import TASKS
from regard.viewer import page

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
EXAMPLES = ROOT / "examples" / "extending"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))
PRINTED = {"mask": "1 . 1 . .\n1 . 1 . .\n1 . 1 . 1\n", "backend": "naive\n"}
SMALL = ("training.updates=2", "training.validation_pairs=0", "tokenizer.vocab_size=950")
SMALL += ("model.model_dim=8", "model.num_heads=2", "model.ffn_dim=8", "decoding.max_ratio=0.1")
SHORT = [word for setting in SMALL for word in ("--set", setting)]


@pytest.fixture(autouse=True)
def _tables_stay_as_they_are():
    tables: list[dict] = [SCORES, RULES, BACKENDS, MODELS, TASKS]
    before = [dict(table) for table in tables]
    yield
    for table, entries in zip(tables, before, strict=True):
        table.clear()
        table.update(entries)


@pytest.fixture
def home(corpus, tmp_path, monkeypatch):
    """A folder with the texts that the recipes name."""
    shutil.copy(corpus / "train.tsv", tmp_path / "pairs.tsv")
    words = [a * 3 + b for a in "abc" for b in ("ab", "bc", "ca", "cab")] * 3
    (tmp_path / "letters.tsv").write_text("".join(f"{w}\t{w[0]}\n" for w in words), "utf-8")
    (tmp_path / "lines.txt").write_text("".join(f"{w}\n" for w in words), "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_an_example_runs(name, regard, home, capsys):
    about = runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="example")["__doc__"]
    assert capsys.readouterr().out == PRINTED.get(name, "")
    shutil.copytree(EXAMPLES, home / "examples" / "extending")
    for line in re.findall(r"^    (.*)$", about, re.MULTILINE):
        typed, _, command = line.rpartition("|")
        words = shlex.split(command)[2:]
        if words[0] == "train" and "transformer-tiny" in words:
            words += ["--run", "runs/short", *SHORT]
        stdin = shlex.split(typed)[1].encode() + b"\n" if typed else b""
        done = regard(*words, stdin=stdin)
        assert done.code == 0, (line, done)
        assert done.out or words[0] == "train"


@pytest.mark.browser
@pytest.mark.slow
def test_a_view_is_two_files(tab, tmp_path, monkeypatch):
    view = (EXAMPLES / "view.js").read_text("utf-8")
    static = shutil.copytree(ROOT / "src" / "regard" / "viewer" / "static", tmp_path / "static")
    (static / "views" / "most.js").write_text(view, "utf-8")
    table = (static / "views" / "views.js").read_text("utf-8")
    line = 'import { most } from "./most.js";'
    assert line in view
    table = table.replace("export const VIEWS", f"{line}\n\nexport const VIEWS")
    (static / "views" / "views.js").write_text(
        table.replace("compare];", "compare, most];"), "utf-8"
    )
    monkeypatch.setattr(sys.modules["regard.viewer.html"], "_STATIC", static)
    opened(tab, "view=most&kind=cross&layer=0&head=0", document())
    assert "Most" in texts(tab, "nav button, nav a, [role=tab]")
    assert any(" → " in text for text in texts(tab, "main ol li"))
    assert "const { most } = " in page(document())


def test_it_names_every_room():
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    part = TEXT.split("## Where things are")[1].split("\n## ")[0]
    own, *inside = contracts
    levels = [level.split(" | ") for level in own["layers"]]
    rows = [
        re.findall(r"`(\w+)`", row.split("|")[1]) for row in part.splitlines() if row[:3] == "| `"
    ]
    assert [room for row in rows for room in row] == [room for level in levels for room in level]
    for contract in inside:
        for level in contract.get("layers", ()):
            for room in level.split(" | "):
                assert f"`{room}`" in part, (contract["containers"], room)


def test_the_files_it_names_are_there():
    for row in re.findall(r"^\| a .*$", TEXT, re.MULTILINE):
        for path in re.findall(r"`([\w/]+(?:\.\w+|/))`", row.replace("NAME", "*")):
            if "*" not in path:
                assert (ROOT / "src" / "regard" / path).exists(), path
    for path in re.findall(r"\((examples/[\w./]+)\)", TEXT):
        assert (ROOT / path).is_file(), path
