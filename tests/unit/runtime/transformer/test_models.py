"""A prepared Transformer and a prepared decoder give what the models give."""

import pytest
import torch
from numpy.testing import assert_array_equal
from tests.cases import two_by_two

from regard.errors import ShapeError
from regard.layers import RotaryPositions
from regard.runtime import base, in_precision, prepared
from regard.runtime.transformer import decoder, encoder, models
from regard.runtime.transformer.models import PreparedDecoder, PreparedTransformer

from ..conftest import VOCAB, check_steps, language_model, prompts, rounded_copies, translator

# Hundreds of steps, whose shapes checks would take longer than the steps.
pytestmark = pytest.mark.usefixtures("as_users_have_it")

COMMON = {
    "norm": ["pre", "post"],
    "norm_kind": ["layer", "rms"],
    "num_key_heads": [None, 1, 2],
    "window": [None, 3],
}
TRANSLATORS = COMMON | {
    "activation": ["relu", "gelu", "gelu_tanh", "silu", "swiglu"],
    "positions": ["sinusoidal", "learned", "alibi", "rotary", "none"],
    "score": ["scaled_dot", "dot"],
    "output_bias": [False, True],
    "embedding_norm": [False, True],
    "tie_embeddings": ["all", "none"],
    "values": ["states", "embeddings"],
    "norm_eps": [None, 0.03],
    "own_positions": [False, True],
    "scale_embeddings": [True, False],
    "source_begin": [False, True],
    "num_encoder_layers": [1, 2],
}
LANGUAGE_MODELS = COMMON | {
    "activation": ["relu", "gelu", "gelu_tanh", "swiglu"],
    "positions": ["sinusoidal", "learned", "alibi", "rotary"],
    "tie_embeddings": [True, False],
    "norm_eps": [1e-5, 0.03],
}


def source():
    return torch.randint(4, VOCAB, (5, 20)), torch.tensor([7, 17, 5, 1, 20])


@pytest.mark.parametrize("options", two_by_two(TRANSLATORS), ids=lambda each: each["activation"])
def test_steps_of_a_translator_are_the_models(options, monkeypatch):
    model = translator(**options)
    copies = rounded_copies(model)
    check_steps(model, PreparedTransformer(model), source(), count=9, copies=copies)
    for each in (decoder, encoder):  # all rows in one block, and in parts
        monkeypatch.setattr(each, "MOST_BYTES", 0)
    check_steps(model, PreparedTransformer(model), source(), count=4, copies=copies)


@pytest.mark.parametrize("options", two_by_two(LANGUAGE_MODELS), ids=lambda o: o["activation"])
def test_steps_of_a_language_model_are_the_models(options):
    model = language_model(**options)
    for lengths, count in (([6, 2, 4, 1], 7), ([0, 0, 0], 5)):
        check_steps(model, PreparedDecoder(model), prompts(lengths), count=count)


@pytest.mark.parametrize(
    ("positions", "lengths"),
    [
        ("learned", [1, 1]),
        ("sinusoidal", [3, 3, 3]),
        ("alibi", [31, 30]),
        ("rotary", [32, 1]),
        ("learned", [33, 33]),
        ("sinusoidal", [34, 2, 9]),
        ("alibi", [64, 64]),
        ("rotary", [65, 7]),
        ("learned", [140, 3]),
    ],
    ids=str,
)
def test_prompts_of_any_length_are_continued(positions, lengths):
    model = language_model(positions=positions, num_layers=1)
    check_steps(model, PreparedDecoder(model), prompts(lengths), count=5)


@pytest.mark.parametrize("positions", ["alibi", "rotary"])
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_prompt_is_read_as_by_itself(positions, precision, monkeypatch):
    runtime = PreparedDecoder(
        in_precision(language_model(positions=positions, window=6), precision)
    )
    monkeypatch.setattr(encoder, "_TOKENS", 20)  # in parts of two or three
    ids, lengths = prompts([9, 4, 1, 17, 12])
    together = runtime.start(ids, lengths)
    for row, length in enumerate(lengths.tolist()):
        alone = runtime.start(ids[row : row + 1, :length], lengths[row : row + 1])
        past = together.store.cache[:, together.length + 1 - length : together.length, row]
        assert_array_equal(past, alone.store.cache[:, : length - 1, 0])


def test_prompts_too_long_for_a_loop_are_read_by_the_model(monkeypatch):
    monkeypatch.setattr(models, "LONGEST", 6)
    model = language_model(positions="learned")
    check_steps(model, PreparedDecoder(model), prompts([9, 4, 1, 8]), count=5)


@pytest.mark.parametrize("make", [translator, language_model])
@pytest.mark.parametrize("token", [-1, VOCAB])
@pytest.mark.parametrize("place", [1, 2])
def test_a_token_of_another_vocabulary_is_refused(make, token, place):
    runtime = prepared(make())
    ids = torch.tensor([[5, 6, 7]])
    ids[0, place] = token
    with pytest.raises(IndexError, match=f"from 0 to {VOCAB - 1}; got"):
        runtime.start(ids, torch.tensor([3]))


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "alibi"])
def test_stores_and_positions_grow_with_answers(positions):
    model = translator(positions=positions, num_encoder_layers=1, num_decoder_layers=1)
    check_steps(model, PreparedTransformer(model), source(), count=67)
    model = language_model(positions=positions, num_layers=1, window=5)
    check_steps(model, PreparedDecoder(model), prompts([9, 4, 1]), count=60)


def test_a_short_prompt_has_learned_positions_after_its_longer_neighbours_have_none():
    model = language_model(positions="learned", max_length=9)
    runtime, inputs = PreparedDecoder(model), prompts([8, 2, 3])
    rows = torch.tensor([2, 1])
    with torch.no_grad():
        state, runtime_state = (
            model.start(*inputs).select(rows),
            runtime.start(*inputs).select(rows),
        )
        for token in torch.randint(4, VOCAB, (7, 2)):
            expected, state = model.step(token, state)
            log_probs, runtime_state = runtime.step(token, runtime_state)
            torch.testing.assert_close(log_probs, expected, atol=3e-5, rtol=0)
        with pytest.raises(ShapeError, match="at most max_length=9; got 10"):
            runtime.step(token, runtime_state)


def test_a_first_token_counts_only_without_a_prompt():
    runtime = PreparedDecoder(language_model())
    for lengths, counts in (([3, 2], False), ([0, 0], True)):
        start = runtime.start(*prompts(lengths))
        log_probs, after_another = (
            runtime.step(torch.full((2,), token), start)[0] for token in (5, 6)
        )
        assert ((log_probs - after_another).abs().max() > 0.01) == counts


@pytest.mark.parametrize("pairs", ["interleaved", "halves"])
@pytest.mark.parametrize("num_heads", [2, 6, 12])
def test_pairs_are_turned_as_their_kind_lies(pairs, num_heads):
    model = language_model(positions="rotary", num_heads=num_heads, activation="swiglu")
    for layer in model.layers:
        layer.attend.rotary = RotaryPositions(24 // num_heads, pairs=pairs, base=50.0, max_length=9)
    check_steps(model, PreparedDecoder(model), prompts([6, 2, 4]), count=9)


@pytest.mark.parametrize("options", [{}, {"activation": "gelu"}, {"activation": "swiglu"}])
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_the_best_come_from_one_loop(options, precision, monkeypatch):
    calls = []
    monkeypatch.setattr(base, "best_tokens", None)
    runtime = PreparedTransformer(in_precision(translator(**options), precision))
    decode = runtime.steps._decode
    monkeypatch.setattr(runtime.steps, "_decode", lambda *all: calls.append(1) or decode(*all))
    runtime.steps.best(torch.full((5,), 2), runtime.start(*source()), 3, [])
    assert calls == [1]


@pytest.mark.parametrize("rows", [1, 3, 5])
@pytest.mark.parametrize("options", [{}, {"norm": "pre", "norm_kind": "rms"}], ids=str)
def test_the_best_in_int8_are_those_of_its_step(options, rows):
    model = in_precision(translator(output_bias=True, tie_embeddings="none", **options), "int8")
    runtime = PreparedTransformer(model)
    inputs = torch.randint(4, VOCAB, (rows, 3)), torch.randint(1, 4, (rows,))
    token = torch.randint(4, VOCAB, (rows,))
    state, best_state = runtime.start(*inputs), runtime.start(*inputs)
    for _ in range(4):
        expected, state = runtime.step(token, state)
        values, tokens, best_state = runtime.steps.best(token, best_state, VOCAB, [])
        # A number of a state that rounds the other way moves a logit, of about 5, so far.
        torch.testing.assert_close(values, expected.gather(1, tokens), atol=0.06, rtol=0)
        token = tokens[:, 0]


def test_more_tokens_than_there_are_end_in_nothing():
    runtime = PreparedTransformer(translator())
    values, tokens, _ = runtime.steps.best(
        torch.full((5,), 2), runtime.start(*source()), VOCAB, [0, 7]
    )
    assert values[:, VOCAB - 2 :].eq(-torch.inf).all()
    assert sorted(tokens[0, : VOCAB - 2].tolist()) == [t for t in range(VOCAB) if t not in (0, 7)]


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("activation", TRANSLATORS["activation"])
@pytest.mark.parametrize("count", [1, 2])
def test_what_a_sentence_gets_from_large_weights_does_not_depend_on_the_others(
    activation, count, monkeypatch
):
    torch.set_num_threads(count)
    monkeypatch.setattr(decoder, "BYTES_A_THREAD", 1)
    for each in (decoder, encoder):
        monkeypatch.setattr(each, "MOST_BYTES", 0)
    runtime = PreparedTransformer(translator(activation=activation, num_encoder_layers=2))
    lengths, tokens = torch.randint(1, 20, (67,)), torch.randint(4, VOCAB, (67, 3))
    source = torch.randint(4, VOCAB, (67, 20))

    def steps(rows):
        state, outputs = runtime.start(source[rows], lengths[rows]), []
        for position in range(tokens.shape[1]):
            log_probs, state = runtime.step(tokens[rows, position], state)
            outputs.append(log_probs)
        return torch.stack(outputs)

    batched = steps(list(range(67)))
    for rows in ([0], [3, 7], [66, 1, 5, 9, 12], list(range(40))):
        assert steps(rows).equal(batched[:, rows])
