"""Every kind of prepared model against the model: what it forwards, refuses, shows and copies."""

import pickle
from copy import deepcopy
from functools import partial

import pytest
import torch
from torch import nn

from regard.attention import observe
from regard.attention.observing import editing
from regard.decoding import greedy
from regard.errors import SettingError, ShapeError, TokenError
from regard.inference.look import mean_weights
from regard.kernels import machine_code
from regard.kernels.compiling import Loop
from regard.layers import RecurrentEncoder
from regard.models import Classifier, ClassifierConfig, Encoder, EncoderConfig
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
@pytest.mark.parametrize("copied", [lambda value: pickle.loads(pickle.dumps(value)), deepcopy])
def test_a_used_one_is_copied_and_pickled_with_its_model(kind, copied):
    runtime, ids, lengths = prepared(KINDS[kind]()), *source()
    token = torch.full((5,), 4)
    expected, _ = runtime.steps(token, runtime.start(ids, lengths))
    other = copied(runtime)
    assert type(other) is kind
    assert not other.training
    assert other.model is not runtime.model
    logits, _ = other.steps(token, other.start(ids, lengths))
    assert torch.equal(logits, expected)


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


def test_what_is_prepared_is_not_used_where_attention_is_edited():
    for make in KINDS.values():
        runtime, text = prepared(make()), source(2, 4)
        state = runtime.start(*text)
        with editing(lambda call: None):
            for use in (
                lambda: runtime.start(*text),  # noqa: B023  (called at once)
                lambda: runtime.step(torch.tensor([4, 5]), state),  # noqa: B023
            ):
                with pytest.raises(SettingError, match="must not be prepared where its attention"):
                    use()
    with pytest.raises(SettingError, match="model must be a module of torch; got 'model'"):
        prepared("model")


IDS = rf"token ids must be from 0 to {VOCAB - 1}; got"


@every_kind
@pytest.mark.parametrize("is_prepared", [True, False])
def test_a_step_takes_only_tokens_and_states_of_its_own(kind, is_prepared):
    model, (ids, lengths) = KINDS[kind](), source(2, 4)
    model = prepared(model) if is_prepared else model
    state, token = model.start(ids, lengths), torch.tensor([4, 5])
    for bad in (VOCAB, -1, 2**62):
        with pytest.raises(TokenError, match=IDS):
            model.step(torch.tensor([4, bad]), state)
        with pytest.raises(TokenError, match=IDS):
            model.start(torch.tensor([[4, bad]]), torch.tensor([2]))
    for rows in (1, 3, 1000):
        with pytest.raises(
            ShapeError, match=rf"token must be one for each .*\(2,\); got \({rows},"
        ):
            model.step(torch.full((rows,), 4), state)
    for bad in (-1, 2):
        with pytest.raises(ShapeError, match=f"rows must be from 0 to 1, .*; got {bad}"):
            state.select(torch.tensor([bad]))
    with pytest.raises(ShapeError, match=r"token must be whole numbers; got torch.float32"):
        model.step(token.float(), state)
    with pytest.raises(SettingError, match="state must be "):
        model.step(token, prepared(translator()).start(ids, lengths))
    for wrong in ([4, 5], [-1, 3], [4], [4, 4, 4]):
        with pytest.raises(ShapeError, match="lengths must be "):
            model.start(ids, torch.tensor(wrong))


@every_kind
@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.uint8])
def test_integers_of_any_width_are_read_by_the_same_loops(kind, dtype, monkeypatch):
    runtime, (ids, lengths) = prepared(KINDS[kind]()), source(2, 4)
    token = torch.tensor([4, 5])
    expected = runtime.step(token, runtime.start(ids, lengths))[0]
    monkeypatch.setattr(Loop, "dispatcher", lambda self: pytest.fail("compiled anew"))
    monkeypatch.setattr(machine_code, "load", lambda *names: pytest.fail("looked for anew"))
    state = runtime.start(ids.to(dtype), lengths.to(dtype))
    assert torch.equal(runtime.step(token.to(dtype), state)[0], expected)


@pytest.mark.parametrize("is_prepared", [True, False])
@pytest.mark.parametrize("pooling", ["mean", "first", "maximum", "query"])
def test_a_text_without_tokens_has_no_class(is_prepared, pooling):
    sizes = {"model_dim": 24, "num_heads": 4, "num_layers": 1, "ffn_dim": 29}
    encoder = Encoder(EncoderConfig(**sizes), vocab_size=VOCAB)
    model = shaken(Classifier(ClassifierConfig(pooling=pooling), encoder, num_classes=3))
    model = prepared(model) if is_prepared else model
    ids = torch.full((2, 5), 4)
    with pytest.raises(ShapeError, match=r"lengths must be from 1 to 5, .*; got 0 to 5\. Nothing"):
        model(ids, torch.tensor([5, 0]))
    for wrong in ([5, 6], [5], [5, 5, 5], [-1, 2]):
        with pytest.raises(ShapeError, match="lengths must be "):
            model(ids, torch.tensor(wrong))
    ids[1, 2] = VOCAB
    with pytest.raises(TokenError, match=IDS):
        model(ids, torch.tensor([5, 3]))


@pytest.mark.parametrize("is_prepared", [True, False])
def test_a_recurrence_reads_no_more_than_there_is(is_prepared):
    encoder = RecurrentEncoder("gru", 3, 4).eval()
    encoder = prepared(encoder) if is_prepared else encoder
    for wrong in ([5, 6], [5], [5, 5, 5], [-1, 2], [2**62, 1]):
        with pytest.raises(ShapeError, match="lengths must be "):
            encoder(torch.ones(2, 5, 3), torch.tensor(wrong))


def test_packed_weights_take_states_of_their_width_alone():
    linear, encoder = prepared(nn.Linear(4, 3)), prepared(RecurrentEncoder("gru", 3, 4).eval())
    for states in (torch.ones(2, 8), torch.ones(2, 3), torch.ones(2, 4).double()):
        with pytest.raises(ShapeError, match="states must be of width 4, in float32; got"):
            linear(states)
    with pytest.raises(ShapeError, match="inputs must be of width 3, in float32; got"):
        encoder(torch.ones(2, 5, 2), torch.tensor([5, 2]))


def test_the_likeliest_are_as_many_as_there_are_tokens():
    runtime = prepared(translator())
    state, token = runtime.start(*source(2, 4)), torch.tensor([4, 5])
    for count in (0, -1, VOCAB + 1):
        with pytest.raises(SettingError, match="count must be at "):
            runtime.steps.best(token, state, count, [])
    for hidden in ([VOCAB], [-1]):
        with pytest.raises(TokenError, match=f"hidden must be from 0 to {VOCAB - 1}; got"):
            runtime.steps.best(token, state, 3, hidden)
    with pytest.raises(ShapeError, match="batch_size must be the rows of the state, 2; got 1"):
        greedy(runtime.steps, state, batch_size=1, bos_id=2, eos_id=3, max_lengths=4)


REFUSED = [
    (translator, {"copy": True}, "it copies words"),
    (translator, {"positions": "t5"}, "its positions are relative"),
    (translator, {"positions": "relative"}, "its positions are relative"),
    (translator, {"score": "additive"}, "its score is no dot product"),
    (translator, {"norm_kind": "batch"}, "its norm is that of a batch"),
    (recurrent_translator, {"copy": True}, "it copies words"),
    *(
        (recurrent_translator, options, "it does not look at all positions alike")
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
