"""Runs and Hugging Face models behind the routes: answers with heads muted or scaled."""

import re
from dataclasses import replace

import pytest
from tests.looking import look_at
from tests.unit.inference.conftest import untrained
from tests.unit.interop.tiny_folders import ENGLISH, save_bert, save_gpt2
from tests.unit.server.conftest import answers_of, refusal

import regard
from regard.inference.checkpoint import Checkpoint
from regard.server import Limits, Service
from regard.tasks.labels.classification import LabelledText
from regard.tasks.running_text.language_modelling import Passage
from regard.text import Pair
from regard.viewer import Document

HEADS = {"num_heads": 2, "model_dim": 8, "ffn_dim": 8}
TABLES = {
    "translation": {"model": {"type": "transformer", **HEADS, "num_encoder_layers": 1}},
    "language_modelling": {"model": {"type": "decoder", **HEADS}, "data": {"context": 12}},
    "classification": {"model": {"type": "transformer", **HEADS}, "head": {"pooling": "mean"}},
}
EXAMPLES = {
    "translation": [Pair("我爱你", "I love you", ("I love you",), "")],
    "language_modelling": [Passage(("我爱你", "你爱我"), "")],
    "classification": [LabelledText("好", "good", None, ""), LabelledText("坏", "bad", None, "")],
}
KINDS = {"translation": "cross", "language_modelling": "decoder", "classification": "encoder"}


def a_run(task):
    table = {"task": task, "tokenizer": {"type": "characters"}, **TABLES[task]}
    return untrained(table, EXAMPLES[task], seed=3, std=0.6)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("folders")
    save_gpt2(folder / "gpt2")
    save_bert(folder / "bert", "BertForSequenceClassification", num_labels=2)
    models = {name: Checkpoint.load(folder / name) for name in ("gpt2", "bert")}
    return {**models, **{task: a_run(task) for task in TABLES}}


def ask(served, *requests, **limits):
    """The answers to requests that come together, each a path and its members or its bytes."""
    return answers_of(Service(served, Limits(**limits)), *requests)


@pytest.mark.parametrize("name", ["gpt2", "bert", *TABLES])
@pytest.mark.parametrize("factor", [0.0, 1.6])
def test_an_answer_with_heads_changed_is_that_of_edit(name, factor, served):
    text = ENGLISH[:15] if name in ("gpt2", "bert") else "你爱我"
    kind = {"gpt2": "decoder", "bert": "encoder"}.get(name) or KINDS[name]
    edit = {"kind": kind, "layer": 0, "heads": [1], "factor": factor}
    (answer,) = ask(served, ("/attention", {"run": name, "text": text, "edits": [edit]}))
    assert answer.status_code == 200, answer.text
    first, second = Document.from_json(answer.text).examples
    assert (first.label, second.label) == ("all heads", "heads changed")

    def expected():
        one = served[name]
        if isinstance(one, Checkpoint):
            (example,) = one.look(text, explain=False).document.examples
            return example, one.reply(text, example).to_dict()
        example = look_at(one, text)
        return example, None if name != "language_modelling" else one.predict(
            [text], method="greedy", max_tokens=24
        )[0].best.text

    with regard.edit(served[name].model) as edits:
        edits.scale(factor, 0, 1, kind=kind)
        example, reply = expected()
    plain, _ = expected()
    assert (first.output, first.maps, first.summaries) == (
        plain.output,
        plain.maps,
        plain.summaries,
    )
    assert (second.output, second.maps, second.answer) == (
        example.output,
        example.maps,
        example.answer,
    )
    replies = answer.json()["replies"]
    assert len(replies) == 2
    assert replace(first, label="") != replace(second, label="")
    if isinstance(reply, str):
        assert replies[1]["text"] == reply
    elif reply is not None:
        assert replies[1]["text"] == reply["text"]
        assert [tuple(each) for each in replies[1]["next_tokens"]] == list(reply["next_tokens"])
    (again,) = ask(served, ("/attention", {"run": name, "text": text}))
    assert again.json()["replies"] == replies[:1]  # nothing stays changed


@pytest.mark.parametrize("name", ["gpt2", "bert", *TABLES])
def test_a_route_of_its_own_explains_the_answers_with_and_without_edits(name, served):
    text = ENGLISH[:15] if name in ("gpt2", "bert") else "你爱我"
    kind = {"gpt2": "decoder", "bert": "encoder"}.get(name) or KINDS[name]
    edits = [{"kind": kind, "layer": 0, "factor": 0.5}]
    members = {"run": name, "text": text, "edits": edits}
    plain, explained = ask(served, ("/attention", members), ("/attribution", members))
    assert explained.status_code == 200, explained.text
    documents = [Document.from_json(each.text) for each in (plain, explained)]
    for before, after in zip(*(each.examples for each in documents), strict=True):
        own = {"importances": before.importances, "vectors": (), "lens": None, "surprise": ()}
        own |= {"stream": None, "circuits": (), "feed_forward": ()}
        assert replace(after, **own) == before
        assert {one.method for one in after.importances} > {"attention", "gradient × input"}
        assert after.vectors
        assert after.stream is not None
        assert after.circuits
        assert after.feed_forward
        assert (after.lens is not None) == (name not in ("bert", "classification"))
    first, second = documents[1].examples
    assert first.importances != second.importances
    assert "replies" not in explained.json()


def test_a_score_is_taken_apart_on_request(served):
    members = {"run": "translation", "text": "你爱我", "attribute": []}
    score, wrong = {"scores": [[0, 1, 1, 0]]}, {"scores": [[0, 1, 99, 0]]}
    answer, refused = ask(
        served, ("/attribution", members | score), ("/attribution", members | wrong)
    )
    (example,) = Document.from_json(answer.text).examples
    scores = example.stream.scores
    assert {one.kind for one in scores} == {"encoder", "decoder", "cross"}
    assert {(one.layer, one.head, one.query, one.key) for one in scores} == {(0, 1, 1, 0)}
    assert {(one.layer, one.head) for one in example.circuits} == {(0, 1)}
    assert example.importances == ()
    assert "scores must be of tokens of the text" in refusal(refused, 422)


def test_what_explains_nothing_says_so(served, tmp_path):
    save_bert(tmp_path, "BertModel")
    models = {"bare": Checkpoint.load(tmp_path)}
    runs, answer = ask(models, ("/runs", None), ("/attribution", {"text": "the cat"}))
    assert runs.json()["runs"][0]["explains"] is False
    assert "run must be one whose answers are explained; got one of" in refusal(answer, 422)


def test_rows_are_those_of_the_edited_model(served):
    members = {"run": "translation", "text": "你爱我", "target": "I love", "kind": "cross"}
    edits = [{"kind": "encoder", "layer": 0}]
    plain, edited = ask(
        served, ("/attention/rows", members), ("/attention/rows", {**members, "edits": edits})
    )
    assert plain.json()["weights"] != edited.json()["weights"]


def heads(**changes):
    return {"text": "the cat", "edits": [{"kind": "decoder", "layer": 0, "heads": [0], **changes}]}


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (heads(heads=[7]), "head must be below 3, the heads of .*; got"),
        (heads(layer=9), "layer must be one that attended: decoder 0, "),
        (heads(kind="encoder"), "layer must be one that attended"),
        (heads(kind="heads"), r"edits\[0\].kind must be 'cross', 'encoder' or 'd"),
        (heads(factor=3), r"edits\[0\].factor must be at most 2; got 3"),
        (heads(factor="a"), r"edits\[0\].factor must be a number; got 'a'"),
        (heads(heads=[]), r"edits\[0\].heads must be at least 1 long"),
        ({"text": "a", "edits": []}, "edits must be at least 1 long"),
        ({"text": "a" * 78}, "text must be at most 77 tokens long"),
        ({"text": "a" * 81}, "text must be at most 80 characters long"),
        ({"text": "a", "target": "b"}, "target must be left out for a run of l"),
        ({"text": "a", "beam_size": 2}, "beam_size must be left out"),
    ],
)
def test_what_is_wrong_is_refused_and_the_next_is_answered(members, message, served):
    good = ("/attention", {"text": "the cat"})
    refused, *others = ask(served, ("/attention", members), good, good, max_looked=80)
    assert re.search(message, refusal(refused, 422))
    assert [each.status_code for each in others] == [200, 200]


def test_a_checkpoint_answers_attention_alone_and_runs_have_names(served):
    requests = [("/predict", {"text": "a"}), ("/attention/rows", {"text": "a"})]
    *others, unknown = ask(served, *requests, ("/attention", {"text": "a", "run": "gpt"}))
    for each in others:
        assert "must be one that regard trained to be asked this; got 'gpt2'" in refusal(each, 422)
    assert "run must be one of gpt2, bert, " in refusal(unknown, 404)


def test_the_list_has_its_task_and_the_page_an_example_of_it(served):
    models = {name: served[name] for name in ("gpt2", "bert")}
    runs, schema = ask(models, ("/runs", None), ("/openapi.json", None))
    first, second = runs.json()["runs"]
    assert first == {
        "name": "gpt2",
        "task": "language_modelling",
        "model": "GPT2LMHeadModel",
        "parameters": sum(each.numel() for each in models["gpt2"].model.parameters()),
        "source_language": None,
        "target_language": None,
        "beam_size": None,
        "max_tokens": 77,
        "explains": True,
    }
    assert second["task"] == "classification"
    bodies = schema.json()["paths"]
    content = bodies["/attention"]["post"]["requestBody"]["content"]["application/json"]
    (answer,) = ask(models, ("/attention", content["example"]))
    assert answer.status_code == 200, answer.text
