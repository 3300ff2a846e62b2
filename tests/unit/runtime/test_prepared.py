"""Every kind of prepared model beside the model: what it forwards, refuses, shows and copies."""

from functools import partial

import pytest
import torch

from regard.attention import observe
from regard.attention.observing import editing
from regard.inference.look import mean_weights
from regard.runtime import (
    PreparedDecoder,
    PreparedRecurrentLm,
    PreparedRnnSeq2Seq,
    PreparedTransformer,
    base,
    prepared,
)

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
    made = prepared(model)
    assert type(made) is kind
    assert not made.training
    given = source() if "target_embedding" in model._modules else (source()[0],)
    given = (*given, torch.randint(4, VOCAB, (5, 3))) if len(given) == 2 else given
    states, right = made(*given), model(*given)
    if isinstance(right, tuple):
        states, right = states[0], right[0]
    torch.testing.assert_close(states, right, atol=0, rtol=0)
    torch.testing.assert_close(made.project(states), model.project(states), atol=0, rtol=0)
    for name in ("max_length", "begins_source", "output_dim", "is_recurrent"):
        assert getattr(made, name, None) == getattr(model, name, None)


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
def test_nothing_is_prepared_while_somebody_looks_or_edits(look):
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
    given, token = source(), torch.full((5,), 2)
    before, _ = prepared(model).step(token, prepared(model).start(*given))
    shaken(model)
    made = prepared(model)
    after, _ = made.step(token, made.start(*given))
    with torch.no_grad():
        expected, _ = model.step(token, model.start(*given))
    torch.testing.assert_close(after, expected, atol=3e-5, rtol=0)
    assert (after - before).abs().max() > 0.01


@translators
@pytest.mark.parametrize("rows", [1, 8, 9, 64, 65, 150])
def test_all_rows_are_reached_in_blocks(kind, rows):
    model = KINDS[kind]()
    made, given = kind(model), source(rows, 3)
    token = torch.randint(4, VOCAB, (rows,))
    with torch.no_grad():
        expected, _ = model.step(token, model.start(*given))
    values, tokens, _ = made.steps.best(token, made.start(*given), 2, [])
    torch.testing.assert_close(values, expected.topk(2).values, atol=3e-5, rtol=0)
    torch.testing.assert_close(values, expected.gather(1, tokens), atol=3e-5, rtol=0)


WATCHED = [
    partial(recurrent_translator, decoder=decoder, attention=attention, cell="lstm")
    for decoder in ("bahdanau", "luong")
    for attention in ("additive", "general", "location")
]


@pytest.mark.parametrize("make", [translator, *WATCHED])
@pytest.mark.parametrize("way", ["step", "best"])
def test_whoever_observes_a_step_is_shown_what_it_looks_at(make, way):
    model, given, token = make(), source(), torch.full((5,), 2)
    made = prepared(model)
    seen, right, rows = [], [], torch.tensor([4, 4, 0, 2])
    with torch.no_grad():
        state, ready = model.start(*given), made.start(*given)
        for _ in range(3):
            with observe(right.append):
                _, state = model.step(token, state)
            with observe(seen.append):
                if way == "step":
                    _, ready = made.step(token, ready)
                else:
                    *_, ready = made.steps.best(token, ready, 3, [])
            state, ready, token = state.select(rows), ready.select(rows), token[rows] + 3
            rows = torch.tensor([1, 0, 3, 2])
    right = [call for call in right if call.kind == "cross"]
    layers = [0, 1] if make is translator else [0]
    assert [(call.kind, call.layer) for call in seen] == [("cross", n) for n in layers] * 3
    for one, other in zip(seen, right, strict=True):
        torch.testing.assert_close(mean_weights(one), mean_weights(other), atol=1e-5, rtol=0)
