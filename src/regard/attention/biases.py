"""Biases that are rules of the distance between a query and a key, worked out tile by tile.

A float tensor is a bias too, and needs nothing from here.
"""

from abc import ABC, abstractmethod
from math import log
from typing import ClassVar, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.masks.grid import OpenRange
from regard.attention.scores.base import check_tensor
from regard.checks import check_count, check_finite, check_flag, check_whole
from regard.errors import ShapeError


class PositionBias(ABC):
    """Bias added to scores by the positions of query and key.

    Attributes:
        first: The position of query 0 among the keys. None aligns the last query with the last key.
        is_of_distance_alone: Whether ``tile`` looks at nothing else, and ``mix`` adds nothing.

    Example:
        One step of distance takes one off the score:

        >>> from regard.attention import PositionBias, weights
        >>> class Near(PositionBias):
        ...     def tile(self, query, steps):
        ...         return -steps.abs().to(query.dtype)
        >>> weights(torch.zeros(1, 4), torch.zeros(3, 4), bias=Near(first=None))
        tensor([[0.0900, 0.2447, 0.6652]])
    """

    is_of_distance_alone: ClassVar[bool] = False

    def __init__(self, first: int | None) -> None:
        if first is not None:
            check_whole("first", first)
        self.first = first

    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors the bias is made with; gradients flow to them. None, unless said."""
        return ()

    def check(self, heads: int, query_dim: int, value_dim: int) -> None:  # noqa: B027
        """Raise ShapeError if the bias cannot be given to so many heads of such widths."""

    @abstractmethod
    def tile(
        self, query: Float[Tensor, "b H n D"], steps: Int[Tensor, "n m"], *tensors: Tensor
    ) -> Float[Tensor, "..."]:
        """Bias of a tile; broadcasts to (b, H, n, m).

        Args:
            query: The queries of the tile.
            steps: How far each key is after each query's own position; before it, below zero.
            tensors: Replacements of ``tensors()``.
        """

    @property
    def value_dim(self) -> int | None:
        """Required width of values; None, unless overridden, for any width."""
        return None

    def mix(
        self, weights: Float[Tensor, "b H n m"], steps: Int[Tensor, "n m"], *tensors: Tensor
    ) -> Float[Tensor, "b H n E"] | None:
        """Context added by distances; None by default, for nothing."""
        return None

    @final
    def steps(
        self,
        rows: range | OpenRange,
        keys: range | OpenRange,
        sizes: tuple[int, int],
        device: torch.device,
    ) -> Int[Tensor, "n m"]:
        """Distances from the positions of queries ``rows`` to ``keys``, of (N, M) in all."""
        first = sizes[1] - sizes[0] if self.first is None else self.first
        positions = torch.arange(first + rows.start, first + rows.stop, device=device)
        return torch.arange(keys.start, keys.stop, device=device) - positions[:, None]


def alibi(slopes: Float[Tensor, " H"] | None = None, *, first: int | None = None) -> PositionBias:
    """``−slope · |distance|``: Press, Smith & Lewis (2022), https://arxiv.org/abs/2108.12409.

    Args:
        slopes: One per head; may be learned. None gives the paper's: 2^(−8/H), 2^(−16/H), …; where
            H is no power of two, those of the next smaller one, then every other of the larger.
        first: The position of query 0 among the keys. None aligns the last query with the last key.

    Example:
        >>> from regard.attention import weights
        >>> weights(torch.zeros(1, 2, 1, 4), torch.zeros(1, 2, 3, 4), bias=alibi())[0, :, 0]
        tensor([[0.3127, 0.3329, 0.3544],
                [0.3320, 0.3333, 0.3346]])
    """
    return _Alibi(slopes, first)


def relative(
    table: Float[Tensor, "buckets H"],
    *,
    is_bidirectional: bool = True,
    max_distance: int = 128,
    first: int | None = None,
) -> PositionBias:
    """A learned number for each bucket of distances and head: Raffel et al. (2020), T5.

    https://arxiv.org/abs/1910.10683. Half of the buckets are single distances; the others grow
    logarithmically up to ``max_distance``, and the last one holds all beyond.

    Args:
        table: One row per bucket, one column per head; even in number where both directions count.
        is_bidirectional: Whether keys after the query have buckets of their own; else they share
            that of distance zero.
        max_distance: Where the last bucket begins, about.
        first: The position of query 0 among the keys. None aligns the last query with the last key.

    Raises:
        ShapeError: ``table`` has not two axes, or too few rows, or unlike numbers for directions.
        SettingError: ``max_distance`` is not beyond the buckets of single distances.

    Example:
        >>> import torch
        >>> from regard.attention import relative, weights
        >>> table = torch.tensor([[0.0], [1.0], [2.0], [3.0]])  # 4 buckets, 1 head
        >>> weights(*torch.zeros(2, 1, 3, 4), bias=relative(table, is_bidirectional=False))
        tensor([[[0.3333, 0.3333, 0.3333],
                 [0.5761, 0.2119, 0.2119],
                 [0.6652, 0.2447, 0.0900]]])
    """
    return _Relative(table, is_bidirectional, max_distance, first)


def shaw(
    key_table: Float[Tensor, "... R D"],
    value_table: Float[Tensor, "... R E"] | None = None,
    *,
    scale: float | None = None,
    first: int | None = None,
) -> PositionBias:
    """``scale · q · a[distance]``, and a value for each distance: Shaw et al. (2018).

    https://arxiv.org/abs/1803.02155, equations 3 and 4; distances beyond the tables are clipped.
    The values of distances are mixed by the mass that falls on each, in memory N × R.

    Args:
        key_table: A vector per distance −k … k, (2k + 1, D), or (H, 2k + 1, D) per head.
        value_table: The same for values, (2k + 1, E) or (H, 2k + 1, E); None leaves them out.
        scale: None is 1/sqrt(D), as ``ScaledDot`` has.
        first: The position of query 0 among the keys. None aligns the last query with the last key.

    Raises:
        ShapeError: The tables have no middle, or are not equally long.

    Example:
        >>> import torch
        >>> from regard.attention import shaw, weights
        >>> table = torch.tensor([[-9.0], [0.0], [-9.0]])  # one back, here, one on
        >>> weights(*torch.ones(2, 3, 1), bias=shaw(table)).round(decimals=2)
        tensor([[1., 0., 0.],
                [0., 1., 0.],
                [0., 0., 1.]])
    """
    return _Shaw(key_table, value_table, scale, first)


@final
class _Alibi(PositionBias):
    is_of_distance_alone = True

    def __init__(self, slopes: Tensor | None, first: int | None) -> None:
        super().__init__(first)
        if slopes is not None:
            check_tensor("slopes", slopes)
        self.slopes = slopes

    def tensors(self) -> tuple[Tensor, ...]:
        return () if self.slopes is None else (self.slopes,)

    def check(self, heads: int, query_dim: int, value_dim: int) -> None:
        if self.slopes is not None and self.slopes.shape not in ((heads,), (1,)):
            raise ShapeError(
                f"slopes must have shape (H,) = ({heads},); got {tuple(self.slopes.shape)}."
            )

    def tile(self, query: Tensor, steps: Tensor, *tensors: Tensor) -> Tensor:
        if tensors:
            (slopes,) = tensors
        else:
            slopes = query.new_tensor(alibi_slopes(query.shape[1]))
        return -slopes[:, None, None] * steps.abs().to(slopes.dtype)


@final
class _Relative(PositionBias):
    is_of_distance_alone = True

    def __init__(
        self, table: Tensor, is_bidirectional: bool, max_distance: int, first: int | None
    ) -> None:
        super().__init__(first)
        check_tensor("table", table)
        if table.dim() != 2:
            raise ShapeError(f"table must have shape (buckets, H); got {tuple(table.shape)}.")
        check_flag("is_bidirectional", is_bidirectional)
        sides = 2 if is_bidirectional else 1
        if len(table) < 2 * sides or len(table) % sides:
            raise ShapeError(
                "table must have two rows or more for each direction, and as many for both; "
                f"got {len(table)} for {sides}."
            )
        # Beyond the buckets of single distances, or there is nothing to grow logarithmically.
        check_count("max_distance", max_distance, len(table) // sides // 2 + 1)
        self.table, self.is_bidirectional, self.max_distance = table, is_bidirectional, max_distance

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.table,)

    def check(self, heads: int, query_dim: int, value_dim: int) -> None:
        if self.table.shape[1] not in (1, heads):
            raise ShapeError(
                f"table must have shape (buckets, H) = (buckets, {heads}); "
                f"got {tuple(self.table.shape)}."
            )

    def tile(self, query: Tensor, steps: Tensor, *tensors: Tensor) -> Tensor:
        (table,) = tensors
        return table[self._buckets(steps)].permute(2, 0, 1)

    def _buckets(self, steps: Tensor) -> Tensor:
        count = len(self.table)
        offset = torch.zeros_like(steps)
        if self.is_bidirectional:
            count //= 2
            offset = (steps > 0) * count
            distance = steps.abs()
        else:
            distance = (-steps).clamp_min(0)
        single = count // 2
        # In float32, as the models that were trained with it had it.
        far = single + (
            (distance.clamp_min(1).float() / single).log()
            / log(self.max_distance / single)
            * (count - single)
        ).to(steps.dtype)
        return offset + torch.where(distance < single, distance, far.clamp_max(count - 1))


@final
class _Shaw(PositionBias):
    def __init__(
        self, key_table: Tensor, value_table: Tensor | None, scale: float | None, first: int | None
    ) -> None:
        super().__init__(first)
        for name, table in (("key_table", key_table), ("value_table", value_table)):
            if table is None and name == "value_table":
                continue
            check_tensor(name, table)
            assert table is not None
            if table.dim() not in (2, 3):
                raise ShapeError(
                    f"{name} must have shape (2k + 1, D) or (H, 2k + 1, D); "
                    f"got {tuple(table.shape)}."
                )
            if table.shape[-2] != key_table.shape[-2]:
                raise ShapeError(
                    f"{name} must have a row for each of the {key_table.shape[-2]} distances; "
                    f"got {tuple(table.shape)}."
                )
        if key_table.shape[-2] % 2 == 0:
            raise ShapeError(
                "key_table must have an odd number of rows, one for each distance from −k to k; "
                f"got {key_table.shape[-2]}."
            )
        if scale is not None:
            check_finite("scale", scale)
        self.key_table, self.value_table, self.scale = key_table, value_table, scale

    @property
    def value_dim(self) -> int | None:
        return None if self.value_table is None else self.value_table.shape[-1]

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.key_table,) if self.value_table is None else (self.key_table, self.value_table)

    def check(self, heads: int, query_dim: int, value_dim: int) -> None:
        for name, table, width in (
            ("key_table", self.key_table, query_dim),
            ("value_table", self.value_table, value_dim),
        ):
            if table is not None and (
                table.shape[-1] != width or table.shape[:-2] not in ((), (1,), (heads,))
            ):
                raise ShapeError(
                    f"{name} must have shape (2k + 1, {width}) or (H, 2k + 1, {width}) with "
                    f"H = {heads}; got {tuple(table.shape)}."
                )

    def tile(self, query: Tensor, steps: Tensor, *tensors: Tensor) -> Tensor:
        scale = query.shape[-1] ** -0.5 if self.scale is None else self.scale
        of_distances = (query * scale) @ tensors[0].mT  # (b, H, n, R)
        return of_distances.gather(-1, self._indices(steps, of_distances))

    def mix(self, weights: Tensor, steps: Tensor, *tensors: Tensor) -> Tensor | None:
        if self.value_table is None:
            return None
        mass = weights.new_zeros(*weights.shape[:-1], self.value_table.shape[-2])
        mass = mass.scatter_add(-1, self._indices(steps, weights), weights)
        return mass @ tensors[1]

    def _indices(self, steps: Tensor, like: Tensor) -> Tensor:
        """The row of each distance, for every batch row and head."""
        most = self.key_table.shape[-2] // 2
        return (steps.clamp(-most, most) + most).expand(*like.shape[:-1], steps.shape[-1])


def alibi_slopes(heads: int) -> list[float]:
    """The paper's slopes; https://arxiv.org/abs/2108.12409, section 3, and its code for other H."""
    power = 1 << (heads.bit_length() - 1)
    slopes = [2 ** (-8 * (h + 1) / power) for h in range(power)]
    return slopes + [2 ** (-4 * (2 * h + 1) / power) for h in range(heads - power)]
