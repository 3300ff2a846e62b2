"""A run of a model that is linear in what writes to its residual stream.

Weights of attention, outputs of feed-forward parts and scales of norms are held at their values in
this run; then queries, keys and logits are sums over embeddings, heads, feed-forward parts and
biases, exactly.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from regard.attention import AttentionCall
from regard.errors import SettingError
from regard.interop.interventions.edit import AttentionChange, EditedCall, edit
from regard.interop.interventions.patching import Site, modules_of

Arguments = tuple[Any, ...]

# Inputs of whole numbers that are no tokens, and tables of what stands beside them.
_BESIDE = re.compile(r"mask|position|type|segment|length")
_SEGMENT = re.compile(r"token_type|segment")
_POSITION = re.compile(r"(^|\.)wpe\.|posit|(^|[._])pos([._]|$)")
# Names of torch's functions: sums; scales of norms; activations that are their input times a gate.
_SUMS = ("add", "add_", "__add__", "__iadd__", "__radd__", "sub", "sub_", "__sub__", "__isub__")
_SCALES = ("rsqrt", "sqrt", "std", "norm", "vector_norm")
_POWERS = ("pow", "__pow__")
_ACTIVATIONS = ("gelu", "relu", "relu_", "silu", "tanh")
_HELD = "_HeldBackward"
# Nodes of graphs that are linear in pieces, which the sum of all parts does not give away.
_IN_PIECES = re.compile(r"Relu|Clamp|Abs|Max|Min|Threshold|Hardtanh")


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


class _Leaf(NamedTuple):
    """A tensor that the run is linear in, and the part it is of."""

    tensor: Tensor
    part: StreamPart  # the first head of an attention, whose output (B, H, N, E) it is


class LinearRun:
    """A forward in which queries, keys and logits have linear gradients by all that is written.

    Raises:
        SettingError: The attention of the model cannot be reached.
    """

    def __init__(self, model: nn.Module, inputs: Mapping[str, object]) -> None:
        self.calls: dict[Site, AttentionCall] = {}  # of the model as it is
        self.spans: dict[Site, tuple[range, range]] = {}  # positions of queries and keys
        self.model = model
        self._queries: dict[Site, Tensor] = {}  # with their graph
        self._keys: dict[Site, Tensor] = {}
        self._leaves: list[_Leaf] = []
        names: dict[Site, str] = {}
        with torch.no_grad(), edit(model) as edits:
            edits.change(_Noting(self, names))
            model(**inputs)
        tokens = [
            each
            for name, each in inputs.items()
            if isinstance(each, Tensor) and each.dim() == 2 and not _BESIDE.search(name)
        ]
        parameters = {id(each): name for name, each in model.named_parameters()}
        # Outside of ``edit``, whose own mode has to see who calls a function.
        self._mode = _Linear(self._add, tokens, parameters)
        with torch.enable_grad(), self._mode, edit(model) as edits:
            edits.change(_Cutting(self))
            for site, module in modules_of(model, "mlp", names, is_needed=False).items():
                edits.change_module(module, _FeedForward(self, site))
            self.answer = model(**inputs)
        if not any(each.part.kind == "token" for each in self._leaves):
            raise SettingError(
                "model must look its tokens up in a table for its parts to be told apart; got "
                f"{type(model).__name__}, which does not."
            )

    def output(self, number: Callable[[object], Tensor]) -> tuple[dict[StreamPart, float], float]:
        """Contributions of the parts to a number of the model's output, and the number itself."""
        with torch.enable_grad(), self._mode:
            value = number(self.answer)[0]
        held = self._nonlinear(value, through=True)
        if held and self._nonlinear(value, through=False, leaves=True):
            self._refuse(held)
        (products,) = self._products(value[None])
        return {part: float(each[0]) for part, each in products.items()}, float(value.detach())

    def query(self, site: Site, head: int, position: int) -> dict[StreamPart, Tensor]:
        """Contributions (D,) of the parts to a query, as its head multiplies it."""
        return self._vector(self._queries[site][0, head, position])

    def key(self, site: Site, head: int, position: int) -> dict[StreamPart, Tensor]:
        """Contributions (D,) of the parts to a key."""
        keys = self._keys[site]
        group = head * keys.shape[1] // self._queries[site].shape[1]
        return self._vector(keys[0, group, position])

    def _vector(self, vector: Float[Tensor, " D"]) -> dict[StreamPart, Tensor]:
        if held := self._nonlinear(vector, through=True):
            self._refuse(held)
        (products,) = self._products(vector)
        return products

    def _products(self, numbers: Float[Tensor, " D"]) -> Iterator[dict[StreamPart, Tensor]]:
        """Gradient times value of each part, for each of some numbers."""
        leaves = self._leaves
        found: dict[StreamPart, list[Tensor]] = {}
        for n in range(len(numbers)):
            gradients: Sequence[Tensor | None] = [None] * len(leaves)
            if numbers.requires_grad:
                tensors = [leaf.tensor for leaf in leaves]
                gradients = torch.autograd.grad(
                    numbers[n], tensors, retain_graph=True, allow_unused=True
                )
            reached = [
                (leaf, gradient)
                for leaf, gradient in zip(leaves, gradients, strict=True)
                if gradient is not None
            ]
            leaves = [leaf for leaf, _ in reached]  # those that count, from the first on
            for leaf, gradient in reached:
                product = leaf.tensor.detach().double() * gradient.double()
                if leaf.part.kind != "head":
                    _note(found, leaf.part, n, product.sum(), len(numbers))
                    continue
                for head, value in enumerate(product.sum(dim=(0, 2, 3))):
                    part = StreamPart("head", leaf.part.attention, leaf.part.layer, head)
                    _note(found, part, n, value, len(numbers))
        yield {part: torch.stack(values) for part, values in sorted(found.items(), key=_order)}

    def _nonlinear(self, value: Tensor, *, through: bool, leaves: bool = False) -> str:
        """Name of a function on the way to a value that is linear only in pieces; "" of none.

        ``through`` looks behind held activations too; ``leaves`` looks for a part instead.
        """
        parts = {id(leaf.tensor) for leaf in self._leaves if leaf.part.kind != "biases"}
        seen, pending = set[Any](), [value.grad_fn]
        while pending:
            node = pending.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            name = type(node).__name__
            variable = getattr(node, "variable", None)
            if leaves and variable is not None and id(variable) in parts:
                return name
            is_held = name == _HELD
            if not leaves and (is_held or _IN_PIECES.search(name)):
                return name
            if not is_held or through:
                pending += [each for each, _ in node.next_functions]
        return ""

    def _refuse(self, name: str) -> None:
        found = "an activation" if name == _HELD else name
        raise SettingError(
            "model must be linear between its attention and feed-forward parts, but for norms, for "
            f"these to be told apart; got {type(self.model).__name__} with {found} there."
        )

    def _add(self, tensor: Tensor, part: StreamPart) -> Tensor:
        """Cut the graph at a tensor, from which on the run is linear in it."""
        leaf = tensor.detach().requires_grad_()
        self._leaves.append(_Leaf(leaf, part))
        return leaf.clone()  # may be written into


def _note(
    found: dict[StreamPart, list[Tensor]], part: StreamPart, n: int, value: Tensor, count: int
) -> None:
    row = found.setdefault(part, [value.new_zeros(())] * count)
    row[n] = row[n] + value


_EMBEDDINGS = ("token", "position", "segment")
_IN_LAYER = {"encoder": 0, "decoder": 0, "cross": 1}


def _order(item: tuple[StreamPart, object]) -> tuple[int, int, int, int]:
    """Embeddings, then layer by layer heads and feed-forward part, biases last."""
    part = item[0]
    if part.layer is None:
        is_first = part.kind in _EMBEDDINGS
        return (-1, _EMBEDDINGS.index(part.kind), 0, 0) if is_first else (10**9, 0, 0, 0)
    if part.head is None:
        return part.layer, 2, 0, 0
    return part.layer, _IN_LAYER.get(part.attention, 0), part.head, 0


@dataclass(frozen=True, slots=True, eq=False)
class _Noting(AttentionChange):
    """Notes what attends, and to what."""

    run: LinearRun
    names: dict[Site, str]

    def change(self, what: str, given: Tensor, call: EditedCall) -> Tensor:
        self.names[call.site] = call.name
        if call.attention is not None:
            self.run.calls[call.site] = call.attention
        self.run.spans[call.site] = (call.queries, call.keys)
        return given


@dataclass(frozen=True, slots=True, eq=False)
class _Cutting(AttentionChange):
    """Ends the graph at queries, keys and values, and begins it at what heads mix."""

    run: LinearRun

    def changes_values(self) -> bool:
        return True

    def change(self, what: str, given: Tensor, call: EditedCall) -> Tensor:
        if what == "queries":
            self.run._queries[call.site] = given
        elif what == "keys":
            self.run._keys[call.site] = given
        return given.detach()

    def finish(self, out: Tensor, value: Tensor, call: EditedCall) -> Tensor:
        kind, layer = call.site
        return self.run._add(out, StreamPart("head", kind, layer, 0))


class _FeedForward:
    """Cuts the graph at the output of a feed-forward part, which layers may share."""

    def __init__(self, run: LinearRun, site: Site) -> None:
        self._run, (self._kind, self._layer) = run, site

    def __call__(self, output: Tensor) -> Tensor:
        part = StreamPart("feed-forward", self._kind, self._layer)
        self._layer += 1
        return self._run._add(output, part)


class _Linear(TorchFunctionMode):
    """Holds the scales of norms, and makes parts of embeddings and of what is added."""

    # Parameters are taken without their gradients, so that only parts have some: biases, too,
    # wherever they are added.

    def __init__(
        self,
        add: Callable[[Tensor, StreamPart], Tensor],
        tokens: Sequence[Tensor],
        names: Mapping[int, str],
    ) -> None:
        super().__init__()
        self._add, self._tokens, self._names = add, tokens, names

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
        table = next((each for each in args if id(each) in names), None)
        args = tuple(map(_constant, args))
        kwargs = {key: _constant(each) for key, each in kwargs.items()}
        if name == "embedding" and args[1].is_floating_point():
            kind = self._kind_of(args[0], names.get(id(table), ""))
            return self._add(func(*args, **kwargs), StreamPart(kind))
        if name == "layer_norm":
            return self._layer_norm(*args, **kwargs)
        if name == "rms_norm":
            return self._rms_norm(*args, **kwargs)
        if name in ("linear", "addmm"):
            return self._affine(func, name, args, kwargs)
        if name in _SUMS:
            return func(*self._summands(name, args), **kwargs)
        out = func(*args, **kwargs)
        if name in _SCALES or (name in _POWERS and args[-1] in (-0.5, 0.5)):
            return out.detach()
        if name in _ACTIVATIONS and _has_graph(args[0]):
            return _Held.apply(args[0], out.detach())  # type: ignore[no-untyped-call]
        return out

    def _kind_of(self, ids: Tensor, name: str) -> str:
        """Which embedding a lookup is, by its ids and by the name of its table."""
        if _SEGMENT.search(name):
            return "segment"
        flat = ids.flatten()
        is_token = any(
            each.numel() == len(flat) and bool((each.flatten() == flat).all())
            for each in self._tokens
        )
        is_position = bool(_POSITION.search(name)) or not is_token
        return "position" if is_position else "token"

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
        out = (wide * scale).to(states.dtype)
        return out if weight is None else out * weight

    def _summands(self, name: str, args: Arguments) -> Arguments:
        """Operands of a sum or a difference: what is constant in one with parts becomes a part."""
        first, second, *rest = args
        if not (_has_graph(first) or _has_graph(second)):
            return args
        made = []
        for one, other in ((first, second), (second, first)):
            if isinstance(one, Tensor) and one.is_floating_point() and not _has_graph(one):
                # A constant that has a row for each position tells positions apart.
                has_rows = one.dim() > 1 and one.shape[-2] == other.shape[-2]
                one = self._add(one, StreamPart("position" if has_rows else "biases"))
            made.append(one)
        return (*made, *rest)


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
    def forward(ctx: Any, states: Tensor, out: Tensor) -> Tensor:
        ctx.save_for_backward(torch.where(states == 0, 0, out / states))
        return out.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (gate,) = ctx.saved_tensors
        return grad * gate, None
