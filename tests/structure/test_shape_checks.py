"""Shapes of a function made inside of another are checked in each test that makes it."""

import jaxtyping
import pytest
import torch
from beartype import beartype
from jaxtyping import Float
from torch import Tensor


def sums(rows: Tensor) -> Tensor:
    def inside(rows: Float[Tensor, "N 3"]) -> Float[Tensor, " N"]:
        return rows.sum(-1)

    # As the import hook writes it: the name is looked up each time.
    found: Tensor = jaxtyping.jaxtyped(typechecker=beartype)(inside)(rows)
    return found


@pytest.mark.parametrize("test", ["one", "another"])
def test_the_first_makings_are_checked_in_every_test(test: str) -> None:
    for _ in range(5):
        with pytest.raises(jaxtyping.TypeCheckError):
            sums(torch.ones(2, 4))
    assert sums(torch.ones(2, 4)).shape == (2,)


def test_none_is_checked_where_checks_are_off(unchecked_shapes: None) -> None:
    assert sums(torch.ones(2, 4)).shape == (2,)
