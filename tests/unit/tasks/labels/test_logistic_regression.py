"""Logistic regression beside scikit-learn's, and the choice of C."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from regard.tasks.labels.logistic_regression import COSTS, SparseRows, fit, fit_with

R, D = 97, 31


def problem(num_labels, seed=0):
    dice = np.random.default_rng(seed)
    dense = dice.normal(size=(R, D)) * (dice.random((R, D)) < 0.3)
    dense[5] = 0
    logits = dense @ dice.normal(size=(D, num_labels))
    labels = (logits + dice.gumbel(size=logits.shape)).argmax(1)
    rows = csr_matrix(dense)
    columns = [rows[at].indices.tolist() for at in range(R)]
    values = [rows[at].data.tolist() for at in range(R)]
    return dense, labels, SparseRows.of(columns, values, num_columns=D)


@pytest.mark.parametrize("num_labels", [2, 5])
@pytest.mark.parametrize("cost", [0.1, 3.0])
def test_the_probabilities_are_those_of_scikit_learn(num_labels, cost):
    dense, labels, rows = problem(num_labels)
    # With two labels, scikit-learn has one column of weights, of which we have the halves.
    theirs = LogisticRegression(C=cost * (2 if num_labels == 2 else 1), tol=1e-6, max_iter=1000)
    theirs.fit(dense, labels)
    ours = fit_with(rows, torch.from_numpy(labels), num_labels, cost=cost)
    found = ours.logits(rows).softmax(1).numpy()
    assert found == pytest.approx(theirs.predict_proba(dense), abs=2e-3)


def test_rows_are_multiplied_chosen_and_transposed_as_a_dense_matrix_is():
    dense, _, rows = problem(2)
    weights = torch.randn(D, 3)
    expected = torch.from_numpy(dense).float()
    torch.testing.assert_close(rows @ weights, expected @ weights)
    chosen = torch.tensor([7, 5, 0])
    torch.testing.assert_close(rows.select(chosen) @ weights, expected[chosen] @ weights)
    other = torch.randn(R, 2)
    torch.testing.assert_close(rows.transposed() @ other, expected.T @ other)


def test_c_is_chosen_by_examples_that_are_not_fitted():
    _, labels, rows = problem(2)
    generator = torch.Generator().manual_seed(1)
    chance = torch.randint(2, (R,), generator=generator)
    smooth = fit(rows, chance, 2)
    closest = fit_with(rows, chance, 2, cost=COSTS[-1])
    assert smooth.weights.norm() < closest.weights.norm()
    model = fit(rows, torch.from_numpy(labels), 2)
    assert (model.logits(rows).argmax(1).numpy() == labels).mean() > 0.8


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_examples_are_enough(count):
    rows = SparseRows.of([[0]] * count, [[1.0]] * count, num_columns=1)
    model = fit(rows, torch.arange(count) % 2, 2)
    assert model.weights.isfinite().all()
    empty = SparseRows.of([[]] * count, [[]] * count, num_columns=0)
    assert fit(empty, torch.zeros(count, dtype=torch.long), 2).bias.argmax() == 0
