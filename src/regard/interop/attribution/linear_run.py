"""A run of a model that is linear in the writers of its residual stream.

Weights of attention, outputs of feed-forward parts and scales of norms are held at their values in
this run; then queries, keys and logits are sums over embeddings, heads, feed-forward parts and
biases, exactly.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention import AttentionCall
from regard.errors import SettingError
from regard.interop.attribution.linear_functions import HELD, LinearFunctions, StreamPart
from regard.interop.interventions.changes import AttentionChange, EditedCall
from regard.interop.interventions.edit import edit
from regard.interop.interventions.patching import Site, modules_of

# Inputs of whole numbers that are no tokens.
_BESIDE = re.compile(r"mask|position|type|segment|length")
_NUMBERS = 4 * 10**6  # of the gradients of one part that are computed at once
# Nodes of graphs that are linear in pieces, which the sum of all parts does not give away.
_IN_PIECES = re.compile(r"Relu|Clamp|Abs|Max|Min|Threshold|Hardtanh")


class _Leaf(NamedTuple):
    """A tensor that the run is linear in, and the part it is of."""

    tensor: Tensor
    part: StreamPart  # the first head of an attention, whose output (B, H, N, E) it is


def token_inputs(inputs: Mapping[str, object]) -> dict[str, Tensor]:
    """Inputs that are ids of tokens, by name: those read, then those written."""
    return {
        name: value
        for name, value in inputs.items()
        if isinstance(value, Tensor) and value.dim() == 2 and not _BESIDE.search(name)
    }


class LinearRun:
    """A forward in which queries, keys and logits have linear gradients by all that is written.

    Raises:
        SettingError: The attention of the model cannot be reached.
    """

    def __init__(
        self,
        model: nn.Module,
        inputs: Mapping[str, object],
        *,
        hold: Callable[[Tensor], Tensor] = torch.detach,
    ) -> None:
        self.calls: dict[Site, AttentionCall] = {}  # of the model as it is
        self.spans: dict[Site, tuple[range, range]] = {}  # positions of queries and keys
        self.names: dict[Site, str] = {}  # of the modules that attend
        self.model, self.inputs = model, inputs
        self._queries: dict[Site, Tensor] = {}  # with their graph
        self._keys: dict[Site, Tensor] = {}
        self._leaves: list[_Leaf] = []
        with torch.no_grad(), edit(model) as edits:
            edits.change(_Noting(self))
            model(**inputs)
        tokens = token_inputs(inputs)
        parameters = {id(parameter): name for name, parameter in model.named_parameters()}
        # Outside of ``edit``, whose own mode has to see who calls a function.
        self.mode = LinearFunctions(self._add, list(tokens.values()), parameters, hold)
        with torch.enable_grad(), self.mode, edit(model) as edits:
            edits.change(_Cutting(self))
            self.feed_forward = modules_of(model, "mlp", self.names, is_needed=False)
            for site, module in self.feed_forward.items():
                edits.change_module(module, FeedForwardChange(self._cut_feed_forward, site))
            self.answer = model(**inputs)
        tables = self.mode.tables
        self.tables = {name: tables[n] for n, name in enumerate(tokens) if n in tables}
        if not any(leaf.part.kind == "token" for leaf in self._leaves):
            raise SettingError(
                "model must look its tokens up in a table for its parts to be told apart; got "
                f"{type(model).__name__}, which does not."
            )

    @torch.enable_grad()
    def output(self, number: Callable[[object], Tensor]) -> tuple[dict[StreamPart, float], float]:
        """Contributions of the parts to a number of the model's output, and the number itself."""
        with self.mode:
            value = number(self.answer)[0]
        held = self._nonlinear(value, through=True)
        if held and self._nonlinear(value, through=False, leaves=True):
            self._refuse(held)
        products = self._products(value[None])
        contributions = {part: float(product[0]) for part, product in products.items()}
        return contributions, float(value.detach())

    @torch.enable_grad()
    def query(self, site: Site, head: int, position: int) -> dict[StreamPart, Tensor]:
        """Contributions (D,) of the parts to a query, as its head multiplies it."""
        return self._vector(self._queries[site][0, head, position])

    @torch.enable_grad()
    def key(self, site: Site, head: int, position: int) -> dict[StreamPart, Tensor]:
        """Contributions (D,) of the parts to a key."""
        keys = self._keys[site]
        group = head * keys.shape[1] // self._queries[site].shape[1]
        return self._vector(keys[0, group, position])

    def reached_by(self, number: Tensor) -> Float[Tensor, " N"]:
        """Size of the gradients of a number by the contexts of the last heads, at each position."""
        last = next(leaf.tensor for leaf in reversed(self._leaves) if leaf.part.kind == "head")
        (gradient,) = torch.autograd.grad(number, [last], retain_graph=True)
        return gradient[0].abs().sum(dim=(0, 2))

    def mixed(self, site: Site) -> Float[Tensor, "B H N E"]:
        """Mixed values of the heads of an attention."""
        part = StreamPart("head", *site, 0)
        return next(leaf.tensor.detach() for leaf in self._leaves if leaf.part == part)

    def _vector(self, vector: Float[Tensor, " D"]) -> dict[StreamPart, Tensor]:
        if held := self._nonlinear(vector, through=True):
            self._refuse(held)
        return self._products(vector)

    def _products(self, numbers: Float[Tensor, " D"]) -> dict[StreamPart, Tensor]:
        """Gradient times value of each part, (D,), for each of some numbers."""
        if not numbers.requires_grad:
            return {}
        found: dict[StreamPart, Tensor] = {}
        largest = max(leaf.tensor.numel() for leaf in self._leaves)
        rows = torch.eye(len(numbers), dtype=numbers.dtype, device=numbers.device)
        parts = torch.split(rows, 1 + _NUMBERS // largest)
        chunks = [self._gradients(numbers, chunk) for chunk in parts]
        for leaf, *gradients in zip(self._leaves, *chunks, strict=True):
            for part, product in _by_part(leaf, gradients):
                found[part] = found[part] + product if part in found else product
        return dict(sorted(found.items(), key=lambda item: item[0].order()))

    def _gradients(self, numbers: Tensor, rows: Float[Tensor, "R D"]) -> list[Tensor | None]:
        """Products of the parts with the gradients of numbers."""
        tensors = [leaf.tensor for leaf in self._leaves]
        is_one = len(numbers) == 1
        gradients = torch.autograd.grad(
            numbers,
            tensors,
            rows[0] if is_one else rows,
            retain_graph=True,
            allow_unused=True,
            is_grads_batched=not is_one,
        )
        return [
            None if gradient is None else (gradient[None] if is_one else gradient) * tensor.detach()
            for gradient, tensor in zip(gradients, tensors, strict=True)
        ]

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
            is_held = name == HELD
            if not leaves and (is_held or _IN_PIECES.search(name)):
                return name
            if not is_held or through:
                pending += [parent for parent, _ in node.next_functions]
        return ""

    def _refuse(self, name: str) -> None:
        found = "an activation" if name == HELD else name
        raise SettingError(
            "model must be linear between its attention and feed-forward parts, but for norms, for "
            f"these to be told apart; got {type(self.model).__name__} with {found} there."
        )

    def _cut_feed_forward(self, output: Tensor, site: Site) -> Tensor:
        return self._add(output, StreamPart("feed-forward", *site))

    def _add(self, tensor: Tensor, part: StreamPart) -> Tensor:
        """Cut the graph at a tensor, from which on the run is linear in it."""
        leaf = tensor.detach().requires_grad_()
        self._leaves.append(_Leaf(leaf, part))
        return leaf.clone()  # may be written into


def _by_part(leaf: _Leaf, products: Sequence[Tensor | None]) -> Iterator[tuple[StreamPart, Tensor]]:
    """Sums over a part's numbers, (D,), of products (R, …) that come some rows at a time."""
    if leaf.part.kind != "head":
        sums = [
            product.double().flatten(1).sum(dim=1) for product in products if product is not None
        ]
        if sums:
            yield leaf.part, torch.cat(sums)
        return
    sums = [product.double().sum(dim=(1, 3, 4)) for product in products if product is not None]
    for head, column in enumerate(torch.cat(sums).unbind(dim=1) if sums else ()):
        yield replace(leaf.part, head=head), column


@dataclass(frozen=True, slots=True, eq=False)
class _Noting(AttentionChange):
    """Records which modules attend, and to which states."""

    run: LinearRun

    def change(self, part: str, given: Tensor, call: EditedCall) -> Tensor:
        self.run.names[call.site] = call.name
        if call.attention is not None:
            self.run.calls[call.site] = call.attention
        self.run.spans[call.site] = (call.queries, call.keys)
        return given


@dataclass(frozen=True, slots=True, eq=False)
class _Cutting(AttentionChange):
    """Ends the graph at queries, keys and values, and begins it at the contexts of heads."""

    run: LinearRun

    def changes_values(self) -> bool:
        return True

    def change(self, part: str, given: Tensor, call: EditedCall) -> Tensor:
        if part == "queries":
            self.run._queries[call.site] = given
        elif part == "keys":
            self.run._keys[call.site] = given
        return given.detach()

    def finish(self, out: Tensor, value: Tensor, call: EditedCall) -> Tensor:
        kind, layer = call.site
        return self.run._add(out, StreamPart("head", kind, layer, 0))


class FeedForwardChange:
    """Changes the output of a feed-forward part, which layers may share."""

    def __init__(self, change: Callable[[Tensor, Site], Tensor], site: Site) -> None:
        self._change, (self._kind, self._layer) = change, site

    def __call__(self, output: Tensor) -> Tensor:
        site = (self._kind, self._layer)
        self._layer += 1
        return self._change(output, site)
