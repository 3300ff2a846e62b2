"""The attention inside any call, read from the operations that torch runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from regard.attention.testing.evidence import (
    Attention,
    Product,
    Scores,
    Softmax,
    Traced,
    Weights,
    calling_line,
    detaches,
    is_flags,
    is_over_pairs,
    number_in,
    storage_of,
    tensors_in,
)

# Operations that hand the same numbers on, or some of them, in another order or another dtype.
_VIEWS = {
    *("view", "_unsafe_view", "reshape", "_reshape_alias", "transpose", "t", "permute", "movedim"),
    *("unsqueeze", "squeeze", "expand", "clone", "contiguous", "alias", "detach", "_to_copy"),
    *("lift_fresh", "copy", "slice", "select", "index", "narrow", "split", "unbind", "gather"),
}
_MASKING = ("add", "sub", "masked_fill", "where", "index_put", "tril", "triu", "nan_to_num")
_SOFTMAX = ("_softmax", "_safe_softmax", "_log_softmax")
_ACTIVATIONS = ("tanh", "sigmoid", "relu", "native_dropout")
_FUSED = "_scaled_dot_product"
_LINEAR = ("mul", "div", "add", "sub", "neg", "cat", "stack")
_RANDOM = {
    *("bernoulli", "native_dropout", "_fused_dropout", "rand", "rand_like", "uniform", "normal"),
    *("exponential", "multinomial", "randint", "randn", "randn_like"),
}


@dataclass(slots=True, eq=False)
class _Node:
    """A tensor and where it came from."""

    tensor: Tensor
    is_input: bool = False  # depends on the content of the call
    factor: float = 1.0
    scores: Scores | None = None
    weights: Weights | None = None
    exponential: int | None = None  # the exponential it is, by the id of its node's tensor
    sum_of: tuple[int, int] | None = None  # the exponential and the axis it is a sum over
    outer: tuple["_Node", "_Node", str] | None = None
    is_projected: bool = False


class _Step(NamedTuple):
    """An operation: its name and arguments, its operands and its output."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    operands: list[_Node]
    node: _Node
    line: str


class Trace(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Follows scores, weights and values through the operations of a call.

    Args:
        touch: Changes the output of one operation, by its number.
    """

    def __init__(self, touch: tuple[int, Callable[[Tensor], Tensor]] | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen = Traced()
        self._touch = touch
        self._nodes: dict[int, _Node] = {}
        self._kept: list[Tensor] = []
        self._readers: dict[str, Callable[[_Step], None]] = {
            **dict.fromkeys(_VIEWS, self._hand_on),
            **dict.fromkeys(("mul", "div"), self._multiply),
            **dict.fromkeys(_MASKING, self._mask),
            **dict.fromkeys(_SOFTMAX, self._read_softmax),
            **dict.fromkeys(("mm", "bmm", "mv", "addmm", "baddbmm"), self._mix),
            **dict.fromkeys(("clamp", "clamp_min", "maximum"), self._keep_sum),
            "exp": self._raise_e,
            "sum": self._sum,
        }
        self._inputs = set[int]()
        self._count = 0

    def begin(self, inputs: Sequence[Tensor]) -> None:
        """Name the tensors that the content of the call comes in."""
        for tensor in inputs:
            self._add(_Node(tensor, is_input=True))
        self._inputs = {storage_of(tensor) for tensor in inputs}

    def _add(self, node: _Node) -> None:
        self._nodes[id(node.tensor)] = node
        self._kept.append(node.tensor)  # an id stays its own as long as the tensor lives

    def _node(self, tensor: Tensor) -> _Node:
        return self._nodes.get(id(tensor)) or _Node(tensor)

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> object:
        """Run the operation, and read it."""
        out = func(*args, **(kwargs or {}))
        self._count += 1
        if self._touch is not None and self._touch[0] == self._count:
            first = out[0] if isinstance(out, tuple) else out
            with torch.no_grad():
                first.copy_(self._touch[1](first.clone()))
        try:
            self._read(func.overloadpacket.__name__, args, kwargs or {}, out)
        except Exception as error:  # an unreadable operation must not stop the module
            self.seen.failed = f"{func} could not be read ({type(error).__name__}: {error})."
        return out

    def _read(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
        is_in_place = name.endswith("_") and not name.endswith("__")
        name = name if name.startswith("_") else name.rstrip("_")
        made = tensors_in(out if isinstance(out, list | tuple) else [out])
        operands = [self._node(operand) for operand in tensors_in(args)]
        self.seen.operands.update(id(operand.tensor) for operand in operands)
        line, is_engine = calling_line()
        if name == "detach" and detaches(line):
            self.seen.detached.append(line)
        if is_in_place and operands and storage_of(operands[0].tensor) in self._inputs:
            self.seen.in_place.append(line)
        if name in _RANDOM:
            self.seen.random.append((name, line))
        for tensor in made:
            node = _Node(tensor, is_input=any(operand.is_input for operand in operands))
            if not is_engine:
                self._follow(_Step(name, args, kwargs, operands, node, line))
            is_first = not self.seen.first_bad and node.is_input and tensor.is_floating_point()
            if is_first and name != "empty_like" and bool(tensor.isnan().any()):
                self.seen.first_bad = line
            self._add(node)

    def _follow(self, step: _Step) -> None:
        """Hand the meaning of the operands on to the output."""
        if not step.operands:
            return
        node, name, first = step.node, step.name, step.operands[0]
        if name in _LINEAR:
            node.is_projected = any(operand.is_projected for operand in step.operands)
        if name in self._readers:
            self._readers[name](step)
        elif name.startswith(_FUSED) and len(step.operands) >= 3 and node.tensor.dim() >= 3:
            self._fuse(step)
        elif name in _ACTIVATIONS and first.scores is not None:
            steps = (*first.scores.steps, (name, None, step.line))
            node.scores = replace(first.scores, factor=None, steps=steps)

    def _hand_on(self, step: _Step) -> None:
        first, node = step.operands[0], step.node
        node.factor, node.scores, node.weights = first.factor, first.scores, first.weights
        node.exponential, node.sum_of = first.exponential, first.sum_of
        node.is_projected = first.is_projected
        if node.weights is not None:
            is_part = node.tensor.numel() < first.tensor.numel()
            is_cut = step.name == "detach" and detaches(step.line)
            steps = ("part",) * is_part + ("detached",) * is_cut
            node.weights = replace(node.weights, steps=(*node.weights.steps, *steps))

    def _multiply(self, step: _Step) -> None:
        first, second = step.operands[0], step.operands[1] if len(step.operands) > 1 else None
        number = number_in(step.args[1]) if len(step.args) > 1 else None
        if number is None and second is not None and step.name == "mul" and not first.is_input:
            number = number_in(step.args[0])
            first, second = (second, first) if number is not None else (first, second)
        if number is not None and (second is None or not second.is_input):
            by = number if step.name == "mul" else 1 / number if number else 0.0
            _scale(first, step.node, by)
        elif second is not None and not self._normalise(step, first, second):
            _weigh(step, first, second)

    def _normalise(self, step: _Step, first: _Node, second: _Node) -> bool:
        """Whether a division is by the sum of the dividend: a softmax by hand."""
        if step.name != "div" or second.sum_of is None:
            return False
        source, axis = second.sum_of
        self.seen.normalised.add(source)
        if source not in (first.exponential, id(first.tensor)):
            return False
        self._soften(step, first, axis, is_by_hand=True)
        return True

    def _mask(self, step: _Step) -> None:
        node, operands, name = step.node, step.operands, step.name
        with_scores = [operand for operand in operands if operand.scores is not None]
        with_weights = [operand for operand in operands if operand.weights is not None]
        if len(with_scores) == 1 or (name == "sub" and with_scores):
            scored = with_scores[0]
            mask = next((operand.tensor for operand in operands if operand is not scored), None)
            assert scored.scores is not None
            node.scores = replace(
                scored.scores, steps=(*scored.scores.steps, (name, mask, step.line))
            )
            node.exponential = scored.exponential
        elif with_weights and name not in ("add", "sub"):
            weights = with_weights[0].weights
            assert weights is not None
            node.weights = replace(weights, steps=(*weights.steps, "masked"))
        elif name == "add":
            total = next((operand for operand in operands if operand.sum_of is not None), None)
            node.sum_of = None if total is None else total.sum_of  # with a small number added

    def _raise_e(self, step: _Step) -> None:
        first, node = step.operands[0], step.node
        node.exponential = id(node.tensor)
        if first.scores is not None:
            steps = (*first.scores.steps, ("exp", None, step.line))
            node.scores = replace(first.scores, steps=steps)

    def _keep_sum(self, step: _Step) -> None:
        step.node.sum_of = step.operands[0].sum_of

    def _sum(self, step: _Step) -> None:
        first, node = step.operands[0], step.node
        axes = step.args[1] if len(step.args) > 1 else None
        if not isinstance(axes, list | tuple) or len(axes) != 1:
            return
        axis = axes[0] % first.tensor.dim()
        node.sum_of = (first.exponential or id(first.tensor), axis)
        if first.outer is None:
            return
        left_node, right_node, line = first.outer
        is_outer = is_over_pairs(left_node.tensor, right_node.tensor, first.tensor)
        if axis == first.tensor.dim() - 1:
            if not is_outer:
                return
            self.seen.outers.append((tuple(first.tensor.shape), line))
            shape = first.tensor.shape
            is_query = left_node.tensor.dim() > 1 and left_node.tensor.shape[-2] == 1
            query, key = (
                (left_node.tensor, right_node.tensor)
                if is_query
                else (right_node.tensor, left_node.tensor)
            )
            left = query.expand(shape)[..., :, 0, :].clone()
            right = key.expand(shape)[..., 0, :, :].mT.clone()
            before = left_node.factor * right_node.factor
            is_projected = left_node.is_projected and right_node.is_projected
            product = Product(left, right, 1.0, True, line, before, is_projected)
            node.scores = Scores(product, before)
        else:
            source = left_node if left_node.weights is not None else right_node
            if source.weights is not None:
                if is_outer and first.tensor.shape[axis - 1] > 1:
                    self.seen.outers.append((tuple(first.tensor.shape), line))
                over = axis if axis < source.tensor.dim() else -1
                self._attend("pooled", source, source.tensor.sum(over, keepdim=True), step)

    def _read_softmax(self, step: _Step) -> None:
        self._soften(step, step.operands[0], step.args[1])
        if step.name == "_log_softmax" and step.node.weights is not None:
            step.node.weights = replace(step.node.weights, steps=("log",))

    def _soften(self, step: _Step, first: _Node, axis: int, *, is_by_hand: bool = False) -> None:
        made = step.node.tensor
        copies = first.tensor.detach().clone(), made.detach().clone()
        softmax = Softmax(*copies, axis % max(made.dim(), 1), first.scores, step.line, is_by_hand)
        before = first.weights
        is_second = (
            before is not None
            and not is_by_hand
            and before.softmax.axis == softmax.axis
            and not {"log", "scaled", "part"} & {*before.steps}
        )
        step.node.weights = Weights(softmax, ("twice",) if is_second else ())
        self.seen.softmaxes.append(softmax)

    def _mix(self, step: _Step) -> None:
        left, right = step.operands[-2:]
        if left.weights is not None and right.is_input:
            self._attend("softmax", left, left.tensor, step)
        elif right.weights is not None and left.is_input and right.tensor.dim() > 1:
            self._attend("softmax", right, right.tensor.mT, step)
        elif left.scores is not None and right.is_input and left.scores.product is not None:
            self._attend("raw", left, left.tensor, step)
        elif left.is_input and right.is_input and right.tensor.dim() > 1:
            has_alpha = step.name in ("addmm", "baddbmm")
            factor = float(step.kwargs.get("alpha", 1)) if has_alpha else 1.0
            before = left.factor * right.factor
            copies = left.tensor.detach().clone(), right.tensor.detach().clone()
            is_projected = left.is_projected and right.is_projected
            product = Product(*copies, factor, False, step.line, before, is_projected)
            step.node.scores = Scores(product, factor * before)
        else:
            step.node.is_projected = left.is_input != right.is_input

    def _attend(self, kind: str, source: _Node, weights: Tensor, step: _Step) -> None:
        """Record that weights mix values; of pooling, their sums."""
        lineage = source.weights
        softmax = None if lineage is None else lineage.softmax
        made = Attention(
            kind,
            softmax.origin if softmax is not None else source.scores,
            weights.detach().clone(),
            softmax,
            () if lineage is None else lineage.steps,
            self._count,
            step.line,
            tuple(step.node.tensor.shape),
            exponential=source.exponential,
        )
        self.seen.attentions.append(made)

    def _fuse(self, step: _Step) -> None:
        if self.seen.attentions and self.seen.attentions[-1].index == self._count:
            return  # the log-sum-exp of the same call
        query, key = step.args[0], step.args[1]
        scale, mask = step.kwargs.get("scale"), step.kwargs.get("attn_mask")
        factor = float(scale if scale is not None else query.shape[-1] ** -0.5)
        left, right = self._node(query), self._node(key)
        groups = query.shape[-3] // key.shape[-3] if query.dim() > 3 else 1
        wide = key.repeat_interleave(groups, -3) if groups > 1 else key
        copies = query.detach().clone(), wide.detach().mT.clone()
        before, is_projected = left.factor * right.factor, left.is_projected and right.is_projected
        product = Product(*copies, factor, False, step.line, before, is_projected)
        mask = None if mask is None else mask.detach().clone()
        steps = () if mask is None else (("add", mask, step.line),)
        flags = [argument for argument in step.args[3:] if isinstance(argument, bool)]
        made = Attention(
            "fused",
            Scores(product, factor * before, steps),
            None,
            None,
            (),
            self._count,
            step.line,
            tuple(step.node.tensor.shape),
            mask,
            bool(flags and flags[0]),
        )
        self.seen.attentions.append(made)


def _scale(first: _Node, node: _Node, by: float) -> None:
    """Hand a tensor on that is multiplied by a number."""
    node.factor, node.exponential = first.factor * by, first.exponential
    if first.scores is not None:
        factor = first.scores.factor
        node.scores = replace(first.scores, factor=None if factor is None else factor * by)
    if first.weights is not None:
        node.weights = replace(first.weights, steps=(*first.weights.steps, "scaled"))


def _weigh(step: _Step, first: _Node, second: _Node) -> None:
    """Follow a product of two tensors: masked weights, scores by another tensor, or pairs."""
    node, line = step.node, step.line
    for operand, modifier in ((first, second), (second, first)):
        if operand.weights is not None and is_flags(modifier.tensor) and not modifier.is_input:
            node.weights = replace(operand.weights, steps=(*operand.weights.steps, "masked"))
            return
        if operand.scores is not None:
            kind = "multiplied" if step.name == "mul" else "divided"
            factor = operand.scores.factor if is_flags(modifier.tensor) else None
            steps = (*operand.scores.steps, (kind, modifier.tensor, line))
            node.scores = replace(operand.scores, factor=factor, steps=steps)
            return
    is_weighting = first.weights is not None or second.weights is not None
    is_outer = is_weighting or is_over_pairs(first.tensor, second.tensor, node.tensor)
    if step.name == "mul" and is_outer:
        node.outer = (first, second, line)
