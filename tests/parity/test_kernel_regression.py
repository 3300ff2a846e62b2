"""Attention over distances is Nadaraya-Watson regression: against statsmodels and scipy."""

import numpy as np
import pytest
import torch
from statsmodels.nonparametric.kernel_regression import KernelReg
from statsmodels.sandbox.nonparametric import kernels

from regard.attention import Box, Epanechnikov, Gaussian, attend

pytestmark = [
    pytest.mark.parity,
    pytest.mark.slow,
    # statsmodels will draw its random numbers otherwise; with a bandwidth given, it draws none.
    pytest.mark.filterwarnings("ignore:After 0.17:FutureWarning"),
]


@pytest.fixture
def observed():
    """Where something was seen, what it was, and where to guess it, in two dimensions."""
    rng = np.random.default_rng(0)
    points, queries = rng.uniform(-2, 2, (200, 2)), rng.uniform(-2, 2, (31, 2))
    return points, np.sin(3 * points[:, 0]) + points[:, 1] ** 2 + rng.normal(0, 0.1, 200), queries


def guess(score, points, values, queries):
    """The regression as attention: queries are where to guess, keys where something was seen."""
    query, key, value = (torch.from_numpy(array) for array in (queries, points, values[:, None]))
    return attend(query, key, value, score=score)[:, 0].numpy()


@pytest.mark.parametrize("bandwidth", [0.05, 0.3, 2.0])
def test_local_constant_regression_of_statsmodels(observed, bandwidth):
    points, values, queries = observed
    points, queries = points[:, :1], queries[:, :1]
    expected, _ = KernelReg(values, points, "c", reg_type="lc", bw=[bandwidth]).fit(queries)
    np.testing.assert_allclose(
        guess(Gaussian(bandwidth), points, values, queries), expected, rtol=1e-7
    )


def test_a_bandwidth_for_each_dimension(observed):
    bandwidths = [0.2, 0.7]
    want, _ = KernelReg(observed[1], observed[0], "cc", reg_type="lc", bw=bandwidths).fit(
        observed[2]
    )
    score = Gaussian(torch.tensor(bandwidths, dtype=torch.float64))
    np.testing.assert_allclose(guess(score, *observed), want, rtol=1e-7)


@pytest.mark.parametrize(
    ("score", "kernel"),
    [(Gaussian, kernels.Gaussian), (Epanechnikov, kernels.Epanechnikov), (Box, kernels.Uniform)],
)
@pytest.mark.parametrize("bandwidth", [0.2, 1.0])
def test_kernels_of_statsmodels(observed, score, kernel, bandwidth):
    points, values, queries = observed
    expected = [kernel(bandwidth).smooth(points[:, 0], values, x) for x in queries[:, 0]]
    out = guess(score(bandwidth), points[:, :1], values, queries[:, :1])
    np.testing.assert_allclose(out, expected, rtol=1e-7)
