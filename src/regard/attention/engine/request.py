"""A call of ``attend``, and as a request: checked, and of the one shape that backends are given."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor

from regard.attention.biases import PositionBias
from regard.attention.engine.options import CallOptions
from regard.attention.masks.base import Mask, as_mask
from regard.attention.masks.bound import BoundMask
from regard.attention.masks.grid import Cover, Grid, lift
from regard.attention.scores import Dot, DotForm, ScaledDot, Score
from regard.attention.weighting import Softmax, Weighting
from regard.checks import check_flag, check_fraction
from regard.errors import SettingError, ShapeError

# Scores that are equal where they score alike, hold no tensors, and take keys as wide as queries.
PLAIN_SCORES = (ScaledDot, Dot)
_DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
_AS_IT_IS = nullcontext()


class Call(NamedTuple):
    """A call of ``attend``."""

    query: Tensor
    key: Tensor
    value: Tensor
    options: CallOptions
    wants_grad: bool = False  # though nothing records a gradient, as in an operator
    seed: int | None = None  # of the dropout, if drawn already


@dataclass(slots=True, eq=False)
class Request:
    """Checked arguments of a call: always four axes, always a bound mask or none."""

    query: Tensor  # (B, H, N, D)
    key: Tensor  # (B, G, M, D); G divides H
    value: Tensor  # (B, G, M, E)
    score: Score
    mask: BoundMask | None
    bias: Tensor | None  # broadcasts to (B, H, N, M)
    position: PositionBias | None
    weighting: Weighting
    dropout: float
    generator: torch.Generator | None
    sink: Tensor | None  # (H, 1) or (1, 1); added to a backend's answer
    return_lse: bool
    leading: tuple[int, ...]  # the shape of the answer before (N, E)
    wants_grad: bool
    seed: int | None
    # Not handed on by ``replace``: it is of one query and key.
    _form: tuple[DotForm | None, ...] = field(default=(), init=False, repr=False)

    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors of the score, then those of the position bias."""
        of_position = () if self.position is None else self.position.tensors()
        return (*self.score.tensors(), *of_position)

    def form(self) -> DotForm | None:
        """The score as a dot product and a number of each key, worked out once, or None."""
        if not self._form:
            self._form = (self.score.as_dot(self.query, self.key),)
        return self._form[0]

    def dot(self) -> DotForm | None:
        """The score as a dot product alone; None if it is not one."""
        form = self.form()
        return form if form is None or form.of_keys is None else form.in_one_more_dimension()

    def plain_form(self, *, may_drop: bool = False) -> DotForm | str:
        """The score as a dot product, if its softmax is all there is to it; else why not."""
        form = self.form()
        if form is None:
            return "the score is not a dot product"
        if type(self.weighting) is not Softmax:
            return "the weighting is not softmax"
        if self.return_lse:
            return "the log-sum-exp is wanted, with its gradient"
        if self.dropout and not may_drop:
            return "dropout must not depend on tile sizes"
        return form

    def draw_seed(self) -> int:
        """Draw the seed of the dropout, unless it is drawn already."""
        if self.seed is not None:
            return self.seed
        return int(torch.randint(2**31 - 1, (), generator=self.generator))

    def needs_grad(self) -> bool:
        """Whether a gradient may be asked for later."""
        if self.wants_grad or not torch.is_grad_enabled():
            return self.wants_grad
        tensors = (self.query, self.key, self.value, self.bias, self.sink, *self.tensors())
        return any(tensor is not None and tensor.requires_grad for tensor in tensors)


def make_request(call: Call, *, is_checked: bool = False) -> Request:
    """Check a call, unless one of its signature was checked, and bring it to four axes."""
    query, key, value, options, wants_grad, seed = call
    score, mask, bias, weighting, dropout, generator, _, return_lse = options
    if is_checked:
        leading: tuple[int, ...] = query.shape[:2]
    else:
        _check_inputs(query, key, value)
        _check_options(options)
        query, key, value, leading = _on_four_axes(query, key, value)
        if type(score) not in PLAIN_SCORES or query.shape[3] != key.shape[3]:
            _check_tensors("score", score.tensors(), query.device)
            score.check(query, key)
    batch, heads = (leading[:-1], leading[-1]) if len(leading) > 1 else (leading, None)
    sizes = (batch, heads, query.shape[2], key.shape[2], query.device)
    bound = added = position = sink = None
    if mask is not None:
        bound = (mask if isinstance(mask, Mask) else as_mask(mask)).bind(*sizes)
        if bound.cover is Cover.ALL:
            bound = None
    if isinstance(weighting, Softmax) and weighting.sink is not None:
        sink = _sink_of(weighting.sink, query)
    if bias is not None:
        added, position = _of_bias(bias, query, value, Grid(*sizes))
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
        return_lse or sink is not None,
        leading,
        wants_grad,
        seed,
    )


def make_weights_request(query: Tensor, key: Tensor, options: CallOptions) -> Request:
    """Make the request of a call for weights alone: its values take no memory."""
    value = key
    if isinstance(key, Tensor) and key.dim() > 1:
        width = options.bias.value_dim if isinstance(options.bias, PositionBias) else None
        value = key.new_zeros(()).expand(*key.shape[:-1], width or 1)
    return make_request(Call(query, key, value, options))


def without_autocast(kind: str) -> AbstractContextManager[object]:
    """Keep the dtypes of tensors inside, even under automatic precision."""
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else _AS_IT_IS


def _check_inputs(query: Tensor, key: Tensor, value: Tensor) -> None:
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
    dtype, device = query.dtype, query.device
    if not dtype == key.dtype == value.dtype:
        raise ShapeError(
            f"query, key and value must have one dtype; got {dtype}, {key.dtype} and {value.dtype}."
        )
    if dtype not in _DTYPES:
        names = ", ".join(str(dtype).removeprefix("torch.") for dtype in _DTYPES)
        raise ShapeError(
            f"query must be of floating point, one of {names}; got {dtype}. Convert it."
        )
    if not device == key.device == value.device:
        raise ShapeError(
            f"query, key and value must be on one device; got {device}, {key.device} "
            f"and {value.device}."
        )


def _check_options(options: CallOptions) -> None:
    score, _, _, weighting, dropout, generator, _, return_lse = options
    if not isinstance(score, Score):
        cure = " Scores are objects and have no names." if isinstance(score, str) else ""
        if hasattr(score, "tile") and not isinstance(score, type):
            cure = " Let its class inherit from regard.attention.Score."
        raise SettingError(f"score must be a Score such as ScaledDot(); got {score!r}.{cure}")
    if not isinstance(weighting, Weighting):
        raise SettingError(f"weighting must be a Weighting such as Softmax(); got {weighting!r}.")
    if type(dropout) is not float or dropout:
        check_fraction("dropout", dropout)
    if generator is not None and not isinstance(generator, torch.Generator):
        raise SettingError(f"generator must be a torch.Generator; got {generator!r}.")
    if return_lse is not False:
        check_flag("return_lse", return_lse)
        if not isinstance(weighting, Softmax):
            came = type(weighting).__name__
            raise SettingError(f"return_lse must go with Softmax(); got {came}().")


def _on_four_axes(
    query: Tensor, key: Tensor, value: Tensor
) -> tuple[Tensor, Tensor, Tensor, tuple[int, ...]]:
    """Inputs as (B, H, N, D), (B, G, M, D) and (B, G, M, E), and the axes of the answer before N.

    Of two of these or more, the last is that of heads.
    """
    q, k, v = query.shape, key.shape, value.shape
    if min(len(q), len(k), len(v)) < 2:
        raise ShapeError(
            "query, key and value must have at least two axes, (N, D), (M, D) and (M, E); "
            f"got {tuple(q)}, {tuple(k)} and {tuple(v)}."
        )
    if k[-2] != v[-2]:
        raise ShapeError(f"value must have as many positions as key, M = {k[-2]}; got {v[-2]}.")
    end = -3 if len(q) >= 4 and len(k) >= 4 else -2
    H, G = q[end:-2], k[end:-2]  # no axis, where there are no heads
    if H != G and (G[0] == 0 or H[0] % G[0]):
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
    if batch is None or v[end:-2] not in ((), (1,) * len(G), G):
        raise ShapeError(
            "query, key and value must agree in their leading axes; "
            f"got {tuple(q)}, {tuple(k)} and {tuple(v)}."
        )
    leading, of_keys = (*batch, *H), (*batch, *G)
    laid: list[Tensor] = []
    for tensor, axes in ((query, leading), (key, of_keys), (value, of_keys)):
        is_laid = len(axes) == 2 and tensor.shape[:-2] == axes
        first, heads = (axes[:-1], axes[-1]) if len(axes) > 1 else (axes, 1)
        last = tensor.shape[-2:]
        whole = tensor if is_laid else tensor.expand(*axes, *last)
        laid.append(tensor if is_laid else whole.reshape(prod(first), heads, *last))
    return laid[0], laid[1], laid[2], leading


def _check_tensors(name: str, tensors: tuple[Tensor, ...], device: torch.device) -> None:
    """Raise unless the tensors of a score or bias are of floating point, on the query's device."""
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            continue  # its own check knows its name
        if not tensor.is_floating_point():
            raise ShapeError(f"{name} must be made with floating point; got {tensor.dtype}.")
        if tensor.device != device:
            raise ShapeError(
                f"{name} must be on the device of the query, {device}; got {tensor.device}. "
                "Move it there."
            )


def _sink_of(sink: float | Tensor, query: Tensor) -> Tensor:
    """The sink as (H, 1) or (1, 1)."""
    if isinstance(sink, Tensor):
        _check_tensors("sink", (sink,), query.device)
    H, wide = query.shape[1], torch.promote_types(query.dtype, torch.float32)
    sink = torch.as_tensor(sink, dtype=wide, device=query.device)
    if sink.shape not in ((), (1,), (H,)):
        raise ShapeError(f"sink must have shape () or (H,) = ({H},); got {tuple(sink.shape)}.")
    return sink.reshape(-1, 1)


def _of_bias(
    bias: Tensor | PositionBias, query: Tensor, value: Tensor, grid: Grid
) -> tuple[Tensor | None, PositionBias | None]:
    """The bias as a tensor that broadcasts to (B, H, N, M), or as a rule of the distance."""
    if isinstance(bias, PositionBias):
        _check_tensors("bias", bias.tensors(), query.device)
        bias.check(query.shape[1], query.shape[3], value.shape[3])
        return None, bias
    if not isinstance(bias, Tensor):
        raise ShapeError(
            f"bias must be a tensor or a rule such as alibi(); got {type(bias).__name__}."
        )
    if not bias.is_floating_point():
        raise ShapeError(
            f"bias must be of floating point; got {bias.dtype}. "
            "True where a query may look is a mask: pass mask=."
        )
    _check_tensors("bias", (bias,), query.device)
    if not grid.accepts(bias.shape):
        raise ShapeError(
            f"bias must broadcast to (*batch, N, M) = {grid.shape}; got {tuple(bias.shape)}."
        )
    bias = lift(bias, grid)
    return bias.reshape((1,) * (4 - bias.dim()) + bias.shape), None
