"""Every kind of prepared model against the model: what it forwards, refuses, shows and copies."""

from functools import partial

import pytest
import torch

from regard.attention import observe
from regard.attention.observing import editing
from regard.inference.look import mean_weights
from regard.runtime import base, prepared
from regard.runtime.recurrent.models import PreparedRecurrentLm, PreparedRnnSeq2Seq
from regard.runtime.transformer.models import PreparedDecoder, PreparedTransformer

from .conftest import (
    VOCAB,
    language_model,
    recurrent_language_model,
    recurrent_translator,
    shaken,
    translator,
)

pytestmark = pytest.mark.usefixtures("as_users_have_it")

KINDS = {
    PreparedTransformer: partial(translator, positions="learned"),
    PreparedRnnSeq2Seq: partial(recurrent_translator, attention="location"),
    PreparedDecoder: language_model,
    PreparedRecurrentLm: recurrent_language_model,
}
every_kind = pytest.mark.parametrize("kind", KINDS)
translators = pytest.mark.parametrize("kind", list(KINDS)[:2])


def source(rows=5, longest=7):
    return torch.randint(4, VOCAB, (rows, longest)), torch.randint(1, longest + 1, (rows,))


@every_kind
def test_what_stands_around_the_steps_is_the_models(kind):
    model = KINDS[kind]()
    runtime = prepared(model)
    assert type(runtime) is kind
    assert not runtime.training
    inputs = source() if "target_embedding" in model._modules else (source()[0],)
    inputs = (*inputs, torch.randint(4, VOCAB, (5, 3))) if len(inputs) == 2 else inputs
    states, expected = runtime(*inputs), model(*inputs)
    if isinstance(expected, tuple):
        states, expected = states[0], expected[0]
    torch.testing.assert_close(states, expected, atol=0, rtol=0)
    torch.testing.assert_close(runtime.project(states), model.project(states), atol=0, rtol=0)
    for name in ("max_length", "begins_source", "output_dim", "is_recurrent"):
        assert getattr(runtime, name, None) == getattr(model, name, None)


@every_kind
def test_only_float32_is_prepared_and_only_where_loops_can_be_compiled(kind, monkeypatch):
    model = KINDS[kind]()
    with monkeypatch.context() as patch:
        patch.setattr(base, "why_not", lambda: "numba is not here")
        assert kind.refuse(model) == "numba is not here"
        assert prepared(model) is model
    assert isinstance(prepared(model), kind)
    assert kind.refuse(model.double()) == "it is not in float32 on a CPU"
    assert prepared(model) is model


@pytest.mark.parametrize("look", [observe, editing])
def test_nothing_is_prepared_while_somebody_observes_or_edits(look):
    model = translator()
    with look(lambda call: None):
        assert prepared(model) is model
    assert prepared(model) is not model


REFUSED = [
    (translator, {"copy": True}, "it copies words"),
    (translator, {"positions": "t5"}, "its positions are relative"),
    (translator, {"positions": "relative"}, "its positions are relative"),
    (translator, {"score": "additive"}, "its score is no dot product"),
    (translator, {"norm_kind": "batch"}, "its norm is that of a batch"),
    (recurrent_translator, {"copy": True}, "it copies words"),
    *(
        (recurrent_translator, options, "it does not look at all places alike")
        for options in (
            {"coverage": True},
            {"hard": True},
            {"local": "monotonic"},
            {"local": "predictive"},
            {"attention": "mixture"},
        )
    ),
]


@pytest.mark.parametrize(("make", "options", "reason"), REFUSED)
def test_what_cannot_be_prepared_stays_as_it_is(make, options, reason):
    kind = PreparedTransformer if make is translator else PreparedRnnSeq2Seq
    model = make(**options)
    assert kind.refuse(model) == reason
    assert prepared(model) is model


@translators
def test_what_is_prepared_again_has_learned_more(kind):
    model = KINDS[kind]()
    inputs, token = source(), torch.full((5,), 2)
    before, _ = prepared(model).step(token, prepared(model).start(*inputs))
    shaken(model)
    runtime = prepared(model)
    after, _ = runtime.step(token, runtime.start(*inputs))
    with torch.no_grad():
        expected, _ = model.step(token, model.start(*inputs))
    torch.testing.assert_close(after, expected, atol=3e-5, rtol=0)
    assert (after - before).abs().max() > 0.01


@translators
@pytest.mark.parametrize("rows", [1, 8, 9, 64, 65, 150])
def test_all_rows_are_reached_in_blocks(kind, rows):
    model = KINDS[kind]()
    runtime, inputs = kind(model), source(rows, 3)
    token = torch.randint(4, VOCAB, (rows,))
    with torch.no_grad():
        expected, _ = model.step(token, model.start(*inputs))
    values, tokens, _ = runtime.steps.best(token, runtime.start(*inputs), 2, [])
    torch.testing.assert_close(values, expected.topk(2).values, atol=3e-5, rtol=0)
    torch.testing.assert_close(values, expected.gather(1, tokens), atol=3e-5, rtol=0)


WATCHED = [
    partial(recurrent_translator, decoder=decoder, attention=attention, cell="lstm")
    for decoder in ("bahdanau", "luong")
    for attention in ("additive", "general", "location")
]


@pytest.mark.parametrize("make", [translator, *WATCHED])
@pytest.mark.parametrize("method", ["step", "best"])
def test_an_observer_of_a_step_gets_its_attention(make, method):
    model, inputs, token = make(), source(), torch.full((5,), 2)
    runtime = prepared(model)
    calls, expected, rows = [], [], torch.tensor([4, 4, 0, 2])
    with torch.no_grad():
        state, runtime_state = model.start(*inputs), runtime.start(*inputs)
        for _ in range(3):
            with observe(expected.append):
                _, state = model.step(token, state)
            with observe(calls.append):
                if method == "step":
                    _, runtime_state = runtime.step(token, runtime_state)
                else:
                    *_, runtime_state = runtime.steps.best(token, runtime_state, 3, [])
            state, runtime_state, token = (
                state.select(rows),
                runtime_state.select(rows),
                token[rows] + 3,
            )
            rows = torch.tensor([1, 0, 3, 2])
    expected = [call for call in expected if call.kind == "cross"]
    layers = [0, 1] if make is translator else [0]
    assert [(call.kind, call.layer) for call in calls] == [("cross", n) for n in layers] * 3
    for call_, reference in zip(calls, expected, strict=True):
        torch.testing.assert_close(mean_weights(call_), mean_weights(reference), atol=1e-5, rtol=0)
