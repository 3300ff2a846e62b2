"""Multinomial logistic regression of sparse inputs, fitted to its optimum by L-BFGS.

Minimises ``Σ −log softmax(x W + b)[label] + ‖W‖² / (2 C)``, which is convex, so that nothing but C
is to be chosen: scikit-learn's ``LogisticRegression(C=C)``, which counts C twice for two labels.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional as F

from regard.lazy import put_off_compiler

# Values of C that are tried, from the smoothest model to the closest fit.
COSTS = (0.3, 1.0, 3.0, 10.0, 30.0)
# C is chosen on some of many examples: on each fold in turn, until enough are predicted.
_MOST_TO_CHOOSE, _FOLDS, _ENOUGH_PREDICTED = 10_000, 5, 2000
# Inverse temperatures that are tried.
_SCALES = 2 ** torch.linspace(-2, 3, 41)
_ITERATIONS, _LEAST_GRADIENT = 200, 1e-5  # the gradient of the mean loss


@dataclass(frozen=True, slots=True, eq=False)
class SparseRows:
    """A sparse matrix by rows: Z entries by their columns, and where each row of R begins."""

    columns: Int64[Tensor, " Z"]
    values: Float[Tensor, " Z"]
    starts: Int64[Tensor, " R"]
    num_columns: int

    @classmethod
    def of(
        cls,
        columns: Sequence[Sequence[int]],
        values: Iterable[Sequence[float]],
        *,
        num_columns: int,
    ) -> "SparseRows":
        """The matrix of these rows."""
        sizes = np.fromiter(map(len, columns), np.int64, len(columns))
        total = int(sizes.sum())
        return cls(
            torch.from_numpy(np.fromiter(chain.from_iterable(columns), np.int64, total)),
            torch.from_numpy(np.fromiter(chain.from_iterable(values), np.float32, total)),
            torch.from_numpy(np.concatenate([[0], sizes.cumsum()])),
            num_columns,
        )

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __matmul__(self, weights: Float[Tensor, "D K"]) -> Float[Tensor, "R K"]:
        return F.embedding_bag(
            self.columns,
            weights,
            self.starts,
            mode="sum",
            per_sample_weights=self.values,
            include_last_offset=True,
        )

    def select(self, rows: Int64[Tensor, " r"]) -> "SparseRows":
        """The rows at these indices."""
        sizes = self.starts.diff()[rows]
        starts = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        entries = torch.arange(int(starts[-1])) + torch.repeat_interleave(
            self.starts[:-1][rows] - starts[:-1], sizes
        )
        return SparseRows(self.columns[entries], self.values[entries], starts, self.num_columns)

    def transposed(self) -> "SparseRows":
        """The matrix whose rows are the columns of this one."""
        columns, order = self.columns.sort(stable=True)
        sizes = torch.bincount(columns, minlength=self.num_columns)
        starts = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        rows = torch.repeat_interleave(torch.arange(len(self)), self.starts.diff())
        return SparseRows(rows[order], self.values[order], starts, len(self))


@dataclass(frozen=True, slots=True, eq=False)
class LinearModel:
    """The weights and the biases of K labels."""

    weights: Float[Tensor, "D K"]
    bias: Float[Tensor, " K"]

    @classmethod
    def zeros(cls, num_inputs: int, num_labels: int) -> "LinearModel":
        """The model that finds all labels as likely."""
        return cls(torch.zeros(num_inputs, num_labels), torch.zeros(num_labels))

    def logits(self, inputs: SparseRows) -> Float[Tensor, "R K"]:
        """The logits of the labels of each row."""
        return inputs @ self.weights + self.bias


def fit(inputs: SparseRows, labels: Int64[Tensor, " R"], num_labels: int) -> LinearModel:
    """Fit a model to inputs and labels, with C and a temperature chosen by cross-validation.

    The temperature divides the logits so that they are calibrated on examples that are not fitted
    (Guo et al., 2017, https://arxiv.org/abs/1706.04599), whose labels are then likeliest by the
    chosen C.
    """
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    chosen = order[:_MOST_TO_CHOOSE]
    losses, predicted = torch.zeros(len(COSTS), len(_SCALES)), 0
    for held in chosen.tensor_split(_FOLDS):
        if predicted >= _ENOUGH_PREDICTED or not len(held) < len(chosen):
            break
        train = chosen[~torch.isin(chosen, held)]
        problem = _Problem.of(inputs.select(train), labels[train], num_labels)
        model, unseen = LinearModel.zeros(inputs.num_columns, num_labels), inputs.select(held)
        for number, cost in enumerate(COSTS):
            model = problem.solve(cost, model)
            log_probs = (_SCALES[:, None, None] * model.logits(unseen)).log_softmax(-1)
            losses[number] -= log_probs[:, torch.arange(len(held)), labels[held]].sum(1)
        predicted += len(held)
    number, scale = divmod(int(losses.argmin()), len(_SCALES))
    model = fit_with(inputs, labels, num_labels, cost=COSTS[number])
    return LinearModel(_SCALES[scale] * model.weights, _SCALES[scale] * model.bias)


def fit_with(
    inputs: SparseRows, labels: Int64[Tensor, " R"], num_labels: int, *, cost: float
) -> LinearModel:
    """The model with this C."""
    problem = _Problem.of(inputs, labels, num_labels)
    return problem.solve(cost, LinearModel.zeros(inputs.num_columns, num_labels))


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """Inputs by rows and by columns, and the labels as rows of zeros and a one."""

    inputs: SparseRows
    by_columns: SparseRows
    labels: Float[Tensor, "R K"]

    @classmethod
    def of(cls, inputs: SparseRows, labels: Int64[Tensor, " R"], num_labels: int) -> "_Problem":
        return cls(inputs, inputs.transposed(), F.one_hot(labels, num_labels).float())

    @torch.no_grad()
    def solve(self, cost: float, begin: LinearModel) -> LinearModel:
        """The optimum for a C, found from other weights."""
        rows = max(1, len(self.inputs))
        smooth = 1 / (cost * rows)
        point = torch.cat([begin.weights, begin.bias[None]])
        put_off_compiler()
        optimizer = torch.optim.LBFGS(
            [point],
            max_iter=_ITERATIONS,
            history_size=10,
            tolerance_grad=_LEAST_GRADIENT,
            line_search_fn="strong_wolfe",
        )

        def objective() -> Tensor:
            weights, bias = point[:-1], point[-1]
            log_probs = (self.inputs @ weights + bias).log_softmax(1)
            errors = (log_probs.exp() - self.labels) / rows
            gradient = self.by_columns @ errors + smooth * weights
            point.grad = torch.cat([gradient, errors.sum(0, keepdim=True)])
            loss = -(log_probs * self.labels).sum() / rows
            return loss + smooth / 2 * weights.square().sum()

        optimizer.step(objective)  # type: ignore[no-untyped-call]
        return LinearModel(point[:-1].clone(), point[-1].clone())
