"""A call of ``attend``, and as a request: checked, and of the one shape that backends are given."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from regard.attention.biases import PositionBias
from regard.attention.engine.axes import DTYPES, check_tensors, on_four_axes
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
    sink: Tensor | None  # (H, 1) or (1, 1); added to what a backend gives
    return_lse: bool
    leading: tuple[int, ...]  # the shape of the answer before (N, E)
    wants_grad: bool = False  # though nothing records a gradient, as in an operator
    seed: int | None = None  # of the dropout, if drawn already
    # Not handed on by ``replace``: it is of one query and key.
    _forms: tuple[DotForm | None, ...] = field(default=(), init=False, repr=False)

    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors of the score, then those of the position bias."""
        of_position = () if self.position is None else self.position.tensors()
        return (*self.score.tensors(), *of_position)

    def form(self) -> DotForm | None:
        """The score as a dot product and a number of each key, worked out once, or None."""
        if not self._forms:
            self._forms = (self.score.as_dot(self.query, self.key),)
        return self._forms[0]

    def dot(self) -> DotForm | None:
        """The score as a dot product alone, worked out once; None if it is not one."""
        form = self.form()
        if form is None or form.of_keys is None:
            return form
        if len(self._forms) == 1:
            self._forms = (form, form.in_one_more_dimension())
        return self._forms[1]

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


def make_request(call: Call, *, is_known: bool = False) -> Request:
    """Check a call, unless one of its signature was checked, and bring it to four axes."""
    query, key, value, options, wants_grad, seed = call
    score, mask, bias, weighting, dropout, generator, _, return_lse = options
    if is_known or _has_four_axes(query, key, value, score):
        leading: tuple[int, ...] = query.shape[:2]
    else:
        query, key, value, leading = on_four_axes(query, key, value, score)
    if not is_known:
        _check_options(options)
    batch, heads = (leading[:-1], leading[-1]) if len(leading) > 1 else (leading, None)
    sizes = (batch, heads, query.shape[2], key.shape[2], query.device)
    bound = added = position = sink = None
    if mask is not None:
        bound = (mask if isinstance(mask, Mask) else as_mask(mask)).bind(*sizes)
        if bound.cover is Cover.ALL:
            bound = None
    if isinstance(weighting, Softmax) and weighting.sink is not None:
        sink = _sink_of(weighting, query)
    if isinstance(bias, Tensor):
        added = _lift_bias(bias, Grid(*sizes))
    elif bias is not None:
        position = _checked_position(bias, query, value)
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


def _has_four_axes(query: Tensor, key: Tensor, value: Tensor, score: Score) -> bool:
    """Whether inputs are of four axes and fit together, and the score takes whatever they are."""
    if not (isinstance(query, Tensor) and isinstance(key, Tensor) and isinstance(value, Tensor)):
        return False
    if type(score) not in PLAIN_SCORES or query.is_nested or key.is_nested or value.is_nested:
        return False
    q, k, v = query.shape, key.shape, value.shape
    if not len(q) == len(k) == len(v) == 4 or q[0] != k[0] or k[:3] != v[:3] or q[3] != k[3]:
        return False
    if q[1] != k[1] and (k[1] == 0 or q[1] % k[1]):
        return False
    is_one_dtype = query.dtype == key.dtype == value.dtype and query.dtype in DTYPES
    return is_one_dtype and query.device == key.device == value.device


def _check_options(options: CallOptions) -> None:
    *_, weighting, dropout, generator, _, return_lse = options
    # To ask for the class itself first is felt in small calls, as it is abstract.
    if type(weighting) is not Softmax and not isinstance(weighting, Weighting):
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


def _sink_of(weighting: Softmax, query: Tensor) -> Tensor:
    """The sink as (H, 1) or (1, 1)."""
    if isinstance(weighting.sink, Tensor):
        check_tensors("sink", (weighting.sink,), query)
    H, wide = query.shape[1], torch.promote_types(query.dtype, torch.float32)
    sink = torch.as_tensor(weighting.sink, dtype=wide, device=query.device)
    if sink.shape not in ((), (1,), (H,)):
        raise ShapeError(f"sink must have shape () or (H,) = ({H},); got {tuple(sink.shape)}.")
    return sink.reshape(-1, 1)


def _checked_position(bias: PositionBias, query: Tensor, value: Tensor) -> PositionBias:
    if not isinstance(bias, PositionBias):
        raise ShapeError(
            f"bias must be a tensor or a rule such as alibi(); got {type(bias).__name__}."
        )
    check_tensors("bias", bias.tensors(), query)
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
