import json

import pytest
import torch
from tests.looking import look_at, look_into
from tests.unit.inference.conftest import untrained

from regard.attention import AttentionCall, observe
from regard.tasks.questions.multiple_choice import Choices
from regard.tasks.questions.pair_matching import LabelledPair
from regard.text.reading.questions import Answer, Question
from regard.viewer import Document
from regard.viewer.drawing import draw_answer

TRANSFORMER = {"type": "transformer", "model_dim": 8, "num_heads": 2, "num_layers": 3, "ffn_dim": 7}
MATCH = {"type": "match", "embed_dim": 6, "hidden_dim": 5, "compares": True}
ESIM = {"type": "esim", "embed_dim": 6, "hidden_dim": 5}
CHARACTERS = {"tokenizer": {"type": "characters"}}
CONTEXT = "南京大学成立于1902年。"
EXAMPLES = {
    "question_answering": [Question("何时成立？", CONTEXT, (Answer("1902年", 7),))],
    "pair_matching": [
        LabelledPair("何时", CONTEXT, "same", ""),
        LabelledPair("谁", "他", "no", ""),
    ],
    "multiple_choice": [Choices("何时？", CONTEXT, ("1902年", "不知"), 0, "")],
}
ASKED = {
    "question_answering": f"何时成立？\t{CONTEXT}",
    "pair_matching": "何时？\t成立于",  # as long as each other
    "multiple_choice": json.dumps(
        {"question": "何时？", "context": CONTEXT, "choices": ["1902年", "不知"]}
    ),
}


def a_labeller(task, model, **sections):
    return untrained({"task": task, "model": model, **CHARACTERS, **sections}, EXAMPLES[task])


def calls_of(labeller, request):
    """Every call of attention by kind and layer, as the model makes them."""
    task, calls = labeller.task, list[AttentionCall]()
    batch = task.collate(task.encode([task.request(request, "here")]))
    with torch.no_grad(), observe(calls.append):
        task.predict(labeller.model.eval(), batch)
    return {(call.kind, call.layer): call.weights() for call in calls}


def projections_of(example, kind="cross"):
    return {(m.layer, m.head): torch.tensor(m.rows) for m in example.maps if m.kind == kind}


def texts_of(tokens):
    return "".join(token.text for token in tokens)


def test_a_cross_encoder_looks_both_ways_in_its_row():
    labeller = a_labeller("question_answering", TRANSFORMER)
    request = ASKED["question_answering"]
    first, second = look_into(labeller, request).examples
    assert (first.label, second.label) == ("question looks at text", "text looks at question")
    assert texts_of(first.output_tokens) == "何时成立？"
    assert texts_of(first.source_tokens) == CONTEXT
    weights_of, q, n = calls_of(labeller, request), 5, len(CONTEXT)
    question, text = slice(1, 1 + q), slice(q + 2, q + 2 + n)
    for layer in range(3):
        for head in range(2):
            row = weights_of["encoder", layer][0, head]
            for example, rows, columns in ((first, question, text), (second, text, question)):
                near = {"atol": 1e-4, "rtol": 1e-3}
                cross, own = (projections_of(example, kind) for kind in ("cross", "encoder"))
                torch.testing.assert_close(cross[layer, head], row[rows, columns], **near)
                torch.testing.assert_close(own[layer, head], row[columns, columns], **near)
    (answer,) = labeller.predict([request])
    for example in (first, second):
        tokens = example.source_tokens if example is first else example.output_tokens
        marked = [t for t, tag in zip(tokens, example.answer.tags, strict=True) if tag]
        assert (marked[0].start, marked[-1].end) == (answer.start, answer.end)
    assert look_at(labeller, request) == first
    document = look_into(labeller, request)
    assert Document.from_json(document.to_json()) == document
    drawn = draw_answer(first)
    assert drawn == draw_answer(second)
    context = first.source
    marked = f"{context[: answer.start]}[{answer.answer}]{context[answer.end :]}"
    assert drawn.split("\n\n")[:2] == [first.output, " ".join(marked.split())]


@pytest.mark.parametrize("task", sorted(EXAMPLES))
def test_a_reader_that_matches_has_what_its_text_looks_at(task):
    labeller = a_labeller(task, MATCH)
    (example,) = look_into(labeller, ASKED[task]).examples
    names = {
        "question_answering": "text looks at question",
        "pair_matching": "second looks at first",
        "multiple_choice": "answer looks at text",
    }
    assert example.label == names[task]
    (answer,) = labeller.predict(
        [json.loads(ASKED[task]) if task == "multiple_choice" else ASKED[task]]
    )
    row = answer.index if task == "multiple_choice" else 0
    request = json.loads(ASKED[task]) if task == "multiple_choice" else ASKED[task]
    weights_of = calls_of(labeller, request)
    rows, columns = len(example.output_tokens), len(example.source_tokens)
    projections = projections_of(example)
    assert set(projections) == {(1, 0), (2, 0)}
    for layer in (1, 2):
        # A begin stands before the text that looks, an end behind what it looks at.
        expected = weights_of["cross", layer][row, 1 : 1 + rows, :columns]
        torch.testing.assert_close(projections[layer, 0], expected, atol=1e-4, rtol=1e-3)
    if task == "multiple_choice":
        assert texts_of(example.output_tokens) == f"何时？⟨end⟩{answer.answer}"


def test_a_pair_in_one_row_is_shown_as_a_whole_too():
    labeller = a_labeller("pair_matching", TRANSFORMER)
    first, second, both = look_into(labeller, ASKED["pair_matching"]).examples
    seen = calls_of(labeller, ASKED["pair_matching"])
    texts = [first.output, second.output]
    assert both.source == "\n".join(texts) == "何时？\n成立于"
    names = "".join(token.text for token in both.source_tokens)
    assert names == "⟨begin⟩何时？⟨end⟩成立于⟨end⟩"
    assert both.segments == (0,) * 5 + (1,) * 4
    assert both.answer.labels == first.answer.labels
    for (layer, head), rows in projections_of(both, "encoder").items():
        near = {"atol": 1e-4, "rtol": 1e-3}
        torch.testing.assert_close(rows, seen["encoder", layer][0, head], **near)
    assert len(projections_of(both, "encoder")) == 6


def test_esim_looks_once_each_way():
    labeller = a_labeller("pair_matching", ESIM)
    first, second = look_into(labeller, ASKED["pair_matching"]).examples
    weights_of = calls_of(labeller, ASKED["pair_matching"])
    tolerance = {"atol": 1e-4, "rtol": 1e-3}
    assert (set(projections_of(first)), set(projections_of(second))) == ({(0, 0)}, {(1, 0)})
    torch.testing.assert_close(
        projections_of(first)[0, 0], weights_of["cross", 0][0, :3, 1:4], **tolerance
    )
    torch.testing.assert_close(
        projections_of(second)[1, 0], weights_of["cross", 1][0, 1:4, :3], **tolerance
    )
    assert (first.output, first.source) == (second.source, second.output) == ("何时？", "成立于")


def test_a_long_text_is_looked_at_in_the_window_of_its_answer():
    labeller = a_labeller("question_answering", TRANSFORMER, data={"max_length": 6, "stride": 3})
    request = ASKED["question_answering"]
    first, _ = look_into(labeller, request).examples
    (answer,) = labeller.predict([request])
    positions = [
        position for position, t in enumerate(first.source_tokens) if t.start == answer.start
    ]
    looked_at = projections_of(first)[0, 0].sum(0)
    assert len(looked_at) == len(CONTEXT)
    assert looked_at[positions[0]] > 0
    assert int((looked_at > 0).sum()) == 6


def test_some_models_look_at_nothing():
    labeller = a_labeller("pair_matching", {"type": "recurrent", "embed_dim": 6, "hidden_dim": 5})
    (example,) = look_into(labeller, ASKED["pair_matching"]).examples
    assert example.maps == ()
    assert example.source == "何时？\n成立于"
