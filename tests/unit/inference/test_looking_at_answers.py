import math

import pytest
import torch
from tests.looking import look_into
from tests.unit.inference.conftest import untrained

from regard.errors import DataError, SettingError
from regard.inference import Predictor
from regard.tasks import OnePassTask, recipe_from_table
from regard.tasks.labels.classification import LabelledText
from regard.tasks.labels.regression import Regression
from regard.tasks.labels.tagging import Tagging
from regard.tasks.running_text.language_modelling import Passage
from regard.text.reading.points import Point
from regard.text.reading.tagged import TaggedWords
from regard.viewer import Document

TRANSFORMER = {"type": "transformer", "model_dim": 8, "num_heads": 2, "num_layers": 3, "ffn_dim": 7}
RECURRENT = {"type": "recurrent", "embed_dim": 6, "hidden_dim": 5}
REVIEWS = [("菜很好吃", "good"), ("太慢了", "bad"), ("好 好 吃", "good")]


def a_labeller(task, examples, model, **sections):
    return untrained({"task": task, "model": model, **sections}, examples)


def a_classifier(model, pooling="mean", head=None, **data):
    aspect = "taste" if pooling == "aspect" else None
    examples = [LabelledText(text, label, aspect, "") for text, label in REVIEWS]
    return a_labeller(
        "classification",
        examples,
        model,
        data=data,
        tokenizer={"type": "characters"},
        head={"pooling": pooling, **(head or {})},
    )


def test_a_label_has_probabilities_and_what_the_odds_lose_without_each_token():
    labeller = a_classifier(RECURRENT)
    (example,) = look_into(labeller, "菜好").examples
    (verdict,) = labeller.predict(["菜好"])
    assert dict(example.answer.labels) == pytest.approx(verdict.probabilities, rel=1e-4)
    assert [token.text for token in example.source_tokens][:2] == ["菜", "好"]
    assert example.output == verdict.label
    assert example.maps == example.summaries == ()

    def log_odds(text):
        share = labeller.predict([text])[0].probabilities[verdict.label]
        return math.log(share / (1 - share))

    want = [log_odds("菜好") - log_odds("好"), log_odds("菜好") - log_odds("菜")]
    assert example.answer.values[:2] == pytest.approx(want, rel=0.01, abs=1e-4)
    assert example.importances[0].values == example.answer.values


@pytest.mark.parametrize(
    ("pooling", "heads"), [("query", 1), ("state", 1), ("aspect", 1), ("structured", 5)]
)
def test_where_a_query_pools_the_text_is_shaded_by_its_mean_weights(pooling, heads):
    data = {"aspect": 3} if pooling == "aspect" else {}
    labeller = a_classifier(RECURRENT, pooling, **data)
    (example,) = look_into(labeller, "菜很好吃").examples
    assert [(m.kind, m.head, len(m.rows)) for m in example.maps] == [
        ("cross", head, 1) for head in range(heads)
    ]
    rows = [m.rows[0] for m in example.maps]
    assert all(sum(row) == pytest.approx(1, abs=1e-3) for row in rows)
    mean = [sum(column) / heads for column in zip(*rows, strict=True)]
    assert example.answer.values == pytest.approx(mean, abs=1e-3)
    assert len(rows[0]) == len(example.source_tokens) == 5
    assert "the query of the pooling" in example.answer.measure or heads > 1


def test_self_attention_is_there_layer_by_layer_and_may_be_chosen_from():
    labeller = a_classifier(TRANSFORMER)
    (example,) = look_into(labeller, "菜很好吃").examples
    assert {(m.kind, m.layer, m.head) for m in example.maps} == {
        ("encoder", layer, head) for layer in range(3) for head in range(2)
    }
    (example,) = look_into(labeller, "菜很好吃", layers=[2], heads=[1]).examples
    assert [(m.layer, m.head) for m in example.maps] == [(2, 1)]
    with pytest.raises(SettingError, match=r"layers must be of 0, 1, 2; got 7\."):
        look_into(labeller, "菜", layers=[7])


def test_long_texts_are_packed_and_cut_where_the_model_stops_reading():
    labeller = a_classifier(TRANSFORMER, max_length=100)
    (example,) = look_into(labeller, "菜很好吃" * 40).examples
    assert len(example.source_tokens) == 101
    assert len(example.summaries) == 3
    assert example.summaries[0].rows.shape == (2, 101, 101)
    document = look_into(labeller, ["菜很好吃" * 40, "好"])
    assert Document.from_json(document.to_json()) == document
    assert document.task == "classification"


def test_words_have_their_tags_and_too_many_are_refused():
    examples = [
        TaggedWords(("江", "在", "京"), ("B-PER", "O", "B-LOC"), ""),
        TaggedWords(("John", "ran"), ("B-PER", "O"), ""),
    ]
    for model in (RECURRENT, TRANSFORMER):
        labeller = a_labeller(
            "tagging", examples, model, data={"max_length": 4}, head={"crf": True}
        )
        (example,) = look_into(labeller, "John 在 京").examples
        (tags,) = labeller.predict(["John 在 京"])
        assert example.answer.tags == tags.tags
        assert [token.text for token in example.source_tokens] == ["John", "在", "京"]
        assert example.source == "John 在 京"
        assert bool(example.maps) is (model is TRANSFORMER)
        with pytest.raises(DataError, match="at most 4 words long to be looked at; got 5"):
            look_into(labeller, "a b c d e")


@pytest.mark.parametrize("model", [{"type": "recurrent"}, {"type": "decoder", "num_layers": 2}])
def test_a_language_models_text_is_shaded_by_its_surprise(model):
    labeller = a_labeller(
        "language_modelling",
        [Passage(("abcab", "bca"), "")],
        model,
        tokenizer={"type": "characters"},
        data={"context": 8},
    )
    (example,) = look_into(labeller, "abcc").examples
    (surprise,) = labeller.answers([labeller.task.request("abcc", "")])
    assert sum(example.answer.values) == pytest.approx(surprise.nats, rel=1e-3)
    assert [token.text for token in example.output_tokens][:4] == ["a", "b", "c", "c"]
    if model["type"] == "decoder":
        assert {(m.kind, m.layer) for m in example.maps} == {("decoder", 0), ("decoder", 1)}
        first = example.maps[0].rows[0]
        assert first[0] == pytest.approx(1, abs=1e-3)
        assert sum(first[1:]) == 0  # the first token is guessed from the start alone
    with pytest.raises(DataError, match="at most 8 tokens long to be looked at; got 11"):
        look_into(labeller, "abcabcabca")


def test_no_text_and_a_task_without_text_are_refused():
    labeller = a_classifier(RECURRENT)
    with pytest.raises(DataError, match="texts must hold text to look at; got none"):
        look_into(labeller, [])
    with pytest.raises(DataError, match="text 1: text must hold something to read"):
        look_into(labeller, " ")


def test_a_task_that_says_nothing_of_its_own_shows_its_text_and_its_answer():
    class Plain(Tagging):
        draw = OnePassTask.draw

    torch.manual_seed(5)
    recipe = recipe_from_table({"task": "tagging", "model": TRANSFORMER})
    examples = [TaggedWords(("John", "ran"), ("B-PER", "O"), "")]
    task = Plain.learn(recipe, examples)
    labeller = Predictor(task.build_model(), task)
    (example,) = look_into(labeller, "John ran").examples
    (tags,) = labeller.predict(["John ran"])
    assert (example.source, example.output) == ("John ran", tags.text())
    assert [token.text for token in example.source_tokens] == ["John", "ran"]
    assert {(m.kind, m.layer, m.head) for m in example.maps} == {
        ("encoder", layer, head) for layer in range(3) for head in range(2)
    }


def test_attention_that_is_not_between_its_words_is_left_out():
    class Plain(Regression):
        draw = OnePassTask.draw

    points = [Point((value,), 1.0, ("x",), "") for value in (0.1, 0.5, 0.7)]
    model = {"type": "kernel_regression", "is_learned": True}
    task = Plain.learn(recipe_from_table({"task": "regression", "model": model}), points)
    labeller = Predictor(task.build_model(), task)
    (example,) = look_into(labeller, "0.5").examples
    assert (example.source, example.maps, example.answer) == ("0.5", (), None)
