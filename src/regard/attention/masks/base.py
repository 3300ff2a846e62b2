"""Interface of masks: True where a query may look at a key.

A mask is a small object that knows a rule, not a matrix. ``bind`` fixes the sizes; the bound mask
answers for any tile of the N×M grid whether all of it is visible, none of it, or which part. The
rules themselves are in ``rules.py``.
"""

from dataclasses import replace
from math import prod
from typing import final

import torch
from jaxtyping import Bool
from torch import Tensor

from regard.attention.masks.bound import MEMORY, BoundMask, Rule
from regard.attention.masks.grid import Band, Cover, Form, Grid, Segments, as_tensor, cut, lift
from regard.checks import check_count
from regard.errors import SettingError, ShapeError, excerpt

_NUMBERS_WRITTEN = 256
# Of so few, all are looked at sooner than a mask says whether it hides all or none.
_FEW_PAIRS = 2**10


class Mask(Rule):
    """A mask over queries and keys; join masks with ``&``, ``|`` and ``~``.

    A mask belongs to one batch and never changes: use the same object in every layer, since its
    bound forms are cached as long as it lives.

    Example:
        >>> from regard.attention import causal, lengths
        >>> print((causal() & lengths([3])).draw(4, 4))
        1 . . .
        1 1 . .
        1 1 1 .
        1 1 1 .
    """

    @final
    def bind(
        self,
        batch: int | tuple[int, ...],
        heads: int | None,
        queries: int,
        keys: int,
        device: torch.device | str = "cpu",
    ) -> BoundMask:
        """The mask at fixed sizes.

        Args:
            batch: B, or the sizes of several batch axes.
            heads: H, or None where the tensors have no axis of heads.
            queries: N.
            keys: M.
            device: Where its tensors are wanted.

        Raises:
            ShapeError: The mask does not fit these sizes, or lives on another device.
        """
        is_traced = torch.compiler.is_compiling()
        # Tensors made in inference mode cannot be saved for a backward pass later.
        sizes = (batch, heads, queries, keys, device, torch.is_inference_mode_enabled())
        results = None if is_traced else MEMORY.get(self, queries * keys, sizes)
        if results is not None:
            return BoundMask.of_results(self, results)
        axes = (batch,) if isinstance(batch, int) else batch
        grid = Grid(axes, heads, queries, keys, torch.device(device))
        self.check(grid)
        bound = BoundMask(self, grid)
        if not is_traced:
            MEMORY.keep(self, queries * keys, sizes, vars(bound))
        return bound

    @final
    def draw(self, queries: int, keys: int) -> str:
        """The mask as text: a line per query, ``1`` where it sees a key and ``.`` where not.

        A mask that differs between batch rows or heads is drawn once for each, an empty line
        between.

        Example:
            >>> from regard.attention import causal
            >>> print(causal().draw(2, 4))
            1 1 1 .
            1 1 1 1
        """
        check_count("queries", queries, 0)
        check_count("keys", keys, 0)
        grid = Grid((), None, queries, keys, torch.device("cpu"))
        visible = as_tensor(self.tile(grid, range(queries), range(keys)), grid).cpu()
        lead = visible.shape[:-2]
        blocks = visible.expand(*lead, queries, keys).reshape(prod(lead), queries, keys)
        return "\n\n".join(
            "\n".join(" ".join("1" if see else "." for see in row) for row in block)
            for block in blocks.tolist()
        )

    @final
    def __and__(self, mask: "Mask") -> "Mask":
        """Visible where both are."""
        return _Both(self, mask if isinstance(mask, Mask) else as_mask(mask))

    @final
    def __or__(self, mask: "Mask") -> "Mask":
        """Visible where either is."""
        return _opposite(_Both(_opposite(self), _opposite(as_mask(mask))))

    __rand__, __ror__ = __and__, __or__

    @final
    def __invert__(self) -> "Mask":
        """Visible where this mask hides.

        ``torch.compile`` cannot trace ``~`` of an object: there, call ``mask.__invert__()``.
        """
        return _opposite(self)

    @final
    def __bool__(self) -> bool:
        """Raise SettingError: Python's words would drop a mask in silence."""
        raise SettingError(
            "mask must be joined by &, | and ~; got one of Python's words (and, or, not, if), "
            "which would drop it. Ask for None by mask is None."
        )


def dense(tensor: Bool[Tensor, "..."]) -> Mask:
    """A boolean tensor as a mask, True where a query may look.

    Args:
        tensor: Broadcasts to (*batch, heads, N, M).

    Raises:
        ShapeError: The tensor is not boolean.

    Example:
        >>> print(dense(torch.eye(3, dtype=torch.bool)).draw(3, 3))
        1 . .
        . 1 .
        . . 1
    """
    return _Dense(tensor)


def as_mask(mask: Mask | Bool[Tensor, "..."]) -> Mask:
    """The mask itself, or a boolean tensor made into one.

    Args:
        mask: A mask; or True where a query may look, broadcasting to (*batch, heads, N, M).

    Raises:
        ShapeError: It is neither.

    Example:
        >>> as_mask(torch.tensor([[True, False], [True, True]]))
        dense([[True, False], [True, True]])
        >>> from regard.attention import causal
        >>> rule = causal()
        >>> as_mask(rule) is rule
        True
    """
    if isinstance(mask, Mask):
        return mask
    if isinstance(mask, Tensor):
        return _Dense(mask)
    raise ShapeError(
        f"mask must be a Mask or a boolean tensor; got {type(mask).__name__}. "
        "Use lengths(), causal(), window(), documents(), prefix(), dense() or where()."
    )


@final
class _Dense(Mask):
    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise ShapeError(f"mask must be a boolean tensor; got {type(tensor).__name__}.")
        if tensor.dtype != torch.bool:
            raise ShapeError(
                f"mask must be boolean, True where a query may look; got {tensor.dtype}. "
                "Numbers to add to the scores are a bias: pass bias=."
            )
        # A copy, so that cached results stay true when the caller's tensor changes.
        self.tensor = tensor.detach().clone()

    def __repr__(self) -> str:
        return f"dense({written(self.tensor)})"

    def check(self, grid: Grid) -> None:
        if not grid.accepts(self.tensor.shape):
            raise ShapeError(
                f"mask must broadcast to (*batch, N, M) = {grid.shape}; "
                f"got {tuple(self.tensor.shape)}."
            )
        check_device("mask", self.tensor, grid)

    def pairs(self, grid: Grid, rows: range, keys: range) -> Tensor:
        return cut(lift(self.tensor, grid), rows, keys)

    def formula(self, grid: Grid) -> Tensor:
        return lift(self.tensor, grid)

    def extent(self, grid: Grid) -> tuple[int, int, int, int]:
        B, H, N, M = (1, 1, 1, 1, *lift(self.tensor, grid).shape)[-4:]
        return (B, H, N, M)


@final
class _Both(Mask):
    def __init__(self, left: Mask, right: Mask) -> None:
        self.left, self.right = left, right

    def __repr__(self) -> str:
        return " & ".join(_grouped(mask, "|") for mask in (self.left, self.right))

    def check(self, grid: Grid) -> None:
        self.left.check(grid)
        self.right.check(grid)

    def cover(self, grid: Grid, rows: range, keys: range) -> Cover | None:
        left, right = self.left.cover(grid, rows, keys), self.right.cover(grid, rows, keys)
        if left is Cover.NONE or right is Cover.NONE:
            return Cover.NONE
        return Cover.ALL if left is right is Cover.ALL else None

    def pairs(self, grid: Grid, rows: range, keys: range) -> Tensor:
        if len(rows) * len(keys) <= _FEW_PAIRS:
            return self.left.pairs(grid, rows, keys) & self.right.pairs(grid, rows, keys)
        left, right = self.left.tile(grid, rows, keys), self.right.tile(grid, rows, keys)
        if not isinstance(left, Tensor) or not isinstance(right, Tensor):
            # One of them hides nothing here; if one hid everything, the tile would be a cover.
            return as_tensor(right if left is Cover.ALL else left, grid)
        return left & right

    def formula(self, grid: Grid) -> Tensor:
        return self.left.formula(grid) & self.right.formula(grid)

    def extent(self, grid: Grid) -> tuple[int, int, int, int]:
        B, H, N, M = map(max, self.left.extent(grid), self.right.extent(grid))
        return (B, H, N, M)

    def form(self, grid: Grid) -> Form | None:
        left, right = self.left.form(grid), self.right.form(grid)
        if isinstance(left, Band) and isinstance(right, Band):
            return left & right
        # Documents are narrower than a band that is open on one side.
        segments, band = (
            (left, right) if isinstance(left, Segments) or right is None else (right, left)
        )
        if isinstance(segments, Segments) and segments.band is None and isinstance(band, Band):
            return replace(segments, band=band, is_exact=segments.is_exact and band.is_exact)
        return None if segments is None else replace(segments, is_exact=False)


@final
class _Opposite(Mask):
    def __init__(self, mask: Mask) -> None:
        self.mask = mask

    def __repr__(self) -> str:
        parts = _alternatives(self)
        if len(parts) == 1:
            return f"~{_grouped(self.mask, '&|')}"
        return " | ".join(repr(part) for part in parts)

    def check(self, grid: Grid) -> None:
        self.mask.check(grid)

    def cover(self, grid: Grid, rows: range, keys: range) -> Cover | None:
        cover = self.mask.cover(grid, rows, keys)
        if cover is None:
            return None
        return Cover.NONE if cover is Cover.ALL else Cover.ALL

    def pairs(self, grid: Grid, rows: range, keys: range) -> Tensor:
        return ~self.mask.pairs(grid, rows, keys)

    def formula(self, grid: Grid) -> Tensor:
        return ~self.mask.formula(grid)

    def extent(self, grid: Grid) -> tuple[int, int, int, int]:
        return self.mask.extent(grid)


def _opposite(mask: Mask) -> Mask:
    """``~mask``, which torch.compile cannot trace as an operator of objects."""
    return mask.mask if isinstance(mask, _Opposite) else _Opposite(mask)


def written(numbers: Tensor) -> str:
    """A tensor of a mask as its ``repr`` shows it: the numbers, or of many the shape."""
    if numbers.numel() > _NUMBERS_WRITTEN:
        return f"<{numbers.dtype} of shape {tuple(numbers.shape)}>"
    return str(numbers.tolist())


def _alternatives(mask: Mask) -> tuple[Mask, ...]:
    """Operands of ``a | b``, which is stored as ``~(~a & ~b)``."""
    if isinstance(mask, _Opposite) and isinstance(mask.mask, _Both):
        left, right = mask.mask.left, mask.mask.right
        if isinstance(left, _Opposite) or isinstance(right, _Opposite):
            return (_opposite(left), _opposite(right))
    return (mask,)


def _grouped(mask: Mask, signs: str) -> str:
    """A mask as an operand, in parentheses where one of ``signs`` joins it."""
    sign = "&" if isinstance(mask, _Both) else "|" if len(_alternatives(mask)) > 1 else " "
    return f"({mask!r})" if sign in signs else repr(mask)


def check_device(name: str, tensor: Tensor, grid: Grid) -> None:
    """Raise ShapeError unless a mask's tensor is where the queries are."""
    if tensor.device != grid.device:
        raise ShapeError(
            f"{name} must be on the device of the query, {grid.device}; got {tensor.device}. "
            "Make the mask of a tensor that is there."
        )


def as_numbers(name: str, numbers: object) -> Tensor:
    """Integers that a mask is given, as a tensor."""
    try:
        tensor = torch.as_tensor(numbers)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise ShapeError(f"{name} must be integers; got {excerpt(numbers)}.") from error
    # Of an empty list, torch makes floats.
    return tensor if isinstance(numbers, Tensor) or tensor.numel() else tensor.long()


def check_integers(name: str, numbers: Tensor) -> None:
    """Raise ShapeError unless numbers that a mask is given are whole."""
    if numbers.is_floating_point() or numbers.is_complex() or numbers.dtype == torch.bool:
        raise ShapeError(f"{name} must be integers; got {numbers.dtype}.")
