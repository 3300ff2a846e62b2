"""Biases, each with its formula over all steps from queries to keys."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from tests.formulas.sizes import Sizes
from torch import Tensor

from regard.attention import PositionBias, alibi, relative, shaw

_FARTHEST = 9


class BiasCase(NamedTuple):
    """A bias and its formula.

    Attributes:
        make: The engine's bias, from its tensors.
        added: What is added to the scores, from the queries, the steps and the tensors.
        shapes: Of the tensors, in letters.
        moved: What is added to the value of each pair, (..., N, M, E); None is nothing.
    """

    make: Callable[..., Tensor | PositionBias]
    added: Callable[..., Tensor]
    shapes: tuple[str, ...]
    moved: Callable[..., Tensor] | None = None


def steps(sizes: Sizes) -> Tensor:
    """How far each key is after each query's place, the last of both standing together."""
    return torch.arange(sizes.M) - torch.arange(sizes.N)[:, None] - (sizes.M - sizes.N)


def _tensor(query: Tensor, steps: Tensor, bias: Tensor) -> Tensor:
    return bias


def _alibi(query: Tensor, steps: Tensor, slopes: Tensor) -> Tensor:
    return -slopes[:, None, None] / 9 * steps.abs()


def _relative(query: Tensor, steps: Tensor, table: Tensor) -> Tensor:
    """T5's buckets of one direction: single distances up to half of them, then by logarithm."""
    exact = len(table) // 2
    back = (-steps).clamp_min(0)
    share = (back.clamp_min(exact) / exact).log() / torch.tensor(_FARTHEST / exact).log()
    far = (exact + (share * exact).int()).clamp_max(len(table) - 1)
    return table[torch.where(back < exact, back, far)].permute(2, 0, 1)


def _shaw(query: Tensor, steps: Tensor, key_table: Tensor, *rest: Tensor) -> Tensor:
    vectors = key_table[..., steps.clamp(-2, 2) + 2, :]
    return (query.unsqueeze(-2) * vectors).sum(-1) / query.shape[-1] ** 0.5


def _shaw_values(steps: Tensor, key_table: Tensor, value_table: Tensor) -> Tensor:
    return value_table[..., steps.clamp(-2, 2) + 2, :]


BIASES = {
    "of keys": BiasCase(lambda bias: bias, _tensor, ("M",)),
    "of heads": BiasCase(lambda bias: bias, _tensor, ("H1M",)),
    "of queries": BiasCase(lambda bias: bias, _tensor, ("B1N1",)),
    "of pairs": BiasCase(lambda bias: bias, _tensor, ("BHNM",)),
    "alibi": BiasCase(lambda slopes: alibi(slopes / 9), _alibi, ("H",)),
    "relative": BiasCase(
        lambda table: relative(table, is_bidirectional=False, max_distance=_FARTHEST),
        _relative,
        ("8H",),
    ),
    "shaw": BiasCase(shaw, _shaw, ("5D",)),
    "shaw with values": BiasCase(shaw, _shaw, ("H5D", "5E"), _shaw_values),
}
