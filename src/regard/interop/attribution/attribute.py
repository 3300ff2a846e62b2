"""Contributions of input tokens to one output, by gradients, leaving out and paths."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.checks import check_count, choose
from regard.errors import SettingError
from regard.interop.attribution.faithfulness import attention_of, logits_of
from regard.interop.attribution.input_vectors import InputVectors, Output, checked_inputs
from regard.interop.record import Watched
from regard.interop.watch import Watch, watch

_QUERIES = 64  # whose weights are worked out at once


@dataclass(frozen=True, slots=True, eq=False)
class Attribution:
    """Contributions of input tokens to one output; ``attribute`` returns it.

    Attributes:
        method: Its name.
        values: (N,) One number per position of the input. Signed, but for methods by attention.
        output: The explained number: a logit, or the difference of two.
        target: Position and token (or class) that is explained, and the token it is held against;
            None where a function chose.
        baseline_output: The number for the baseline, which integrated gradients start from.

    Example:
        >>> print(Attribution("integrated_gradients", torch.tensor([0.5, -0.25]), 1.25, None, 1.0))
        position      value
               0     0.5000
               1    -0.2500
        completeness: values sum to 0.2500, the output changes by 0.2500
    """

    method: str
    values: Float[Tensor, " N"]
    output: float
    target: tuple[int | None, int, int | None] | None = None
    baseline_output: float | None = None

    @property
    def gap(self) -> float | None:
        """``Σ values − (output − baseline_output)``: zero for a complete attribution."""
        if self.baseline_output is None:
            return None
        return float(self.values.double().sum()) - (self.output - self.baseline_output)

    def __str__(self) -> str:
        lines = ["position      value"]
        lines += [f"{index:8} {value:10.4f}" for index, value in enumerate(self.values.tolist())]
        if self.baseline_output is not None:
            change = self.output - self.baseline_output
            total = float(self.values.sum())
            lines.append(
                f"completeness: values sum to {total:.4f}, the output changes by {change:.4f}"
            )
        return "\n".join(lines)


def attribute(
    model: nn.Module,
    inputs: Mapping[str, object] | Tensor,
    *,
    target: int | Output | None = None,
    against: int | None = None,
    position: int | None = None,
    method: str = "integrated_gradients",
    baseline: int | None = None,
    name: str | None = None,
    steps: int = 32,
    rows: int = 16,
) -> Attribution:
    """Compute the contribution of each token of an input to one output of a model.

    - "gradient_times_input": ``∂output/∂x · x`` of each token's vector x.
    - "integrated_gradients": ``(x − x′) · ∫ ∂output/∂x`` along the straight path from a baseline x′
      (Sundararajan et al., 2017, https://arxiv.org/abs/1703.01365); complete: its values sum to the
      change of the output, up to ``gap``. By Gauss-Legendre points.
    - "leave_one_out": the change of the output where a token's vector is the baseline's.
    - "attention": weights of the explained position, a mean over layers and heads.
    - "rollout": the same through all layers (``rollout``), for one text that attends to itself.
    - "attention_gradient": weights times their gradients, positive parts, through all layers
      (Chefer, Gur & Wolf, 2021, https://arxiv.org/abs/2103.15679).

    Any module that looks token ids up in a table, or is given vectors (1, N, C), is explained by
    the first three; the others need attention that ``watch`` can see.

    Args:
        model: In evaluation mode. Its output is logits (B, V) or (B, T, V), alone, first in a
            tuple, or by the name ``logits``; or states that ``model.project`` makes logits of.
        inputs: Inputs by name for one text, tensors with a batch axis of one; or a tensor, which is
            the first argument.
        target: Token or class; None is the likeliest; or a function of the model's output that
            gives (B,) numbers, differentiable.
        against: A token or class whose logit is subtracted: why *target*, and not *against*.
        position: Position in the output, from 0, or from the last below 0; None is the last. Of a
            function, the position whose attention is taken.
        method: One of the above.
        baseline: A token id whose vectors are x′, such as padding or a mask; None is zeros.
        name: The input that is explained; None is the main one.
        steps: Points on the path of integrated gradients.
        rows: How many changed inputs are computed at once.

    Raises:
        SettingError: The model is in training mode, has no such output, or cannot be explained so.
        ShapeError: There is more than one text.

    Example:
        >>> model = nn.Sequential(nn.Embedding(5, 1), nn.Flatten(), nn.Linear(3, 2, bias=False))
        >>> _ = model.eval()
        >>> ids = torch.tensor([[0, 3, 4]])
        >>> found = attribute(model, ids, target=1, method="leave_one_out")
        >>> weights = model[2].weight[1] * model[0](ids).flatten()  # a linear model's contributions
        >>> torch.allclose(found.values, weights, atol=1e-6)
        True
    """
    by = Method(method, baseline, steps, rows)
    text = ExplainedText(model, inputs, name=name)
    return text.attribute(by, target=target, against=against, position=position)


BY_ATTENTION = ("attention", "rollout", "attention_gradient")
METHODS = ("gradient_times_input", "integrated_gradients", "leave_one_out", *BY_ATTENTION)


@dataclass(frozen=True, slots=True)
class Method:
    """A method of attribution with its options; see ``attribute``."""

    name: str
    baseline: int | None = None
    steps: int = 32
    rows: int = 16

    def __post_init__(self) -> None:
        choose("method", self.name, dict.fromkeys(METHODS))
        check_count("steps", self.steps)
        check_count("rows", self.rows)


class ExplainedText:
    """A model's answer to one text, with the parts that all attributions of its outputs share."""

    def __init__(
        self,
        model: nn.Module,
        inputs: Mapping[str, object] | Tensor,
        *,
        name: str | None = None,
        body: nn.Module | None = None,
    ) -> None:
        self.model, self.inputs, self._name = model, checked_inputs(model, inputs), name
        self.body = model if body is None else body  # the part that attends

    @cached_property
    def answer(self) -> object:
        """The model's output."""
        with torch.no_grad():
            return self.model(**self.inputs)

    @cached_property
    def vectors(self) -> InputVectors:
        """The vectors of the input."""
        return InputVectors(self.model, self.inputs, self._name)

    @cached_property
    def seen(self) -> Watch:
        """The attention of a pass without gradients, whose queries and keys are kept."""
        with torch.no_grad(), watch(self.body, top=0, map=1, keep=True) as seen:
            self.body(**self.inputs)
        return seen

    def attribute(
        self,
        method: Method,
        *,
        target: int | Output | None = None,
        against: int | None = None,
        position: int | None = None,
    ) -> Attribution:
        """Explain one output; arguments and errors are those of the function ``attribute``."""
        number, chosen = output_of(self.answer, self.model, target, against, position)
        position = position if chosen is None else chosen[0]
        return replace(self.attributions(method, [number], [position])[0], target=chosen)

    def attributions(
        self, method: Method, numbers: Sequence[Output], positions: Sequence[int | None]
    ) -> list[Attribution]:
        """Explain several outputs, each of a position, in the passes that one of them takes."""
        name = method.name
        if name in BY_ATTENTION:
            return self._by_attention(name, numbers, positions)
        vectors = self.vectors
        base = vectors.baseline(method.baseline)
        with torch.no_grad():
            wholes = vectors.outputs(_all_of(numbers), vectors.given)[:, 0]
            ends: list[float | None] = [None] * len(numbers)
            if name == "leave_one_out":
                values = _left_out(vectors, numbers, base, wholes, method.rows)
            elif name == "integrated_gradients":
                ends = vectors.outputs(_all_of(numbers), base)[:, 0].tolist()
        with torch.enable_grad():
            if name == "gradient_times_input":
                slopes = _slopes_of(vectors, numbers, vectors.given, method.rows)
                pairs_of = zip(slopes, vectors.given, strict=True)
                values = torch.stack([(g[:, 0] * x).sum(-1) for g, x in pairs_of]).sum(0)
            elif name == "integrated_gradients":
                values = _integrated(vectors, numbers, base, method.steps, method.rows)
        return [
            Attribution(name, row, whole, None, end)
            for row, whole, end in zip(values, wholes.tolist(), ends, strict=True)
        ]

    def _by_attention(
        self, name: str, numbers: Sequence[Output], positions: Sequence[int | None]
    ) -> list[Attribution]:
        """Attributions by weights, or by their gradients."""
        with torch.set_grad_enabled(name == "attention_gradient"):
            if name == "attention_gradient":
                with watch(self.model, top=0, map=1, keep=True, gradients=True) as calls:
                    answer = self.model(**self.inputs)
            else:
                calls, answer = self.seen, self.answer
            found = []
            for output, position in zip(numbers, positions, strict=True):
                number = output(answer)[0]
                values = self._of_calls(name, calls, number, position)
                found.append(Attribution(name, values.detach(), float(number.detach())))
        return found

    def _of_calls(
        self, name: str, calls: Watch, number: Tensor, position: int | None
    ) -> Float[Tensor, " N"]:
        """One output's attribution by the calls of a pass."""
        has_memory = any(call.kind == "cross" for call in calls)
        kinds = {call.kind for call in calls}
        if position is None:  # of a class, the position that is looked from
            position = 0 if kinds == {"encoder"} else -1
        if name == "rollout" and kinds not in ({"encoder"}, {"decoder"}):
            raise SettingError(
                "method must not be 'rollout' for a model that reads one text and writes another; "
                f"got {type(self.model).__name__}."
            )
        length = calls.summary(-1, "cross" if has_memory else None).shape[-2]
        position += length * (position < 0)
        if name == "attention":
            return attention_of(calls, position, has_memory)
        if name == "rollout":
            return calls.rollout([position]).reshape(-1)
        return _relevance(calls, number, position)


def output_of(
    answer: object,
    model: nn.Module,
    target: int | Output | None,
    against: int | None,
    position: int | None,
) -> tuple[Output, tuple[int | None, int, int | None] | None]:
    """The function that is explained, and the logits that it reads."""
    if callable(target):
        return target, None
    logits = logits_of(model, answer)
    length = logits.shape[1] if logits.dim() == 3 else None
    if length is None and position is not None:
        raise SettingError(f"position must be None where logits are (B, V); got {position}.")
    index = None if length is None else position_of(-1 if position is None else position, length)
    row = logits[0] if index is None else logits[0, index]
    token = int(row.argmax()) if target is None else target
    for name, number in (("target", token), ("against", against)):
        if number is not None and not 0 <= number < len(row):
            raise SettingError(f"{name} must be a token or class below {len(row)}; got {number}.")

    def output(answer: object) -> Tensor:
        logits = logits_of(model, answer)
        chosen = logits if index is None else logits[:, index]
        numbers = chosen[:, token]
        return numbers if against is None else numbers - chosen[:, against]

    return output, (index, token, against)


def position_of(position: int, length: int) -> int:
    """Return a position of so many, from 0, or from the last below 0."""
    if not -length <= position < length:
        raise SettingError(f"position must be one of {length}; got {position}.")
    return position % length


def _all_of(numbers: Sequence[Output]) -> Output:
    """The function that gives all of these numbers, (T, B)."""
    return lambda answer: torch.stack([number(answer) for number in numbers])


@torch.no_grad()
def _left_out(
    vectors: InputVectors,
    numbers: Sequence[Output],
    base: list[Tensor],
    wholes: Tensor,
    rows: int,
) -> Float[Tensor, "T N"]:
    positions = torch.arange(vectors.given[0].shape[1])
    changed = []
    for chunk in torch.split(positions, rows):
        points = [given.expand(len(chunk), -1, -1).clone() for given in vectors.given]
        for point, baseline in zip(points, base, strict=True):
            point[torch.arange(len(chunk)), chunk] = baseline[0, chunk]
        changed.append(vectors.outputs(_all_of(numbers), points))
    return wholes[:, None] - torch.cat(changed, dim=1)


def _slopes_of(
    vectors: InputVectors, numbers: Sequence[Output], points: Sequence[Tensor], rows: int
) -> list[Float[Tensor, "T R N C"]]:
    """Gradients of several outputs at the same points, so many rows in a pass."""
    R = len(points[0])
    count = max(1, rows // R)
    chunks = []
    for first in range(0, len(numbers), count):
        chosen = numbers[first : first + count]

        def number(answer: object, chosen: Sequence[Output] = chosen) -> Tensor:
            parts = (torch.split(output(answer), R)[n] for n, output in enumerate(chosen))
            return torch.cat(list(parts))

        slopes, _ = vectors.gradients(number, [point.repeat(len(chosen), 1, 1) for point in points])
        chunks.append([torch.stack(torch.split(slope, R)) for slope in slopes])
    return [torch.cat(parts) for parts in zip(*chunks, strict=True)]


def _integrated(
    vectors: InputVectors, numbers: Sequence[Output], base: list[Tensor], steps: int, rows: int
) -> Float[Tensor, "T N"]:
    """Integrated gradients at Gauss-Legendre points, summed over each position's vector."""
    points, weights = (
        torch.as_tensor(array, dtype=torch.float64)
        for array in np.polynomial.legendre.leggauss(steps)
    )
    total = [given.new_zeros(len(numbers), *given[0].shape) for given in vectors.given]
    for at, weight in zip(
        torch.split((points + 1) / 2, rows), torch.split(weights / 2, rows), strict=True
    ):
        path = [
            baseline + at.to(given)[:, None, None] * (given - baseline)
            for given, baseline in zip(vectors.given, base, strict=True)
        ]
        slopes = _slopes_of(vectors, numbers, path, rows)
        for sums, gradient in zip(total, slopes, strict=True):
            sums.add_(torch.einsum("r,trnc->tnc", weight.to(gradient), gradient))
    products = [
        (sums * (given - baseline)).sum(dim=-1)
        for sums, given, baseline in zip(total, vectors.given, base, strict=True)
    ]
    return torch.stack(products).sum(dim=0)


def _relevance(calls: Watch, output: Tensor, position: int) -> Float[Tensor, " N"]:
    """Relevance of input positions for an output, from the last layer to the first."""
    gradients = calls.output_gradients(output)
    has_memory = any(call.kind == "cross" for call in calls)
    kind = "decoder" if has_memory or all(call.kind == "decoder" for call in calls) else "encoder"
    layers = list(zip(calls, gradients, strict=True))
    lengths = {call.summary.shape[-2] for call in calls if call.kind in (kind, "cross")}
    length = max(lengths)
    if len(lengths) > 1 or position >= length:
        raise SettingError(
            "method must not be 'attention_gradient' for a model of which a layer does not attend "
            f"from each position; got layers of {', '.join(map(str, sorted(lengths)))} queries."
        )
    reached = torch.zeros(length, dtype=output.dtype, device=output.device)
    reached[position] = 1
    source: Tensor | None = None
    for call, gradient in sorted(
        (pair for pair in layers if pair[0].kind in (kind, "cross")),
        key=lambda pair: (-pair[0].layer, pair[0].kind != "cross"),
    ):
        part = _passed(calls, call, gradient, reached)
        if call.kind == "cross":
            source = part if source is None else source + part
        else:
            reached = reached + part
    if source is None:
        return reached
    for call, gradient in reversed(layers):
        if call.kind == "encoder":
            source = source + _passed(calls, call, gradient, source)
    return source


def _passed(calls: Watch, call: Watched, gradient: Tensor, reached: Tensor) -> Float[Tensor, " M"]:
    """Relevance of the keys of a layer: that of queries times positive weight · gradient."""
    total = reached.new_zeros(call.summary.shape[-1])
    for positions in torch.split(reached.nonzero().flatten(), _QUERIES):
        rows = calls.rows(call.layer, positions.tolist(), call.kind, name=call.name).detach()
        slopes = calls.slopes(call.layer, positions.tolist(), gradient, call.kind, name=call.name)
        product = (rows * slopes).clamp(min=0)[0]
        mean = product.mean(dim=0) if product.dim() == 3 else product
        total = total + reached[positions] @ mean.to(reached)
    return total
