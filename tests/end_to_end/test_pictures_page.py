import shlex

import pytest
from tests.end_to_end.pages import ROOT, commands, save_photos

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "how-to" / "pictures.md"
SHAPES = (
    '{"pixels": [[0, 1, 1, 0], [0, 9, 9, 0], [0, 9, 9, 0], [0, 1, 1, 0]], "label": "square"}\n'
    '{"pixels": [[9, 0, 0, 9], [0, 9, 9, 0], [0, 9, 9, 0], [9, 0, 0, 9]], "label": "cross"}\n'
)


def test_its_commands_work(regard, tmp_path, monkeypatch):
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    save_photos(tmp_path / "photos")
    (tmp_path / "pictures.jsonl").write_text(SHAPES * 20, "utf-8")
    monkeypatch.chdir(tmp_path)
    short = ("--set", "training.updates=2", "--set", "training.epochs=none")
    lines = commands(PAGE)
    assert len(lines) >= 6
    for line in lines:
        words = shlex.split(line)[1:]
        done = regard(*words, *(short if words[0] == "train" else ()))
        assert done.code == 0, (line, done)
    assert (tmp_path / "confusion.svg").read_text("utf-8").startswith("<?xml")
    assert "<!doctype html>" in (tmp_path / "attention.html").read_text("utf-8").lower()
