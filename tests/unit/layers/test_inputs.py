"""Ids and lengths are checked, whatever class of tensor holds them."""

import pytest
import torch
from torch import Tensor, nn

from regard.errors import ShapeError, TokenError
from regard.layers.inputs import texts, valid_ids


class Named(Tensor):
    """A class of a user's own, which computes as tensors do."""


def kept_as(numbers, kind):
    if kind is nn.Parameter:
        return nn.Parameter(numbers, requires_grad=False)
    return numbers.as_subclass(kind)


@pytest.mark.parametrize("kind", [Tensor, Named, nn.Parameter])
def test_numbers_of_every_class_are_looked_at(kind):
    ids = torch.tensor([[4, 9]])
    with pytest.raises(TokenError, match="from 0 to 8; got 4 to 9"):
        valid_ids("ids", kept_as(ids, kind), 9)
    with pytest.raises(ShapeError, match="from 0 to 2, the columns of ids; got 3"):
        texts("ids", ids, kept_as(torch.tensor([3]), kind))


@pytest.mark.parametrize("made", [Tensor.to_sparse, torch.nested.as_nested_tensor])
def test_numbers_without_a_place_each_are_refused(made):
    with pytest.raises(ShapeError, match="ids must be a dense tensor"):
        valid_ids("ids", made(torch.tensor([[4, 9]])), 9)
