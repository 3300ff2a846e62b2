"""Kernel regression against its formula, and the classic example with its exact settings."""

import math

import pytest
import torch

from regard.errors import ShapeError
from regard.models import KernelRegression, KernelRegressionConfig
from regard.models.kernel_regression import SineExample

N, M, D, E = 5, 7, 2, 3

KERNELS = {
    "gaussian": lambda u: math.exp(-sum(x * x for x in u) / 2),
    "laplace": lambda u: math.exp(-sum(abs(x) for x in u)),
    "epanechnikov": lambda u: max(0.0, 1 - sum(x * x for x in u)),
    "box": lambda u: float(sum(x * x for x in u) <= 1),
}


def by_formula(kernel, w, queries, points, targets):
    rows = []
    for x in queries.tolist():
        counts = [
            KERNELS[kernel]([a * (b - c) for a, b, c in zip(w, x, point, strict=True)])
            for point in points.tolist()
        ]
        total = sum(counts) or 1.0
        columns = zip(*targets.tolist(), strict=True)
        rows.append([sum(k * y for k, y in zip(counts, ys, strict=True)) / total for ys in columns])
    return torch.tensor(rows, dtype=torch.float64)


@pytest.fixture
def points():
    return tuple(torch.rand(n, d, dtype=torch.float64) for n, d in ((N, D), (M, D), (M, E)))


@pytest.mark.parametrize("bandwidth", [0.35, 1.0, math.inf])
@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_the_prediction_is_the_mean_weighted_by_the_kernel(kernel, bandwidth, points):
    model = KernelRegression(KernelRegressionConfig(kernel=kernel, bandwidth=bandwidth), dim=D)
    expected = by_formula(kernel, [1 / bandwidth] * D, *points)
    torch.testing.assert_close(model(*points), expected, atol=1e-6, rtol=1e-6)
    queries, keys, targets = points
    torch.testing.assert_close(
        model.weights(queries, keys) @ targets, expected, atol=1e-6, rtol=1e-6
    )


def test_a_bandwidth_for_each_dimension(points):
    model = KernelRegression(KernelRegressionConfig(per_dimension=True, is_learned=True), dim=D)
    model.w.data = torch.tensor([0.5, 3.0])
    want = by_formula("gaussian", [0.5, 3.0], *points)
    torch.testing.assert_close(model(*points), want, atol=1e-6, rtol=1e-6)
    model(*points).sum().backward()
    assert model.w.grad.shape == (D,)
    assert model.w.grad.ne(0).all()


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_a_prediction_from_the_others_leaves_its_own_point_out(kernel):
    points, targets = torch.rand(M, D).double(), torch.rand(M, E).double()
    model = KernelRegression(KernelRegressionConfig(kernel=kernel, bandwidth=0.8), dim=D)
    others = [torch.arange(M) != row for row in range(M)]
    expected = torch.cat(
        [
            model(points[row : row + 1], points[others[row]], targets[others[row]])
            for row in range(M)
        ]
    )
    torch.testing.assert_close(model.leave_one_out(points, targets), expected)


@pytest.mark.parametrize("kernel", sorted(KERNELS))
@pytest.mark.parametrize("bandwidth", [0.001, 0.1, 3.0])
def test_many_points_along_a_line_are_the_same_as_few_at_a_time(kernel, bandwidth):
    """In parts or whole: also in a desert, and beyond the last key."""
    config = KernelRegressionConfig(kernel=kernel, bandwidth=bandwidth, is_learned=True)
    model = KernelRegression(config)
    points = torch.rand(1100, 1).double()
    points[points > 0.6] += 1
    targets = torch.randn(1100, 2).double()
    queries = torch.cat([4 * torch.rand(1500, 1).double() - 1, points[:10]])
    few = torch.cat([model(part, points, targets) for part in queries.split(500)])
    many = model(queries, points, targets)
    torch.testing.assert_close(many, few, rtol=1e-9, atol=1e-9)
    if kernel != "box":
        slopes = [torch.autograd.grad(out.square().sum(), model.w)[0] for out in (few, many)]
        torch.testing.assert_close(*slopes, rtol=1e-5, atol=1e-5)


def test_where_no_kernel_reaches_the_prediction_is_zero():
    model = KernelRegression(KernelRegressionConfig(kernel="box"))
    assert model(torch.tensor([[9.0]]), torch.zeros(3, 1), torch.ones(3, 1)).eq(0).all()


def test_the_example_is_the_curve_and_noise_of_deviation_a_half():
    example = SineExample.draw(3, count=20000)
    x = example.places
    assert x.diff(dim=0).ge(0).all()
    assert 0 <= x.min() < 0.01
    assert 4.99 < x.max() <= 5
    noise = example.targets - (2 * x.sin() + x**0.8)
    assert noise.mean().abs() < 0.02
    assert abs(noise.std() - 0.5) < 0.01
    assert SineExample.draw(3).targets.shape == (50, 1)
    torch.testing.assert_close(example.queries, torch.arange(0, 5, 0.1)[:, None])


def fit(model, points, targets, *, epochs=5, rate=0.5):
    """Gradient descent on ``Σ (f(xᵢ) − yᵢ)²``, each guess from the others; the sums on the way."""
    optimizer, losses = torch.optim.SGD([model.w], lr=rate), []
    for _ in range(epochs):
        optimizer.zero_grad()
        loss = (model.leave_one_out(points, targets) - targets).square().sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_training_is_plain_gradient_descent_on_the_summed_squared_error():
    example = SineExample.draw(1)
    model = KernelRegression(KernelRegressionConfig(is_learned=True))
    losses = fit(model, example.places, example.targets)
    w = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    x, y = example.places.double()[:, 0], example.targets.double()[:, 0]
    for loss in losses:
        scores = -(((x[:, None] - x) * w) ** 2) / 2
        scores = scores.masked_fill(torch.eye(50, dtype=torch.bool), -torch.inf)
        total = (scores.softmax(1) @ y - y).square().sum()
        assert float(total.detach()) == pytest.approx(loss, rel=1e-3)
        (slope,) = torch.autograd.grad(total, w)
        w = (w - 0.5 * slope).detach().requires_grad_()
    torch.testing.assert_close(model.w.detach().double()[0], w.detach(), atol=0, rtol=1e-3)


def test_the_learned_w_is_one_over_the_bandwidth():
    example = SineExample.draw(0)
    learned = KernelRegression(KernelRegressionConfig(is_learned=True))
    fit(learned, example.places, example.targets)
    torch.testing.assert_close(learned.bandwidth, 1 / learned.w)
    same = KernelRegression(KernelRegressionConfig(bandwidth=learned.bandwidth.item()))
    args = (example.queries, example.places, example.targets)
    torch.testing.assert_close(same(*args), learned(*args))


def test_what_is_wrong_is_named(unchecked_shapes):
    with pytest.raises(ShapeError, match=r"places must have dim=1 dimensions; got \(7, 2\)"):
        KernelRegression(KernelRegressionConfig())(
            torch.rand(N, 1), torch.rand(M, D), torch.rand(M, E)
        )
