"""One call of ``attend`` and the same as a dense formula, in any dtype.

What the engine gives may be at most four times as far from the float64 formula as the naive
formula is when it is worked out in the engine's dtype.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from tests.formulas.biases import BIASES, steps
from tests.formulas.masks import make_mask
from tests.formulas.scores import SCORES
from tests.formulas.sizes import Sizes, draw
from tests.formulas.weightings import WEIGHTINGS, weigh
from torch import Tensor

from regard.attention import Mask, attend, explain
from regard.attention.call.choice import BACKENDS
from regard.attention.reference import attend_by_loops
from regard.errors import SettingError

# Beside the naive formula's own error, which chance may make zero: some roundings.
_ROUNDINGS = 16


class Case(NamedTuple):
    """Inputs of the engine, and of the formula."""

    sizes: Sizes
    score: str  # of SCORES, as the next two of their tables
    weighting: str
    bias: str | None
    mask: Mask | None
    seen: Tensor  # the mask as booleans, (B, H, N, M)
    inputs: list[Tensor]  # query, key and value
    of_score: list[Tensor]
    of_bias: list[Tensor]
    of_sink: list[Tensor]

    @classmethod
    def draw(
        cls,
        sizes: Sizes,
        dtype: torch.dtype,
        *,
        score: str = "scaled dot",
        mask: str | None = None,
        bias: str | None = None,
        weighting: str = "softmax",
    ) -> "Case":
        """A call of the given kind with random numbers."""
        return cls(
            sizes,
            score,
            weighting,
            bias,
            *make_mask(mask, sizes),
            [draw(letters, sizes, dtype) for letters in ("BHND", "BGMD", "BGME")],
            SCORES[score].tensors(sizes, dtype),
            [draw(letters, sizes, dtype) for letters in BIASES[bias].shapes] if bias else [],
            [draw("H", sizes, dtype)] if weighting == "sink" else [],
        )

    @property
    def leaves(self) -> list[Tensor]:
        """All tensors that gradients flow to."""
        return [*self.inputs, *self.of_score, *self.of_bias, *self.of_sink]

    def as_dtype(self, dtype: torch.dtype, *, requires_grad: bool = False) -> "Case":
        copies = {
            name: [t.detach().to(dtype, copy=True) for t in getattr(self, name)]
            for name in ("inputs", "of_score", "of_bias", "of_sink")
        }
        case = self._replace(**copies)
        for tensor in case.leaves:
            tensor.requires_grad_(requires_grad)
        return case

    def with_leaves(self, leaves: Sequence[Tensor]) -> "Case":
        rest = iter(leaves)
        fields = ("inputs", "of_score", "of_bias", "of_sink")
        return self._replace(**{name: [next(rest) for _ in getattr(self, name)] for name in fields})

    def backends(self, *, lse: bool = False, gradients: bool = False) -> list[str]:
        """The paths that serve this call."""
        case = self.as_dtype(self.inputs[0].dtype, requires_grad=gradients)
        served = []
        for name in BACKENDS:
            try:
                explain(*case.inputs, **case.options(), return_lse=lse, backend=name)
            except SettingError:
                continue
            served.append(name)
        return served

    def attend(
        self, *, backend: str | None = None, lse: bool = False, gradients: bool = False
    ) -> "Answer":
        case = self.as_dtype(self.inputs[0].dtype, requires_grad=gradients)
        result = attend(*case.inputs, **case.options(), return_lse=lse, backend=backend)
        context, total = result if isinstance(result, tuple) else (result, None)
        return case._answer(context, total, gradients)

    def formula(self, *, lse: bool = False, gradients: bool = False) -> "Answer":
        case = self.as_dtype(self.inputs[0].dtype, requires_grad=gradients)
        context, total = case._formula()
        return case._answer(context, total if lse else None, gradients)

    def loops(self) -> "Answer":
        case = self.as_dtype(torch.float64)
        distances = steps(self.sizes)
        bias = BIASES[self.bias] if self.bias else None
        result = attend_by_loops(
            *case.inputs,
            SCORES[self.score].loops(case.of_score),
            visible=self.seen,
            bias=bias and bias.added(case.inputs[0], distances, *case.of_bias),
            weighting="softmax" if self.weighting == "sink" else self.weighting,
            sink=case.of_sink[0] if case.of_sink else None,
            value_bias=bias and bias.moved and bias.moved(distances, *case.of_bias),
        )
        return Answer(result.context, result.lse, None)

    def options(self) -> dict[str, object]:
        return {
            "score": SCORES[self.score].make(*self.of_score),
            "mask": self.mask,
            "bias": BIASES[self.bias].make(*self.of_bias) if self.bias else None,
            "weighting": WEIGHTINGS[self.weighting](*self.of_sink or [None]),
        }

    def _formula(self) -> tuple[Tensor, Tensor]:
        query, key, value = self.inputs
        key, value = (t.repeat_interleave(self.sizes.H // self.sizes.G, 1) for t in (key, value))
        scores = SCORES[self.score].dense(query, key, self.of_score)
        distances = steps(self.sizes)
        bias = BIASES[self.bias] if self.bias else None
        if bias is not None:
            scores = scores + bias.added(query, distances, *self.of_bias)
        scores = scores.masked_fill(~self.seen, -torch.inf)
        weights = weigh(self.weighting, scores, *self.of_sink)
        context = weights @ value
        if bias is not None and bias.moved is not None:
            moved = bias.moved(distances, *self.of_bias)
            context = context + (weights.unsqueeze(-2) @ moved).squeeze(-2)
        if self.of_sink:
            column = self.of_sink[0].reshape(-1, 1, 1).expand(*scores.shape[:-1], 1)
            scores = torch.cat([scores, column], -1)
        return context, _log_sum_exp(scores)

    def _answer(self, context: Tensor, lse: Tensor | None, gradients: bool) -> "Answer":
        if not gradients:
            return Answer(context, lse, None)
        outs = [context] if lse is None else [context, lse.masked_fill(lse == -torch.inf, 0)]
        # The same numbers for every dtype and path.
        seeded = torch.Generator().manual_seed(1)
        grads = [torch.randn(out.shape, generator=seeded).to(out.dtype) for out in outs]
        gradients_found = torch.autograd.grad(
            outs, self.leaves, grads, allow_unused=True, materialize_grads=True
        )
        return Answer(context, lse, gradients_found)


class Answer(NamedTuple):
    """The context, and the other outputs: the log-sum-exp, the gradients of all leaves."""

    context: Tensor
    lse: Tensor | None
    gradients: tuple[Tensor, ...] | None


def in_naive_dtype(case: Case) -> Case:
    """The call in its own dtype.

    In float32 where that is float64: there the formula is the truth, and its error can only be
    told from that in float32.
    """
    narrow = case.inputs[0].dtype
    return case.as_dtype(torch.float32 if narrow == torch.float64 else narrow)


def assert_as_good(ours: Answer, naive: Answer, truth: Answer) -> None:
    """Four times the error of the naive formula at most, both measured from the truth."""
    _compare("context", ours.context, naive.context, truth.context, 1.0)
    if ours.lse is not None:
        _compare("log-sum-exp", ours.lse, naive.lse, truth.lse, 1.0)
    if ours.gradients is None:
        return
    # A score's gradient is a difference of sums over E, each as large as the gradient of a value;
    # a parameter's is a sum over all pairs.
    B, H, N, E = truth.context.shape
    size = max(1.0, float(truth.gradients[2].abs().amax()) * E**0.5)
    of_pairs = size * (B * H * N) ** 0.5
    triples = zip(ours.gradients, naive.gradients, truth.gradients, strict=True)
    for number, (one, other, exact) in enumerate(triples):
        _compare(f"gradient {number}", one, other, exact, size if number < 3 else of_pairs)


def _compare(name: str, ours: Tensor, naive: Tensor, exact: Tensor, size: float) -> None:
    assert ours.shape == exact.shape
    assert not exact.isnan().any()
    infinite = exact.isinf()
    assert torch.equal(ours[infinite].double(), exact[infinite])
    fine, coarse = torch.finfo(ours.dtype).eps, torch.finfo(naive.dtype).eps
    shrink = fine / coarse if ours.dtype == torch.float64 else 1.0
    ours, naive, exact = (t.detach()[~infinite].double() for t in (ours, naive, exact))
    if exact.numel():
        # In half precision the naive formula may overflow.
        of_naive = float((naive - exact).abs().nan_to_num(0).max()) * shrink
        chance = _ROUNDINGS * fine * max(size, float(exact.abs().max()))
        error = float((ours - exact).abs().max())
        assert error <= 4 * of_naive + chance, (name, error, of_naive, chance)


def _log_sum_exp(scores: Tensor) -> Tensor:
    """−∞ with gradients of zero where all scores are."""
    empty = (scores == -torch.inf).all(-1)
    total = scores.masked_fill(empty[..., None], 0).logsumexp(-1)
    return total.masked_fill(empty, -torch.inf)
