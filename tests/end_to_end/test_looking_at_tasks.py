"""``regard look`` at runs that read two texts: what the terminal says of them."""

import json
from pathlib import Path

import pytest
from tests.end_to_end.tiny_tasks import TINY, asked

pytestmark = pytest.mark.slow

RECIPE = """
task = "question_answering"

[data]
train = "questions.json"
max_length = 64
stride = 32

[tokenizer]
type = "words"

[model]
type = "transformer"
model_dim = 8
num_heads = 2
num_layers = 1
ffn_dim = 16

[training]
updates = 2
label_smoothing = 0.0
"""


def test_each_question_is_drawn_once_with_its_answer_in_its_text(regard, tmp_path: Path) -> None:
    (tmp_path / "questions.json").write_text(TINY["question_answering"].text(40), "utf-8")
    (tmp_path / "recipe.toml").write_text(RECIPE, "utf-8")
    assert regard("train", tmp_path / "recipe.toml", "--run", tmp_path / "run").code == 0
    records = [{name: asked(n)[name] for name in ("question", "context")} for n in (41, 42)]
    lines = tmp_path / "asked.jsonl"
    lines.write_text("".join(json.dumps(each) + "\n" for each in records), "utf-8")
    page = tmp_path / "page.html"
    done = regard("look", tmp_path / "run", "--file", lines, "--output", page)
    assert done.code == 0
    drawn = done.out.splitlines()
    for record in records:  # though the page has both ways that the model looks
        assert drawn.count(record["question"]) == 1
        (marked,) = [
            line for line in drawn if line.replace("[", "").replace("]", "") == record["context"]
        ]
        assert "[" in marked
    assert page.read_text("utf-8").count("question looks at text") >= 2
