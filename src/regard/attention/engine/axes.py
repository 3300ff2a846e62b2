"""Queries, keys and values of any axes: whether they fit together, and on four axes."""

from math import prod

import torch
from torch import Tensor

from regard.attention.scores import Score
from regard.errors import SettingError, ShapeError

Four = tuple[Tensor, Tensor, Tensor, tuple[int, ...], int | None]
DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def on_four_axes(query: Tensor, key: Tensor, value: Tensor, score: Score) -> Four:
    """Inputs as (B, H, N, D), (B, G, M, D) and (B, G, M, E), the axes of the answer, and H.

    H is None where there is no axis of heads.

    Raises:
        ShapeError: Shapes, dtypes or devices do not fit together.
        SettingError: The score is none.
    """
    if not (isinstance(query, Tensor) and isinstance(key, Tensor) and isinstance(value, Tensor)):
        raise _no_tensor(query=query, key=key, value=value)
    if query.is_nested or key.is_nested or value.is_nested:
        raise _nested(query=query, key=key, value=value)
    if not isinstance(score, Score):
        cure = " Scores are objects and have no names." if isinstance(score, str) else ""
        if hasattr(score, "tile") and not isinstance(score, type):
            cure = " Let its class inherit from regard.attention.Score."
        raise SettingError(f"score must be a Score such as ScaledDot(); got {score!r}.{cure}")
    _check_dtypes_and_devices(query, key, value)
    check_tensors("score", score.tensors(), query)
    query, key, value, leading, heads = _to_four_axes(query, key, value)
    score.check(query, key)
    return query, key, value, leading, heads


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


def _no_tensor(**inputs: object) -> ShapeError:
    name, first = next(each for each in inputs.items() if not isinstance(each[1], Tensor))
    return ShapeError(
        f"{name} must be a tensor; got {type(first).__name__}. Use torch.as_tensor({name})."
    )


def _nested(**inputs: Tensor) -> ShapeError:
    name = next(name for name, tensor in inputs.items() if tensor.is_nested)
    return ShapeError(
        f"{name} must be padded; got a nested tensor. "
        f"Pass {name}.to_padded_tensor(0.0), and the lengths as mask=lengths(…)."
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


def _to_four_axes(query: Tensor, key: Tensor, value: Tensor) -> Four:
    """Queries, keys and values with four axes, the leading axes of the answer, and H."""
    q, k, v = query.shape, key.shape, value.shape
    if min(len(q), len(k), len(v)) < 2:
        raise ShapeError(
            "query, key and value must have at least two axes, (N, D), (M, D) and (M, E); "
            f"got {tuple(q)}, {tuple(k)} and {tuple(v)}."
        )
    if k[-2] != v[-2]:
        raise ShapeError(f"value must have as many positions as key, M = {k[-2]}; got {v[-2]}.")
    if len(q) == len(k) == len(v) == 4 and q[0] == k[0] == v[0] and k[1] == v[1]:
        if q[1] != k[1]:
            _check_groups(q[1], k[1])
        return query, key, value, q[:2], q[1]
    if len(q) >= 4 and len(k) >= 4:
        return _group(query, key, value)
    leading = _broadcast(q[:-2], k[:-2], v[:-2])
    if leading is None:
        raise _no_broadcast(q, k, v)
    heads = leading[-1] if len(leading) > 1 else None
    batch = leading if heads is None else leading[:-1]
    lifted = (
        t.expand(*leading, *t.shape[-2:]).reshape(prod(batch), heads or 1, *t.shape[-2:])
        for t in (query, key, value)
    )
    return (*lifted, leading, heads)  # type: ignore[return-value]


def _group(
    query: Tensor, key: Tensor, value: Tensor
) -> tuple[Tensor, Tensor, Tensor, tuple[int, ...], int]:
    """Bring query, key and value with heads on axis −3 to four axes; heads may group."""
    q, k, v = query.shape, key.shape, value.shape
    H, G = q[-3], k[-3]
    _check_groups(H, G)
    batch = _broadcast(q[:-3], k[:-3], v[:-3])
    if batch is None or v[-3:-2] not in ((), (1,), (G,)):
        raise _no_broadcast(q, k, v)
    B = prod(batch)
    query = query.expand(*batch, *q[-3:]).reshape(B, *q[-3:])
    key = key.expand(*batch, *k[-3:]).reshape(B, *k[-3:])
    value = value.expand(*batch, G, *v[-2:]).reshape(B, G, *v[-2:])
    return query, key, value, (*batch, H), H


def _check_groups(H: int, G: int) -> None:
    if G == 0 or H % G:
        raise ShapeError(
            f"query heads must be a multiple of key heads; got H={H}, G={G}. "
            "Heads are the third axis from the end."
        )


def _broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    if shapes[0] == shapes[1] == shapes[2]:
        return tuple(shapes[0])
    try:
        return tuple(torch.broadcast_shapes(*shapes))  # type: ignore[no-untyped-call]
    except RuntimeError:
        return None


def _no_broadcast(*shapes: tuple[int, ...]) -> ShapeError:
    q, k, v = map(tuple, shapes)
    return ShapeError(
        f"query, key and value must agree in their leading axes; got {q}, {k} and {v}."
    )
