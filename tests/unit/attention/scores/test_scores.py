"""Scores one by one: gradients, precision far from the origin, what they refuse."""

import pytest
import torch

import regard as rg
from regard.attention.reference import attend_by_loops
from regard.errors import SettingError, ShapeError


@pytest.mark.parametrize("shift", [0.0, 1000.0])
@pytest.mark.parametrize("backend", ["sdpa", "tiled"])
def test_a_gaussian_far_from_the_origin_keeps_its_precision(shift, backend):
    inputs = [torch.randn(1, 2, 23, 16) for _ in range(3)]
    inputs[0] += shift
    inputs[1] += shift
    answer = attend_by_loops(*inputs, lambda _: lambda q, k: -((q - k) ** 2).sum() / 2 / 9)
    out = rg.attend(*inputs, score=rg.Gaussian(3.0), backend=backend)
    torch.testing.assert_close(out.double(), answer.context, atol=1e-6, rtol=0)


def test_a_narrow_gaussian_is_worked_out_in_float64():
    query, key = torch.rand(1, 1, 40, 2), torch.rand(1, 1, 50, 2)
    score = rg.Gaussian(0.01)
    answer = attend_by_loops(query, key, key, lambda _: lambda q, k: -((q - k) ** 2).sum() / 2e-4)
    assert "float64" in str(rg.explain(query, key, score=score))
    assert "float64" not in str(rg.explain(query, key, score=rg.Gaussian(1.0)))
    out = rg.attend(query, key, score=score)
    torch.testing.assert_close(out.double(), answer.context, atol=2e-6, rtol=0)
    query.requires_grad_()
    rg.attend(query, key, score=score).sum().backward()
    assert query.grad.isfinite().all()


def test_vectors_of_zeros_have_no_direction():
    query, key = torch.zeros(1, 3), torch.tensor([[0.0, 0, 0], [1, 2, 3], [1e-30, 0, 0]])
    rows = rg.weights(query, key, score=rg.Cosine(0.1))
    torch.testing.assert_close(rows, torch.full((1, 3), 1 / 3))
    tiny = rg.weights(torch.tensor([[1e-30, 0, 0]]), key, score=rg.Cosine(1.0))
    want = torch.tensor([[0.0, 1 / 14**0.5, 1.0]]).softmax(-1)
    torch.testing.assert_close(tiny, want)
    query.requires_grad_()
    rg.attend(query, key, score=rg.Cosine()).sum().backward()
    assert query.grad.isfinite().all()


def test_kernels_that_end_give_zeros_to_who_has_no_neighbour():
    query = torch.tensor([[0.0], [9.0]], requires_grad=True)
    key = torch.tensor([[0.1], [0.4], [2.0]])
    for score in (rg.Box(0.5), rg.Epanechnikov(0.5)):
        rows = rg.weights(query, key, score=score)
        assert rows[0, 2] == 0
        assert rows[1].eq(0).all()
        (grad,) = torch.autograd.grad(rg.attend(query, key, score=score).sum(), query)
        assert grad.isfinite().all()
    torch.testing.assert_close(
        rg.weights(query, key, score=rg.Box(0.5))[0, :2], torch.tensor([0.5, 0.5])
    )
    near = torch.tensor([1 - 0.04, 1 - 0.64])
    got = rg.weights(query, key, score=rg.Epanechnikov(0.5))[0, :2]
    torch.testing.assert_close(got, near / near.sum())


@pytest.mark.parametrize(
    ("score", "error", "message"),
    [
        (lambda: rg.Gaussian(torch.ones(4)), ShapeError, r"bandwidth must broadcast to \(H, D\)"),
        (lambda: rg.Gaussian(precision=torch.ones(2, 2)), ShapeError, "precision must have shape"),
        (lambda: rg.Laplace(torch.ones(5, 3)), ShapeError, r"\(H, D\) = \(1, 3\); got \(5, 3\)"),
        (lambda: rg.StudentT(torch.ones(3)), ShapeError, r"df must have shape \(\) or \(H, 1\)"),
        (lambda: rg.Cosine(torch.ones(3)), ShapeError, "temperature must have shape"),
        (rg.Gaussian, SettingError, "either a bandwidth or a precision matrix"),
        (lambda: rg.Gaussian(0.0), SettingError, "bandwidth must be above 0; got 0.0"),
        (lambda: rg.StudentT(-1.0), SettingError, "df must be above 0; got -1.0"),
        (lambda: rg.Cosine(0), SettingError, "temperature must be above 0; got 0"),
        (lambda: rg.Custom(lambda q, k: q), ShapeError, "function must give scores of shape"),
        (
            lambda: rg.Custom(lambda q, k: torch.ones(1, requires_grad=True) * (q @ k.mT)),
            SettingError,
            "got one it captures. Pass it",
        ),
    ],
)
@pytest.mark.usefixtures("unchecked_shapes")
def test_what_does_not_fit_is_refused_before_any_work(score, error, message):
    with pytest.raises(error, match=message):
        rg.attend(torch.ones(2, 3), torch.ones(4, 3), score=score())


@pytest.mark.parametrize("requires_grad", [False, True])
def test_padding_of_nan_does_not_hide_that_a_kernel_is_too_narrow_for_a_dot_product(requires_grad):
    query, key = torch.rand(2, 2, 200, 2), torch.rand(2, 2, 100, 2)
    score = rg.Gaussian(1e-7)
    want = rg.attend(query, key[:, :, :90], score=score, backend="tiled")
    key[:, :, 90:] = float("nan")
    query.requires_grad_(requires_grad)
    torch.testing.assert_close(rg.attend(query, key, score=score, mask=rg.lengths([90, 90])), want)


def test_a_score_of_ones_own_meets_all_heads_at_once():
    query, key = torch.randn(1, 4, 600, 8), torch.randn(1, 4, 600, 8)
    score = rg.Custom(lambda q, k: q @ k.mT * torch.linspace(0.1, 1, q.shape[1])[:, None, None])
    want = torch.softmax(score.tile(query, key), dim=-1) @ key
    torch.testing.assert_close(rg.attend(query, key, score=score), want)
