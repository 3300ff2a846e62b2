"""Linear maps in int8 against those in float, and in float32 against those in float64."""

import pytest
import torch
from tests.cases import pairwise
from torch import nn

from regard.runtime.products import Int8Embedding, Int8Linear, Linear

pytestmark = pytest.mark.usefixtures("as_users_have_it")

O, I = 37, 64  # noqa: E741  (the letters of the shapes there)


def linear(*, bias=True):
    return nn.Linear(I, O, bias=bias).requires_grad_(False)


def bound(states, weight):
    """How far a product may be from the one in float: half a step of each side's rounding, I times.

    A state is rounded in steps of its row's largest over 127 or, by pairs, more finely; a weight in
    steps of 1/127.
    """
    largest = states.abs().amax(dim=-1, keepdim=True)
    of_states = largest / 254 * weight.abs().sum(dim=1)
    of_weights = states.abs().sum(dim=-1, keepdim=True) * weight.abs().amax(dim=1) / 254
    both = largest / 127 * weight.abs().amax(dim=1) / 254 * weight.shape[1]
    return 1.001 * (of_states + of_weights + both) + 1e-6


@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("bias", [True, False])
def test_a_product_is_that_in_float_to_its_rounding(size, bias):
    plain = linear(bias=bias)
    states = size * torch.randn(3, 5, I)
    outputs, expected = Int8Linear(plain)(states), plain(states)
    assert outputs.dtype == torch.float32
    assert ((outputs - expected).abs() <= bound(states, plain.weight)).all()
    # What the errors come to is far below the bound, as roundings are to both sides.
    assert (outputs - expected).norm() < 0.03 * (states @ plain.weight.T).norm()


def test_an_answer_does_not_depend_on_its_neighbours():
    linear_int8, states = Int8Linear(linear()), torch.randn(130, I)
    batched = linear_int8(states)
    for rows in ([5], [5, 6], [129, 5, 5, 0], list(range(64)), list(range(65))):
        assert torch.equal(linear_int8(states[rows]), batched[rows])
    loud = states.clone()
    loud[1::2] *= 1000
    assert torch.equal(linear_int8(loud)[::2], batched[::2])
    assert torch.equal(linear_int8(states.view(2, 65, I)), batched.view(2, 65, O))


@pytest.mark.parametrize("scale", [1.0, 8.0])
def test_vectors_are_those_of_the_table_to_their_rounding(scale):
    table = torch.randn(O, I)
    table[7] *= 1e3
    table[9] = 0
    ids = torch.tensor([[7, 0, 36], [9, 7, 5]])
    vectors = Int8Embedding(table, scale)(ids)
    half_a_step = table.abs().amax(dim=1)[ids, None] / 254 * scale
    assert ((vectors - scale * table[ids]).abs() <= 1.001 * half_a_step).all()
    assert vectors[1, 0].eq(0).all()


def test_logits_are_the_products_with_the_table_and_not_scaled():
    table, states, bias = torch.randn(O, I), torch.randn(5, I), torch.randn(O)
    embedding = Int8Embedding(table, 8.0)
    expected = states @ table.T
    assert ((embedding.logits(states) - expected).abs() <= bound(states, table)).all()
    torch.testing.assert_close(embedding.logits(states, bias), embedding.logits(states) + bias)
    assert torch.equal(embedding.logits(states[2:3]), embedding.logits(states)[2:3])


@pairwise(
    rows=[1, 2, 3, 4, 5, 11, 61],
    outputs=[1, 2, 3, 37],
    width=[3, 8, 29, 64],
    has_bias=[True, False],
)
def test_products_are_those_of_float64(rows, outputs, width, has_bias):
    linear, states = nn.Linear(width, outputs, bias=has_bias), torch.randn(rows, width)
    product = Linear.of(linear.weight, linear.bias)(states)
    torch.testing.assert_close(product, linear.double()(states.double()).float(), atol=2e-6, rtol=0)


@pytest.mark.parametrize(("width", "outputs"), [(64, 100), (29, 37), (1032, 61)])
def test_a_state_has_the_same_product_in_every_batch_and_with_any_threads(width, outputs, threads):
    mapped = Linear.of(torch.randn(outputs, width), torch.randn(outputs))
    states = torch.randn(300, width)
    torch.set_num_threads(1)
    alone = torch.cat([mapped(row[None]) for row in states])
    for count in (1, 3, 16):
        torch.set_num_threads(count)
        for rows in (1, 2, 3, 4, 5, 7, 13, 300):
            assert mapped(states[:rows]).equal(alone[:rows])


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_weights_and_states_that_lie_across_are_taken_as_they_are_meant(rows):
    weight, states = torch.randn(24, 7).T, torch.randn(24, rows).T
    torch.testing.assert_close(Linear.of(weight, None)(states), states @ weight.T)


def test_numbers_that_are_none_stay_in_their_rows():
    states = torch.randn(6, 32)
    states[2, 5], states[4, 31] = torch.nan, torch.inf
    outputs = Linear.of(torch.rand(5, 32), None)(states)
    assert outputs[2].isnan().all()
    assert outputs[4].eq(torch.inf).all()
    assert outputs[[0, 1, 3, 5]].isfinite().all()
