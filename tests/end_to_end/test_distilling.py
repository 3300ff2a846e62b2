"""What docs/distillation.md tells people to type, done with fewer updates."""

import json
import random
import re
import shlex
from pathlib import Path

import pytest
from tests.end_to_end.conftest import Command

from regard.text.phrasebook import phrases

PAGE = (Path(__file__).parents[2] / "docs" / "distillation.md").read_text("utf-8")
SMALL = ("training.updates=3", "training.validation_pairs=0", "tokenizer.vocab_size=1000")
SMALL += ("tokenizer.may_shrink=true", "model.model_dim=16", "model.num_heads=2")
SMALL += ("model.ffn_dim=16", "decoding.max_ratio=0.1", "decoding.min_length=3")
SHORT = [word for setting in SMALL for word in ("--set", setting)]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the texts that the page names."""
    drawn = random.Random(0).sample(phrases("train"), 120)
    for side, name in (("source", "train.zh"), ("target", "train.en")):
        (tmp_path / name).write_text("".join(f"{getattr(p, side)}\n" for p in drawn), "utf-8")
    (tmp_path / "news.txt").write_text("".join(f"{p.source}\n" for p in drawn[:7]), "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_have_it")
def test_a_student_is_trained_evaluated_and_asked(regard: Command, home: Path) -> None:
    (block,) = re.findall(r"^```bash\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    for line in block.splitlines():
        words = shlex.split(line)[1:]
        done = regard(*words, *(SHORT if words[0] == "train" else ()))
        assert done.code == 0, (line, done)
    assert len(done.out.splitlines()) == 7
    lines = (home / "runs" / "student" / "distilled.jsonl").read_text("utf-8").splitlines()
    sources = (home / "train.zh").read_text("utf-8").splitlines()
    assert {json.loads(line)["source"] for line in lines[1:]} < set(sources)
    seen = regard("predict", "runs/student", "news.txt", "--attention", "--output-format", "jsonl")
    rows = [json.loads(line) for line in seen.out.splitlines()]
    assert all(len(row["attention"]) == len(row["output_tokens"]) for row in rows)
    assert regard("look", "runs/student", sources[0], "--out", "look.html").code == 0
    refused = regard("export", "runs/student", "out", "--to", "ctranslate2")
    assert refused.code == 2
    assert "model.decoder = 'ssru'" in refused.err
