"""Attention over distances is Nadaraya-Watson regression: against statsmodels and scipy."""

import time

import numpy as np
import pytest
import torch
from scipy import stats
from statsmodels.nonparametric.kernel_regression import KernelReg
from statsmodels.sandbox.nonparametric import kernels

from regard.attention import Box, Epanechnikov, Gaussian, Laplace, StudentT, attend
from regard.models import KernelRegression, KernelRegressionConfig

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
    places, asked = rng.uniform(-2, 2, (200, 2)), rng.uniform(-2, 2, (31, 2))
    return places, np.sin(3 * places[:, 0]) + places[:, 1] ** 2 + rng.normal(0, 0.1, 200), asked


def guess(score, places, seen, asked):
    """The regression as attention: queries are where to guess, keys where something was seen."""
    query, key, value = (torch.from_numpy(array) for array in (asked, places, seen[:, None]))
    return attend(query, key, value, score=score)[:, 0].numpy()


@pytest.mark.parametrize("bandwidth", [0.05, 0.3, 2.0])
def test_local_constant_regression_of_statsmodels(observed, bandwidth):
    places, seen, asked = observed
    places, asked = places[:, :1], asked[:, :1]
    want, _ = KernelReg(seen, places, "c", reg_type="lc", bw=[bandwidth]).fit(asked)
    np.testing.assert_allclose(guess(Gaussian(bandwidth), places, seen, asked), want, rtol=1e-7)


def test_a_bandwidth_for_each_dimension(observed):
    bandwidths = [0.2, 0.7]
    want, _ = KernelReg(observed[1], observed[0], "cc", reg_type="lc", bw=bandwidths).fit(
        observed[2]
    )
    score = Gaussian(torch.tensor(bandwidths, dtype=torch.float64))
    np.testing.assert_allclose(guess(score, *observed), want, rtol=1e-7)


@pytest.mark.parametrize(
    ("score", "kernel"),
    [
        (Gaussian, kernels.Gaussian),
        (Epanechnikov, kernels.Epanechnikov),
        (Box, kernels.Uniform),
    ],
)
@pytest.mark.parametrize("bandwidth", [0.2, 1.0])
def test_kernels_of_statsmodels(observed, score, kernel, bandwidth):
    places, seen, asked = observed
    want = [kernel(bandwidth).smooth(places[:, 0], seen, x) for x in asked[:, 0]]
    out = guess(score(bandwidth), places[:, :1], seen, asked[:, :1])
    np.testing.assert_allclose(out, want, rtol=1e-7)


@pytest.mark.parametrize(
    ("score", "density"),
    [
        (Gaussian(0.4), lambda apart: stats.norm.pdf(apart, scale=0.4).prod(-1)),
        (Laplace(0.4), lambda apart: stats.laplace.pdf(apart, scale=0.4).prod(-1)),
        (
            Gaussian(precision=torch.tensor([[6.0, 2.0], [2.0, 3.0]], dtype=torch.float64)),
            stats.multivariate_normal(cov=np.linalg.inv([[6.0, 2.0], [2.0, 3.0]])).pdf,
        ),
    ],
    ids=["gaussian", "laplace", "precision"],
)
def test_densities_of_scipy_as_kernels(observed, score, density):
    places, seen, asked = observed
    kernel = density(asked[:, None] - places)
    want = kernel @ seen / kernel.sum(-1)
    np.testing.assert_allclose(guess(score, *observed), want, rtol=1e-7)


@pytest.mark.parametrize("df", [1.0, 2.5, 30.0])
def test_students_density_as_a_kernel(observed, df):
    places, seen, asked = observed
    kernel = stats.t.pdf(asked[:, :1] - places[:, 0], df)
    want = kernel @ seen / kernel.sum(-1)
    out = guess(StudentT(df), places[:, :1], seen, asked[:, :1])
    np.testing.assert_allclose(out, want, rtol=1e-7)


def test_the_model_is_the_regression_of_statsmodels_and_ten_times_faster():
    rng = np.random.default_rng(1)
    places, seen = rng.uniform(0, 5, (5000, 2)), rng.normal(0, 1, 5000)
    model = KernelRegression(KernelRegressionConfig(bandwidth=0.2), dim=2)
    ours = [torch.from_numpy(array) for array in (places, places, seen[:, None])]
    seconds = []
    for _ in range(4):
        began = time.perf_counter()
        out = model(*ours)
        seconds.append(time.perf_counter() - began)
    began = time.perf_counter()
    want, _ = KernelReg(seen, places, "cc", reg_type="lc", bw=[0.2, 0.2]).fit()
    theirs = time.perf_counter() - began
    np.testing.assert_allclose(out[:, 0].numpy(), want, atol=1e-6)
    # On one thread; the record of benchmarks/kernel_regression.py has the figures.
    assert theirs > 10 * min(seconds)
