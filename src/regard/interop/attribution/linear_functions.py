"""Torch's functions as a linear run computes them: scales held, and constants made parts."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

Arguments = tuple[Any, ...]

_EMBEDDINGS = ("token", "position", "segment")
HELD = "_HeldBackward"  # the node of a graph where an activation is held
# Tables of embeddings beside those of tokens.
_SEGMENT = re.compile(r"token_type|segment")
_POSITION = re.compile(r"(^|\.)wpe\.|posit|(^|[._])pos([._]|$)")
# Names of functions: sums; scales of norms; activations that are their input times a gate.
_SUMS = ("add", "add_", "__add__", "__iadd__", "__radd__", "sub", "sub_", "__sub__", "__isub__")
_SCALES = ("rsqrt", "sqrt", "std", "norm", "vector_norm")
_POWERS = ("pow", "__pow__")
_ACTIVATIONS = ("gelu", "relu", "relu_", "silu", "tanh")


@dataclass(frozen=True, slots=True)
class StreamPart:
    """A writer to the residual stream.

    Attributes:
        kind: "token", "position", "segment", "head", "feed-forward" or "biases".
        attention: Of a head: "encoder", "decoder" or "cross"; of a feed-forward part, the first
            two; else "".
        layer: Which layer, from 0; None of embeddings and biases.
        head: Which head of the layer, from 0; None of others.

    Example:
        >>> StreamPart("head", "decoder", 3, 2).name, StreamPart("feed-forward", "decoder", 0).name
        ('layer 3 head 2', 'layer 0 feed-forward')
    """

    kind: str
    attention: str = ""
    layer: int | None = None
    head: int | None = None

    @property
    def name(self) -> str:
        """Name in tables: "token", "layer 3 head 2", "layer 3 feed-forward"."""
        if self.layer is None:
            return self.kind
        cross = "cross " if self.attention == "cross" else ""
        number = "" if self.head is None else f" {self.head}"
        return f"layer {self.layer} {cross}{self.kind}{number}"

    def order(self) -> tuple[int, int, int]:
        """Key of sorting: embeddings, layer by layer heads and feed-forward part, then biases."""
        if self.layer is None:
            is_first = self.kind in _EMBEDDINGS
            return (-1, _EMBEDDINGS.index(self.kind), 0) if is_first else (10**9, 0, 0)
        if self.head is None:
            return self.layer, 2, 0
        return self.layer, int(self.attention == "cross"), self.head


class LinearFunctions(TorchFunctionMode):
    """Holds the scales of norms, and makes parts of embeddings and of summands."""

    # Parameters are taken without their gradients, so that only parts have some: biases, too,
    # wherever they are added.

    def __init__(
        self,
        add: Callable[[Tensor, StreamPart], Tensor],
        tokens: Sequence[Tensor],
        names: Mapping[int, str],
        hold: Callable[[Tensor], Tensor] = torch.detach,
    ) -> None:
        super().__init__()
        self._add, self._tokens, self._names, self._hold = add, tokens, names, hold
        self.tables: dict[int, Tensor] = {}  # where these tokens are looked up

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: Arguments = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> object:
        """Compute a function so that it is linear in the parts."""
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name in ("__get__", "__set__", "detach") or torch.compiler.is_compiling():
            return func(*args, **kwargs)
        names = self._names
        table = next((value for value in args if id(value) in names), None)
        args = tuple(map(_constant, args))
        kwargs = {key: _constant(value) for key, value in kwargs.items()}
        if name == "embedding" and args[1].is_floating_point():
            kind = self._kind_of(args[0], args[1], names.get(id(table), ""))
            return self._add(func(*args, **kwargs), StreamPart(kind))
        if name == "layer_norm":
            return self._layer_norm(*args, **kwargs)
        if name == "rms_norm":
            return self._rms_norm(*args, **kwargs)
        if name in ("linear", "addmm"):
            return self._affine(func, name, args, kwargs)
        if name in _SUMS:
            return func(*self._summands(args), **kwargs)
        out = func(*args, **kwargs)
        if name in _SCALES or (name in _POWERS and args[-1] in (-0.5, 0.5)):
            return self._hold(out.detach()) if _has_graph(args[0]) else out.detach()
        if name in _ACTIVATIONS and _has_graph(args[0]):
            states, out = args[0].detach(), out.detach()
            gate = torch.where(states == 0, 0, out / states)
            held = self._hold(gate)
            out = out if held is gate else states * held
            return _Held.apply(args[0], out, held)  # type: ignore[no-untyped-call]
        return out

    def _kind_of(self, ids: Tensor, table: Tensor, name: str) -> str:
        """Name an embedding by the ids that are looked up and the name of its table."""
        if _SEGMENT.search(name):
            return "segment"
        flat = ids.flatten()
        numbers = [
            n
            for n, tokens in enumerate(self._tokens)
            if tokens.numel() == len(flat) and bool((tokens.flatten() == flat).all())
        ]
        if _POSITION.search(name) or not numbers:
            return "position"
        for n in numbers:
            self.tables.setdefault(n, table)
        return "token"

    def _bias(self, bias: Tensor | None) -> Tensor | None:
        return None if bias is None else self._add(bias, StreamPart("biases"))

    def _affine(
        self, func: Callable[..., Any], name: str, args: Arguments, kwargs: dict[str, Any]
    ) -> object:
        """A linear map with its bias, which ``addmm`` has first and ``linear`` last."""
        states = kwargs.get("input", args[0]) if name == "linear" else args[1]
        if not _has_graph(states):
            return func(*args, **kwargs)
        if name == "addmm":
            return func(self._bias(args[0]), *args[1:], **kwargs)
        if len(args) > 2:
            return func(*args[:2], self._bias(args[2]), **kwargs)
        if "bias" in kwargs:
            kwargs["bias"] = self._bias(kwargs["bias"])
        return func(*args, **kwargs)

    def _layer_norm(
        self,
        states: Tensor,
        shape: Sequence[int],
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float = 1e-5,
    ) -> Tensor:
        axes = list(range(-len(shape), 0))
        wide = states.to(torch.promote_types(states.dtype, torch.float32))
        centred = wide - wide.mean(dim=axes, keepdim=True)
        scale = (centred.detach().square().mean(dim=axes, keepdim=True) + eps).rsqrt()
        scale = self._hold(scale) if _has_graph(states) else scale
        out = (centred * scale).to(states.dtype)
        out = out if weight is None else out * weight
        return out if bias is None else out + torch.as_tensor(self._bias(bias))

    def _rms_norm(
        self,
        states: Tensor,
        shape: Sequence[int],
        weight: Tensor | None = None,
        eps: float | None = None,
    ) -> Tensor:
        axes = list(range(-len(shape), 0))
        wide = states.to(torch.promote_types(states.dtype, torch.float32))
        eps = torch.finfo(states.dtype).eps if eps is None else eps
        scale = (wide.detach().square().mean(dim=axes, keepdim=True) + eps).rsqrt()
        scale = self._hold(scale) if _has_graph(states) else scale
        out = (wide * scale).to(states.dtype)
        return out if weight is None else out * weight

    def _summands(self, args: Arguments) -> Arguments:
        """Operands of a sum or a difference: a constant beside parts becomes a part."""
        first, second, *remaining = args
        if not (_has_graph(first) or _has_graph(second)):
            return args
        return self._summand(first, second), self._summand(second, first), *remaining

    def _summand(self, operand: Any, addend: Any) -> Any:
        is_constant = isinstance(operand, Tensor) and not operand.requires_grad
        if not (is_constant and operand.is_floating_point()):
            return operand
        # A constant that has a row for each position tells positions apart.
        has_rows = operand.dim() > 1 and operand.shape[-2] == addend.shape[-2]
        return self._add(operand, StreamPart("position" if has_rows else "biases"))


def _constant(value: object) -> Any:
    """A value, of a parameter (or some) without its gradient."""
    if isinstance(value, nn.Parameter):
        return value.detach()
    if type(value) in (list, tuple):
        assert isinstance(value, list | tuple)
        return type(value)(map(_constant, value))
    return value


def _has_graph(value: object) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


class _Held(torch.autograd.Function):
    """An activation whose ratio to its input is held: GELU, SiLU, ReLU and tanh are gates."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, out: Tensor, gate: Tensor) -> Tensor:
        ctx.save_for_backward(gate)
        return out.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (gate,) = ctx.saved_tensors
        return grad * gate, None, None
