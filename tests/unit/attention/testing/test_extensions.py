"""The checks for scores and masks of one's own: they pass what is right and catch what is not."""

from dataclasses import dataclass

import pytest
import torch

import regard as rg
from regard.attention.masks.base import Mask
from regard.attention.masks.grid import Band, Cover
from regard.attention.scores import DotForm, Score
from regard.attention.testing import CheckError, check

GOOD_SCORES = [
    rg.ScaledDot(softcap=2.0),
    rg.Cosine(torch.tensor([[0.5], [1.0], [2.0]])),
    rg.Laplace(torch.linspace(1, 2, 11)),
    rg.Custom(lambda q, k: (q @ k.mT).tanh()),
]
GOOD_MASKS = [
    rg.window(before=1, after=2) & rg.lengths([3, 7]),
    rg.documents([0, 0, 1, 1, 1], torch.tensor([0, 0, 0, 1, 1, 1, 1])) & rg.causal(),
    rg.prefix([2, 9]) | rg.causal(),
    rg.where(lambda batch, head, query, key: (query + key + head) % 3 > batch),
]


@pytest.mark.parametrize("score", GOOD_SCORES, ids=lambda score: type(score).__name__)
def test_built_in_scores_pass(score):
    check(score)


def test_a_score_over_two_widths_passes():
    check(rg.Bilinear(torch.linspace(-1, 1, 44).reshape(11, 4)), key_dim=4)


@pytest.mark.parametrize("mask", GOOD_MASKS)
def test_built_in_masks_pass(mask):
    check(mask)


@dataclass(frozen=True, eq=False)
class Changed(Score):
    """A scaled dot product with one thing changed."""

    dot: object = None
    floats: int = 1
    power: float = 1.0

    def tensors(self):
        return ()

    def check(self, query, key):
        pass

    def tile(self, query, key, *tensors):
        if self.floats == 0:
            query = query.detach()
        scores = (query[..., :, None, :] * key[..., None, :, :]).sum(-1)
        return scores * self.power

    def as_dot(self, query, key):
        return self.dot and self.dot(query, key)

    def floats_per_pair(self, dim):
        return self.floats


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (rg.Custom(lambda q, k: (q @ k.mT).softmax(-1)), "the same number in any company"),
        (Changed(dot=lambda q, k: DotForm(q, k, 2.0)), r"as_dot must be the same as score\.tile"),
        (Changed(floats=0), "differentiable by autograd"),
        (Changed(floats=1), "floats_per_pair must say how many"),
    ],
)
def test_scores_that_do_not_do_what_they_say_are_caught(score, message):
    with pytest.raises(CheckError, match=message):
        check(score)


@dataclass(frozen=True, eq=False)
class Scaled(Score):
    """A dot product times a learned scale, which may be forgotten in either place."""

    scale: torch.Tensor
    lists: bool = True
    uses: bool = True

    def tensors(self):
        return (self.scale,) if self.lists else ()

    def tile(self, query, key, *tensors):
        return (tensors[0] if self.uses else self.scale) * (query @ key.mT)


@pytest.mark.parametrize(
    ("lists", "uses", "message"),
    [(False, False, "must list every tensor"), (True, False, "must use the tensors that it is")],
)
def test_a_lost_gradient_of_a_score_s_tensor_is_caught(lists, uses, message):
    check(Scaled(torch.tensor(0.5, requires_grad=True)))
    with pytest.raises(CheckError, match=message):
        check(Scaled(torch.tensor(0.5, requires_grad=True), lists, uses))


class Lying(Mask):
    """Causal, but for one answer."""

    def __init__(self, lie):
        super().__init__()
        self.lie = lie

    def check(self, grid):
        pass

    def cover(self, grid, rows, keys):
        return Cover.ALL if self.lie == "cover" and rows.start == 1 else None

    def pairs(self, grid, rows, keys):
        query = torch.arange(rows.start, rows.stop)[:, None]
        if self.lie == "pairs":
            query = query - rows.start
        return torch.arange(keys.start, keys.stop) <= query

    def extent(self, grid):
        return (1, 1, 1 if self.lie == "extent" else grid.queries, grid.keys)

    def form(self, grid):
        if self.lie == "form":
            return Band(None, -1, is_exact=False)
        return Band(-2, 0, is_exact=True) if self.lie == "exact" else Band(None, 0, is_exact=True)


@pytest.mark.parametrize(
    ("lie", "message"),
    [
        ("cover", "mask must answer for a tile as for the whole|cover must be true"),
        ("pairs", "mask must answer for a tile as for the whole"),
        ("extent", "extent must be the shape of the dense mask"),
        ("form", "form must hold every visible pair"),
        ("exact", "form must hold every visible pair"),
    ],
)
def test_masks_that_do_not_do_what_they_say_are_caught(lie, message):
    check(Lying("nothing"))
    with pytest.raises(CheckError, match=message):
        check(Lying(lie))
