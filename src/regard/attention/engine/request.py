"""One call of ``attend``, checked and brought to one shape: what every backend is given."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from numbers import Real

import torch
from torch import Tensor

from regard.attention.biases import PositionBias
from regard.attention.engine.kinds import check_tensors, kind_of
from regard.attention.engine.options import CallOptions
from regard.attention.masks.base import as_mask
from regard.attention.masks.bound import BoundMask, Cache
from regard.attention.masks.grid import Cover, Grid, lift
from regard.attention.scores import DotForm, Score
from regard.attention.weighting import Softmax, Weighting
from regard.checks import check_fraction
from regard.errors import SettingError, ShapeError

_AS_IT_IS = nullcontext()


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
    # What backends that judge by kind said of requests of this kind, to be added to. Neither it nor
    # the forms are handed on by ``replace``: what is true of one request may not be of another.
    cache: Cache = field(default_factory=dict, init=False, repr=False)
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


def make_request(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    options: CallOptions,
    *,
    wants_grad: bool = False,
    seed: int | None = None,
) -> Request:
    """Check the arguments of ``attend`` and bring them to four axes."""
    score, mask, bias, weighting, dropout, generator, _, return_lse = options
    query, key, value, kind = kind_of(query, key, value, score, wants_grad)
    # To ask for the class itself first is felt in small calls, as it is abstract.
    if type(weighting) is not Softmax and not isinstance(weighting, Weighting):
        raise SettingError(f"weighting must be a Weighting such as Softmax(); got {weighting!r}.")
    if return_lse and not isinstance(weighting, Softmax):
        came = type(weighting).__name__
        raise SettingError(f"return_lse must go with Softmax(); got {came}().")
    if dropout:
        _check_dropout(dropout, generator)
    bound = added = position = None
    if mask is not None:
        bound = as_mask(mask).bind(*kind.grid)
        if bound.cover is Cover.ALL:
            bound = None
    sink = None
    if isinstance(weighting, Softmax) and weighting.sink is not None:
        sink = _sink_of(weighting, query)
    wants_lse = return_lse or sink is not None
    if isinstance(bias, Tensor):
        added = _lift_bias(bias, Grid(*kind.grid))
    elif bias is not None:
        position = _checked_position(bias, query, value)
    has_option = wants_lse or position is not None or type(weighting) is not Softmax
    request = Request(
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
    )
    if not has_option:
        of_bias = None if added is None else (added.shape, added.dtype, added.requires_grad)
        request.cache = kind.cache_under(bound, (of_bias, dropout, generator is None, seed is None))
    return request


def make_weights_request(query: Tensor, key: Tensor, options: CallOptions) -> Request:
    """Make the request of a call for weights alone: its values take no memory."""
    value = key
    if isinstance(key, Tensor) and key.dim() > 1:
        width = options.bias.value_dim if isinstance(options.bias, PositionBias) else None
        value = key.new_zeros(()).expand(*key.shape[:-1], width or 1)
    return make_request(query, key, value, options)


def without_autocast(kind: str) -> AbstractContextManager[object]:
    """Keep the dtypes of tensors inside, even under automatic precision."""
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else _AS_IT_IS


def _check_dropout(dropout: float, generator: torch.Generator | None) -> None:
    if not isinstance(dropout, Real):
        raise SettingError(f"dropout must be a number; got {dropout!r}.")
    check_fraction("dropout", dropout)
    if not isinstance(generator, torch.Generator | None):
        raise SettingError(f"generator must be a torch.Generator; got {generator!r}.")


def _sink_of(weighting: Softmax, query: Tensor) -> Tensor:
    """The sink as (H, 1) or (1, 1)."""
    if not isinstance(weighting.sink, Tensor | Real):
        raise SettingError(f"sink must be a number or a tensor; got {weighting.sink!r}.")
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
