"""Requests to a run."""

import pytest

from regard.inference import Predictor
from regard.tasks import TASKS, recipe_from_table
from regard.tasks.labels.label_task import LabelledText
from regard.tasks.running_text.running_text import Passage
from regard.text import Pair

TEXT = "我爱中国"
LEARNED = {
    "translation": [Pair(TEXT, "I love China", (), "a:1"), Pair("你", "you", (), "a:2")],
    "language_modelling": [Passage((TEXT,), "a:1")],
    "classification": [
        LabelledText(TEXT, "yes", None, "a:1"),
        LabelledText("国", "no", None, "a:2"),
    ],
}


@pytest.mark.parametrize("name", LEARNED)
@pytest.mark.parametrize(("tokenizer", "unknown"), [("characters", ["w", "和"]), ("bpe", [])])
def test_what_a_tokenizer_cannot_spell_is_unknown(name, tokenizer, unknown):
    settings = {"type": tokenizer, "vocab_size": 300, "may_shrink": True}
    if name == "translation":
        settings["shared"] = False
    recipe = recipe_from_table({"task": name, "tokenizer": settings})
    task = TASKS[name].task.learn(recipe, LEARNED[name])
    use = Predictor(task.build_model(), task).use
    assert list(use.parse("我爱w和", "b:1").unknown) == unknown
    assert list(use.parse(TEXT, "b:1").unknown) == []
