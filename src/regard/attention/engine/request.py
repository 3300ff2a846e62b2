"""One call of ``attend``, checked and brought to one shape: what every backend is given."""

from collections.abc import Hashable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from math import prod
from numbers import Real

import torch
from torch import Tensor

from regard.attention.biases import PositionBias
from regard.attention.engine.kinds import KINDS, Kind, keep, signature_of
from regard.attention.masks.base import Mask, as_mask
from regard.attention.masks.bound import BoundMask, Said
from regard.attention.masks.grid import Cover, Grid, lift
from regard.attention.scores import DotForm, Score
from regard.attention.weighting import Softmax, Weighting
from regard.checks import check_fraction
from regard.errors import SettingError, ShapeError

_AS_IT_IS = nullcontext()
_DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


@dataclass(slots=True, eq=False)
class Request:
    """What is asked of a backend: always four axes, always a bound mask or none.

    Attributes:
        query: (B, H, N, D).
        key: (B, G, M, D); G divides H.
        value: (B, G, M, E).
        score: How a query and a key match.
        mask: Which keys are visible; None if all are.
        bias: Added to the scores; broadcasts to (B, H, N, M).
        position: What is added because of the distance, or None.
        weighting: How scores become weights.
        dropout: The fraction of weights set to zero; the others grow to make up for it.
        generator: Where the seed of the dropout comes from; None is torch's own.
        sink: Of the softmax, (H, 1) or (1, 1), or None; added to what a backend gives.
        return_lse: Whether the log-sum-exp of the scores is wanted.
        leading: The shape of the answer before (N, E).
        wants_grad: Whether a gradient will be asked for though nothing records one, as in an
            operator.
        seed: Of the dropout, where it is drawn already.
        said: What backends that judge by kind said of requests of its kind, to be added to.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    score: Score
    mask: BoundMask | None
    bias: Tensor | None
    position: PositionBias | None
    weighting: Weighting
    dropout: float
    generator: torch.Generator | None
    sink: Tensor | None
    return_lse: bool
    leading: tuple[int, ...]
    wants_grad: bool = False
    seed: int | None = None
    said: Said = field(default_factory=dict, repr=False)
    _forms: tuple[DotForm | None, ...] = field(default=(), repr=False)

    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors of the score, then those of the position bias."""
        of_position = () if self.position is None else self.position.tensors()
        return (*self.score.tensors(), *of_position)

    def dot(self) -> DotForm | None:
        """The score as a dot product, worked out once; None if it is not one."""
        if not self._forms:
            self._forms = (self.score.as_dot(self.query, self.key),)
        return self._forms[0]

    def draw_seed(self) -> int:
        """The seed of the dropout."""
        if self.seed is not None:
            return self.seed
        return int(torch.randint(2**31 - 1, (), generator=self.generator))

    def needs_grad(self) -> bool:
        """Whether a gradient may be asked for later."""
        if self.wants_grad:
            return True
        return torch.is_grad_enabled() and (
            self.query.requires_grad
            or self.key.requires_grad
            or self.value.requires_grad
            or (self.bias is not None and self.bias.requires_grad)
            or (self.sink is not None and self.sink.requires_grad)
            or any(tensor.requires_grad for tensor in self.tensors())
        )


def make_request(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    score: Score,
    mask: Mask | Tensor | None,
    bias: Tensor | PositionBias | None,
    weighting: Weighting,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
    return_lse: bool = False,
    wants_grad: bool = False,
    seed: int | None = None,
) -> Request:
    """Check the arguments of ``attend`` and bring them to four axes.

    Raises:
        ShapeError: Shapes, dtypes or devices do not fit together.
        SettingError: An option is not one, or is out of range.
    """
    if not (isinstance(query, Tensor) and isinstance(key, Tensor) and isinstance(value, Tensor)):
        raise _no_tensor(query=query, key=key, value=value)
    if not isinstance(weighting, Weighting):
        raise SettingError(f"weighting must be a Weighting such as Softmax(); got {weighting!r}.")
    if dropout:
        _check_dropout(dropout, generator)
    signature = signature_of(query, key, value, score, wants_grad)
    kind = None if signature is None else KINDS.get(signature)
    if kind is None:
        query, key, value, kind = _checked(query, key, value, score, signature)
    bound = added = position = None
    if mask is not None:
        bound = as_mask(mask).bind(*_sizes(kind, query, key))
        if bound.cover is Cover.ALL:
            bound = None
    sink = None
    if isinstance(weighting, Softmax) and weighting.sink is not None:
        sink = _sink_of(weighting, query)
    wants_lse = return_lse or sink is not None
    if isinstance(bias, Tensor):
        added = _lift_bias(bias, Grid(*_sizes(kind, query, key)))
    elif bias is not None:
        position = _checked_position(bias, query, value)
    has_option = wants_lse or dropout or bias is not None or type(weighting) is not Softmax
    return Request(
        query,
        key,
        value,
        score,
        bound,
        added,
        position,
        weighting,
        dropout,
        generator,
        sink,
        wants_lse,
        kind.leading,
        wants_grad,
        seed,
        {} if signature is None or has_option else kind.said_under(bound),
    )


def make_weights_request(
    query: Tensor,
    key: Tensor,
    *,
    score: Score,
    mask: Mask | Tensor | None,
    bias: Tensor | PositionBias | None,
    weighting: Weighting,
) -> Request:
    """The same of a call that asks for weights alone: its values take no memory.

    Raises:
        ShapeError: Shapes, dtypes or devices do not fit together.
        SettingError: An option is not one, or is out of range.
    """
    value = key
    if isinstance(key, Tensor) and key.dim() > 1:
        width = bias.value_dim if isinstance(bias, PositionBias) else None
        value = key.new_zeros(()).expand(*key.shape[:-1], width or 1)
    return make_request(query, key, value, score=score, mask=mask, bias=bias, weighting=weighting)


def without_autocast(kind: str) -> AbstractContextManager[object]:
    """Inside, operations keep the dtypes of their tensors, even under automatic precision.

    Args:
        kind: Of the device.
    """
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else _AS_IT_IS


def _sizes(
    kind: Kind, query: Tensor, key: Tensor
) -> tuple[tuple[int, ...], int | None, int, int, torch.device]:
    """What a mask or a bias is laid over, as a ``Grid`` takes it."""
    batch = kind.leading if kind.heads is None else kind.leading[:-1]
    return batch, kind.heads, query.shape[2], key.shape[2], query.device


def _no_tensor(**given: object) -> ShapeError:
    name, first = next(each for each in given.items() if not isinstance(each[1], Tensor))
    return ShapeError(f"{name} must be a tensor; got {type(first).__name__}.")


def _checked(
    query: Tensor, key: Tensor, value: Tensor, score: Score, signature: Hashable | None
) -> tuple[Tensor, Tensor, Tensor, Kind]:
    """Queries, keys and values that fit together, with four axes, and their kind.

    The kind is kept under its signature, if there is one and the tensors are as they were given.
    """
    if not isinstance(score, Score):
        cure = " Scores are objects and have no names." if isinstance(score, str) else ""
        if hasattr(score, "tile") and not isinstance(score, type):
            cure = " Let its class inherit from regard.attention.Score."
        raise SettingError(f"score must be a Score such as ScaledDot(); got {score!r}.{cure}")
    _check_dtypes_and_devices(query, key, value)
    _check_tensors("score", score.tensors(), query)
    q, k, v, leading, heads = _to_four_axes(query, key, value)
    score.check(q, k)
    kind = Kind(leading, heads)
    if signature is not None and q is query and k is key and v is value:
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


def _check_tensors(name: str, tensors: tuple[Tensor, ...], query: Tensor) -> None:
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


def _check_dropout(dropout: float, generator: torch.Generator | None) -> None:
    if not isinstance(dropout, Real):
        raise SettingError(f"dropout must be a number; got {dropout!r}.")
    check_fraction("dropout", dropout)
    if not isinstance(generator, torch.Generator | None):
        raise SettingError(f"generator must be a torch.Generator; got {generator!r}.")


def _sink_of(weighting: Softmax, query: Tensor) -> Tensor:
    """The sink as (H, 1) or (1, 1).

    Raises:
        ShapeError: It is neither one number nor one per head.
    """
    if not isinstance(weighting.sink, Tensor | Real):
        raise SettingError(f"sink must be a number or a tensor; got {weighting.sink!r}.")
    if isinstance(weighting.sink, Tensor):
        _check_tensors("sink", (weighting.sink,), query)
    H, wide = query.shape[1], torch.promote_types(query.dtype, torch.float32)
    sink = torch.as_tensor(weighting.sink, dtype=wide, device=query.device)
    if sink.shape not in ((), (1,), (H,)):
        raise ShapeError(f"sink must have shape () or (H,) = ({H},); got {tuple(sink.shape)}.")
    return sink.reshape(-1, 1)


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
    """The same where query and key have heads on axis −3, which may group."""
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


def _checked_position(bias: PositionBias, query: Tensor, value: Tensor) -> PositionBias:
    if not isinstance(bias, PositionBias):
        raise ShapeError(
            f"bias must be a tensor or a rule such as alibi(); got {type(bias).__name__}."
        )
    _check_tensors("bias", bias.tensors(), query)
    bias.check(query.shape[1], query.shape[-1], value.shape[-1])
    return bias


def _lift_bias(bias: Tensor, grid: Grid) -> Tensor:
    if not bias.is_floating_point():
        raise ShapeError(
            f"bias must be of floating point; got {bias.dtype}. "
            "True where a query may look is a mask: pass mask=."
        )
    if not grid.accepts(bias.shape):
        raise ShapeError(
            f"bias must broadcast to (*batch, N, M) = {grid.shape}; got {tuple(bias.shape)}."
        )
    if bias.device != grid.device:
        raise ShapeError(
            f"bias must be on the device of the query, {grid.device}; got {bias.device}. "
            "Move it there."
        )
    bias = lift(bias, grid)
    return bias.reshape((1,) * (4 - bias.dim()) + bias.shape)
