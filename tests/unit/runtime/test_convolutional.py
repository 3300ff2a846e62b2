"""A prepared convolutional encoder-decoder gives what the encoder-decoder gives."""

from functools import partial

import pytest
import torch

from regard.attention import observe
from regard.errors import ShapeError
from regard.inference.look import mean_weights
from regard.runtime import PreparedConvSeq2Seq, looped, prepared

from . import conftest
from .conftest import VOCAB, pairwise

# As exact as is promised.
check_steps = partial(conftest.check_steps, atol=1e-5)
# Hundreds of steps, whose shapes checks would take longer than the steps.
pytestmark = pytest.mark.usefixtures("as_users_have_it")

OPTIONS = {
    "kernel_size": [1, 3, 7],
    "num_decoder_layers": [1, 2, 3],
    "weight_norm": [True, False],
    "tie_embeddings": [True, False],
    "output_bias": [True, False],
}
LENGTHS = torch.tensor([7, 3, 5, 1, 7])


def source():
    return torch.randint(4, VOCAB, (5, 7)), LENGTHS


@pytest.mark.parametrize("options", pairwise(OPTIONS), ids=lambda each: f"{each['kernel_size']}")
def test_steps_are_the_models(options, monkeypatch):
    model, given = conftest.conv_translator(**options), source()
    made = PreparedConvSeq2Seq(model)
    with torch.no_grad():
        check_steps(model, made, model.start(*given), made.start(*given), rows=5, count=9)
    monkeypatch.setattr(looped, "MOST_BYTES", 0)  # the output beside the loop
    made = PreparedConvSeq2Seq(model)
    with torch.no_grad():
        check_steps(model, made, model.start(*given), made.start(*given), rows=5, count=4)


def test_a_state_can_be_gone_on_from_twice():
    made, token = PreparedConvSeq2Seq(conftest.conv_translator()), torch.full((5,), 2)
    _, state = made.step(token, made.start(*source()))
    expected, _ = made.step(token + 3, state)
    made.step(token + 9, state)
    found, _ = made.step(token + 3, state)
    torch.testing.assert_close(found, expected, atol=0, rtol=0)


@pytest.mark.parametrize("rows", [1, 8, 9, 64, 65, 150])
def test_all_rows_are_reached_in_blocks(rows):
    model = conftest.conv_translator()
    made = PreparedConvSeq2Seq(model)
    given = torch.randint(4, VOCAB, (rows, 3)), torch.randint(1, 4, (rows,))
    token = torch.randint(4, VOCAB, (rows,))
    with torch.no_grad():
        expected, _ = model.step(token, model.start(*given))
    values, tokens, _ = made.steps.best(token, made.start(*given), 2, [])
    torch.testing.assert_close(values, expected.topk(2).values, atol=1e-5, rtol=0)
    torch.testing.assert_close(values, expected.gather(1, tokens), atol=1e-5, rtol=0)


@pytest.mark.parametrize("way", ["step", "best"])
def test_whoever_observes_a_step_is_shown_what_it_looks_at(way):
    model, given = conftest.conv_translator(), source()
    made, token = PreparedConvSeq2Seq(model), torch.full((5,), 2)
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
            assert sorted(ready.asked) == [0, 1]
            state, ready, token = state.select(rows), ready.select(rows), token[rows] + 3
            rows = torch.tensor([1, 0, 3, 2])
    assert [(call.kind, call.layer) for call in seen] == [("cross", 0), ("cross", 1)] * 3
    for one, other in zip(seen, right, strict=True):
        torch.testing.assert_close(mean_weights(one), mean_weights(other), atol=1e-5, rtol=0)


def test_beyond_the_last_position_is_an_error():
    model = conftest.conv_translator(max_length=7)
    made = PreparedConvSeq2Seq(model)
    state, token = made.start(*source()), torch.full((5,), 2)
    for _ in range(7):
        _, state = made.step(token, state)
    with pytest.raises(ShapeError, match="7"):
        made.step(token, state)


def test_what_does_not_fit_a_cores_cache_stays_as_it_is(monkeypatch):
    model = conftest.conv_translator()
    size = sum(each.nbytes for each in model.decoder.parameters())
    monkeypatch.setattr(looped, "MOST_BYTES", size)
    assert isinstance(prepared(model), PreparedConvSeq2Seq)
    monkeypatch.setattr(looped, "MOST_BYTES", size - 1)
    assert PreparedConvSeq2Seq.refuse(model) == "it is too large for the cache of a core"
    assert prepared(model) is model


def test_only_float32_is_prepared_and_only_where_loops_can_be_compiled(monkeypatch):
    assert prepared(model := conftest.conv_translator().double()) is model
    monkeypatch.setattr(looped, "why_not", lambda: "numba is not here")
    assert prepared(model := conftest.conv_translator()) is model
