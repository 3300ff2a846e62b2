"""Linear maps of a few states, beside the same in float64."""

import pytest
import torch
from tests.cases import pairwise
from torch import nn

from regard.runtime.products import Linear, projection_of

pytestmark = pytest.mark.usefixtures("as_users_have_it")


@pytest.fixture
def threads():
    """Whoever changes their number leaves it as it was."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pairwise(
    rows=[1, 2, 3, 4, 5, 11, 61],
    outputs=[1, 2, 3, 37],
    width=[3, 8, 29, 64],
    has_bias=[True, False],
)
def test_products_are_those_of_float64(rows, outputs, width, has_bias):
    linear, states = nn.Linear(width, outputs, bias=has_bias), torch.randn(rows, width)
    found = projection_of(linear)(states)
    torch.testing.assert_close(found, linear.double()(states.double()).float(), atol=2e-6, rtol=0)


@pytest.mark.parametrize(("width", "outputs"), [(64, 100), (29, 37), (1032, 61)])
def test_a_state_has_the_same_product_in_every_batch_and_with_any_threads(width, outputs, threads):
    mapped = Linear(torch.randn(outputs, width), torch.randn(outputs))
    states = torch.randn(300, width)
    torch.set_num_threads(1)
    alone = torch.cat([mapped(row[None]) for row in states])
    for count in (1, 3, 16):
        torch.set_num_threads(count)
        for rows in (1, 2, 3, 4, 5, 7, 13, 300):
            assert mapped(states[:rows]).equal(alone[:rows])


def test_weights_that_lie_across_are_taken_as_they_are_meant():
    weight, states = torch.randn(24, 7).T, torch.randn(2, 24)
    torch.testing.assert_close(Linear(weight, None)(states), states @ weight.T)


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_states_that_lie_across_are_taken_as_they_are_meant(rows):
    weight, states = torch.randn(7, 24), torch.randn(24, rows).T
    torch.testing.assert_close(Linear(weight, None)(states), states @ weight.T)


def test_numbers_that_are_none_stay_in_their_rows():
    states = torch.randn(6, 32)
    states[2, 5], states[4, 31] = torch.nan, torch.inf
    found = Linear(torch.rand(5, 32), None)(states)
    assert found[2].isnan().all()
    assert found[4].eq(torch.inf).all()
    assert found[[0, 1, 3, 5]].isfinite().all()


def test_what_is_no_map_in_float32_stays_as_it_is():
    norm, nothing = nn.LayerNorm(4), torch.randn(2, 4)
    assert projection_of(norm) is norm
    assert projection_of(None)(nothing) is nothing
