"""A prepared Transformer gives what the Transformer gives."""

import pytest
import torch

from regard.kernels.transformer import decoder as kernels
from regard.runtime import PreparedTransformer, base, in_precision
from regard.runtime.transformer import decoder, encoder

from ..conftest import VOCAB, check_steps, pairwise, rounded_copies, translator

# Hundreds of steps, whose shapes checks would take longer than the steps.
pytestmark = pytest.mark.usefixtures("as_users_have_it")

OPTIONS = {
    "norm": ["pre", "post"],
    "norm_kind": ["layer", "rms"],
    "activation": ["relu", "gelu", "gelu_tanh", "silu", "swiglu"],
    "num_key_heads": [None, 1, 2],
    "positions": ["sinusoidal", "learned", "alibi", "rotary", "none"],
    "window": [None, 3],
    "score": ["scaled_dot", "dot"],
    "output_bias": [False, True],
    "embedding_norm": [False, True],
    "tie_embeddings": ["all", "none"],
    "values": ["states", "embeddings"],
    "norm_eps": [None, 0.03],
    "own_positions": [False, True],
    "scale_embeddings": [True, False],
}
LENGTHS = torch.tensor([7, 3, 5, 1, 7])


def source():
    return torch.randint(4, VOCAB, (5, 7)), LENGTHS


@pytest.mark.parametrize("options", pairwise(OPTIONS), ids=lambda each: str(each["activation"]))
def test_steps_are_the_models(options, monkeypatch):
    model = translator(**options)
    given = source()
    made, copies = PreparedTransformer(model), rounded_copies(model)
    with torch.no_grad():
        near = [(each, each.start(*given)) for each in copies]
        check_steps(
            model, made, model.start(*given), made.start(*given), rows=5, count=9, copies=near
        )
    monkeypatch.setattr(decoder, "MOST_BYTES", 0)  # layer by layer
    made = PreparedTransformer(model)
    with torch.no_grad():
        check_steps(model, made, model.start(*given), made.start(*given), rows=5, count=4)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_stores_and_positions_grow_with_answers(positions):
    model = translator(positions=positions, num_encoder_layers=1, num_decoder_layers=1)
    made, given = PreparedTransformer(model), source()
    with torch.no_grad():
        check_steps(model, made, model.start(*given), made.start(*given), rows=5, count=67)


@pytest.mark.parametrize(
    ("options", "precision", "loops"),
    [
        ({}, "float32", ["one"]),
        ({"activation": "gelu"}, "float32", ["one"]),
        ({"activation": "swiglu"}, "float32", ["many"]),
        ({}, "int8", ["one"]),
        ({"activation": "swiglu"}, "int8", ["many"]),
    ],
)
def test_the_best_of_a_small_model_come_from_one_loop(options, precision, loops, monkeypatch):
    calls = []
    decode_step, best_tokens = kernels.decode_step, base.best_tokens
    monkeypatch.setattr(
        kernels, "decode_step", lambda *all: calls.append("one") or decode_step(*all)
    )
    monkeypatch.setattr(base, "best_tokens", lambda *all: calls.append("many") or best_tokens(*all))
    made = PreparedTransformer(in_precision(translator(**options), precision))
    made.steps.best(torch.full((5,), 2), made.start(*source()), 3, [])
    assert calls == loops


@pytest.mark.parametrize("rows", [1, 3, 5])
@pytest.mark.parametrize("options", [{}, {"norm": "pre", "norm_kind": "rms"}], ids=str)
def test_the_best_in_int8_are_those_of_its_step(options, rows):
    model = in_precision(translator(output_bias=True, tie_embeddings="none", **options), "int8")
    made = PreparedTransformer(model)
    given = torch.randint(4, VOCAB, (rows, 3)), torch.randint(1, 4, (rows,))
    token = torch.randint(4, VOCAB, (rows,))
    state, ready = made.start(*given), made.start(*given)
    for _ in range(4):
        right, state = made.step(token, state)
        values, tokens, ready = made.steps.best(token, ready, VOCAB, [])
        # A number of a state that rounds the other way moves a logit, of about 5, so far.
        torch.testing.assert_close(values, right.gather(1, tokens), atol=0.06, rtol=0)
        token = tokens[:, 0]


def test_more_tokens_than_there_are_end_in_nothing():
    made = PreparedTransformer(translator())
    values, tokens, _ = made.steps.best(
        torch.full((5,), 2), made.start(*source()), VOCAB + 2, [0, 7]
    )
    assert values[:, VOCAB - 2 :].eq(-torch.inf).all()
    assert sorted(tokens[0, : VOCAB - 2].tolist()) == [t for t in range(VOCAB) if t not in (0, 7)]


@pytest.mark.parametrize("activation", OPTIONS["activation"])
@pytest.mark.parametrize("threads", [1, 2])
def test_layer_by_layer_what_a_sentence_gets_does_not_depend_on_the_others(
    activation, threads, monkeypatch
):
    monkeypatch.setattr(decoder, "MOST_BYTES", 0)
    monkeypatch.setattr(encoder, "MOST_BYTES", 0)
    made = PreparedTransformer(translator(activation=activation, num_encoder_layers=2))
    lengths, tokens = torch.randint(1, 20, (67,)), torch.randint(4, VOCAB, (67, 3))
    source = torch.randint(4, VOCAB, (67, 20))

    def steps(rows):
        state, found = made.start(source[rows], lengths[rows]), []
        for place in range(tokens.shape[1]):
            log_probs, state = made.step(tokens[rows, place], state)
            found.append(log_probs)
        return torch.stack(found)

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        whole = steps(list(range(67)))
        for rows in ([0], [3, 7], [66, 1, 5, 9, 12], list(range(40))):
            assert steps(rows).equal(whole[:, rows])
    finally:
        torch.set_num_threads(before)
