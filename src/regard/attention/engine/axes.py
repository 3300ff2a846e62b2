"""Queries, keys and values of any axes: whether they fit together, and on four axes."""

from math import prod

import torch
from torch import Tensor

from regard.attention.scores import Score
from regard.errors import SettingError, ShapeError

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def on_four_axes(
    query: Tensor, key: Tensor, value: Tensor, score: Score
) -> tuple[Tensor, Tensor, Tensor, tuple[int, ...]]:
    """Inputs as (B, H, N, D), (B, G, M, D) and (B, G, M, E), and the axes of the answer before N.

    Of two of these or more, the last is that of heads.

    Raises:
        ShapeError: Shapes, dtypes or devices do not fit together.
        SettingError: The score is none.
    """
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if not isinstance(tensor, Tensor):
            raise ShapeError(
                f"{name} must be a tensor; got {type(tensor).__name__}. "
                f"Use torch.as_tensor({name})."
            )
        if tensor.is_nested:
            raise ShapeError(
                f"{name} must be padded; got a nested tensor. "
                f"Pass {name}.to_padded_tensor(0.0), and the lengths as mask=lengths(…)."
            )
    if not isinstance(score, Score):
        cure = " Scores are objects and have no names." if isinstance(score, str) else ""
        if hasattr(score, "tile") and not isinstance(score, type):
            cure = " Let its class inherit from regard.attention.Score."
        raise SettingError(f"score must be a Score such as ScaledDot(); got {score!r}.{cure}")
    _check_dtypes_and_devices(query, key, value)
    if tensors := score.tensors():
        check_tensors("score", tensors, query)
    of_query, of_key = _leading_axes(query.shape, key.shape, value.shape)
    query, key, value = _laid(query, of_query), _laid(key, of_key), _laid(value, of_key)
    score.check(query, key)
    return query, key, value, of_query


def check_tensors(name: str, tensors: tuple[Tensor, ...], query: Tensor) -> None:
    """Raise unless the tensors of a score or bias fit the query."""
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            continue  # its own check knows its name
        if not tensor.is_floating_point():
            raise ShapeError(f"{name} must be made with floating point; got {tensor.dtype}.")
        if tensor.device != query.device:
            raise ShapeError(
                f"{name} must be on the device of the query, {query.device}; got {tensor.device}. "
                "Move its tensors there."
            )


def _check_dtypes_and_devices(query: Tensor, key: Tensor, value: Tensor) -> None:
    dtype, device = query.dtype, query.device
    if key.dtype != dtype or value.dtype != dtype:
        raise ShapeError(
            f"query, key and value must have one dtype; got {dtype}, {key.dtype} and {value.dtype}."
        )
    if dtype not in DTYPES:
        names = ", ".join(str(each).removeprefix("torch.") for each in DTYPES)
        raise ShapeError(
            f"query must be of floating point, one of {names}; got {dtype}. Convert it."
        )
    if key.device != device or value.device != device:
        raise ShapeError(
            f"query, key and value must be on one device; got {device}, {key.device} "
            f"and {value.device}."
        )


def _leading_axes(
    q: torch.Size, k: torch.Size, v: torch.Size
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes before the last two that queries are laid on, and keys and values."""
    if min(len(q), len(k), len(v)) < 2:
        raise ShapeError(
            "query, key and value must have at least two axes, (N, D), (M, D) and (M, E); "
            f"got {tuple(q)}, {tuple(k)} and {tuple(v)}."
        )
    if k[-2] != v[-2]:
        raise ShapeError(f"value must have as many positions as key, M = {k[-2]}; got {v[-2]}.")
    has_heads = len(q) >= 4 and len(k) >= 4
    end = -3 if has_heads else -2
    H, G = q[-3:-2], k[-3:-2]
    if has_heads and H != G and (G[0] == 0 or H[0] % G[0]):
        raise ShapeError(
            f"query heads must be a multiple of key heads; got H={H[0]}, G={G[0]}. "
            "Heads are the third axis from the end."
        )
    batch: tuple[int, ...] | None = q[:end]
    if not q[:end] == k[:end] == v[:end]:
        try:
            batch = torch.broadcast_shapes(q[:end], k[:end], v[:end])  # type: ignore[no-untyped-call]
        except RuntimeError:
            batch = None
    if batch is None or (has_heads and v[-3:-2] not in ((), (1,), G)):
        raise ShapeError(
            "query, key and value must agree in their leading axes; "
            f"got {tuple(q)}, {tuple(k)} and {tuple(v)}."
        )
    return ((*batch, *H), (*batch, *G)) if has_heads else (tuple(batch), tuple(batch))


def _laid(tensor: Tensor, axes: tuple[int, ...]) -> Tensor:
    """A tensor over these axes before its last two, of which the last are heads, on four axes."""
    if len(axes) == 2 and tensor.shape[:-2] == axes:
        return tensor
    batch, heads = (axes[:-1], axes[-1]) if len(axes) > 1 else (axes, 1)
    last = tensor.shape[-2:]
    return tensor.expand(*axes, *last).reshape(prod(batch), heads, *last)
