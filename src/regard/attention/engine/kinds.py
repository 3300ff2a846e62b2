"""Queries, keys and values: whether they fit together, and what was found out about such ones."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from math import prod
from typing import TypeVar

import torch
from torch import Tensor

from regard.attention.masks.bound import BoundMask, Cache
from regard.attention.scores import Dot, ScaledDot, Score
from regard.errors import SettingError, ShapeError

K = TypeVar("K")
V = TypeVar("V")
# How many kinds are kept at once, and how many by each mask at its sizes.
_MOST = 256
# Scores that are equal where they score alike, and hold no tensors.
_PLAIN_SCORES = (ScaledDot, Dot)
_DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


@dataclass(slots=True, eq=False)
class Kind:
    """Calls whose queries, keys and values fit together, and differ in numbers alone."""

    leading: tuple[int, ...]  # the shape of the answer before (N, E)
    # Of a mask or a bias: batch axes, H or None without an axis of heads, N, M, the device.
    grid: tuple[tuple[int, ...], int | None, int, int, torch.device]
    is_cached: bool  # whether it is known again
    # By backends, of calls without a mask, by what is known of their options.
    caches: dict[Hashable, Cache] = field(default_factory=dict)

    def cache_under(self, mask: BoundMask | None, options: Hashable) -> Cache:
        """Cached answers of backends about such calls; those under a mask live on the mask."""
        if not self.is_cached:
            return {}
        caches = self.caches if mask is None else mask.cache
        key = options if mask is None else (self, options)
        cache = caches.get(key)
        return keep(caches, key, {}) if cache is None else cache


# By signature.
KINDS: dict[Hashable, Kind] = {}


def kind_of(
    query: Tensor, key: Tensor, value: Tensor, score: Score, wants_grad: bool
) -> tuple[Tensor, Tensor, Tensor, Kind]:
    """Queries, keys and values with four axes, and their kind; checked once for each kind."""
    if not (isinstance(query, Tensor) and isinstance(key, Tensor) and isinstance(value, Tensor)):
        raise _no_tensor(query=query, key=key, value=value)
    if query.is_nested or key.is_nested or value.is_nested:
        raise _nested(query=query, key=key, value=value)
    signature = _signature_of(query, key, value, score, wants_grad)
    kind = None if signature is None else KINDS.get(signature)
    if kind is not None:
        return query, key, value, kind
    return _checked(query, key, value, score, signature)


def check_tensors(name: str, tensors: tuple[Tensor, ...], query: Tensor) -> None:
    """Raise unless what a score or bias was made with can be worked with beside the query."""
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


def _signature_of(
    query: Tensor, key: Tensor, value: Tensor, score: Score, wants_grad: bool
) -> Hashable | None:
    """Signature that calls of a kind share; None in a graph, or where a score may hold tensors."""
    if type(score) not in _PLAIN_SCORES or torch.compiler.is_compiling():
        return None
    if not wants_grad and torch.is_grad_enabled():
        wants_grad = query.requires_grad or key.requires_grad or value.requires_grad
    return (
        query.shape,
        key.shape,
        value.shape,
        query.dtype,
        key.dtype,
        value.dtype,
        query.device,
        key.device,
        value.device,
        score,
        wants_grad,
        torch.get_num_threads(),
    )


def keep(memory: dict[K, V], name: K, entry: V) -> V:
    """Store an entry, in place of all others where there are too many."""
    if len(memory) >= _MOST:
        memory.clear()
    memory[name] = entry
    return entry


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


def _checked(
    query: Tensor, key: Tensor, value: Tensor, score: Score, signature: Hashable | None
) -> tuple[Tensor, Tensor, Tensor, Kind]:
    """Check queries, keys and values, bring them to four axes, and store their kind."""
    if not isinstance(score, Score):
        cure = " Scores are objects and have no names." if isinstance(score, str) else ""
        if hasattr(score, "tile") and not isinstance(score, type):
            cure = " Let its class inherit from regard.attention.Score."
        raise SettingError(f"score must be a Score such as ScaledDot(); got {score!r}.{cure}")
    _check_dtypes_and_devices(query, key, value)
    check_tensors("score", score.tensors(), query)
    q, k, v, leading, heads = _to_four_axes(query, key, value)
    score.check(q, k)
    batch = leading if heads is None else leading[:-1]
    is_cached = signature is not None and q is query and k is key and v is value
    kind = Kind(leading, (batch, heads, q.shape[2], k.shape[2], q.device), is_cached)
    if is_cached:
        keep(KINDS, signature, kind)
    return q, k, v, kind


def _check_dtypes_and_devices(query: Tensor, key: Tensor, value: Tensor) -> None:
    dtype, device = query.dtype, query.device
    if key.dtype != dtype or value.dtype != dtype:
        raise ShapeError(
            f"query, key and value must have one dtype; got {dtype}, {key.dtype} and {value.dtype}."
        )
    if dtype not in _DTYPES:
        known = ", ".join(str(each).removeprefix("torch.") for each in _DTYPES)
        raise ShapeError(
            f"query must be of floating point, one of {known}; got {dtype}. Convert it."
        )
    if key.device != device or value.device != device:
        raise ShapeError(
            f"query, key and value must be on one device; got {device}, {key.device} "
            f"and {value.device}."
        )


def _to_four_axes(
    query: Tensor, key: Tensor, value: Tensor
) -> tuple[Tensor, Tensor, Tensor, tuple[int, ...], int | None]:
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
