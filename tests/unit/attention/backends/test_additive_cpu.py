"""Compiled loops of additive attention: their range, their blocks, their memory."""

import pytest
import torch

from regard.attention import Additive, attend, explain, lengths, window
from regard.attention.backends import additive_cpu


def make(queries=70, keys=90, dim=8, dtype=torch.float32, batch=2):
    torch.manual_seed(1)
    shapes = [(batch, queries, dim), (batch, keys, dim), (batch, keys, 5), (dim,)]
    return [torch.randn(s, dtype=dtype) for s in shapes]


def dense_formula(query, key, value, w):
    scores = (query.unsqueeze(-2) + key.unsqueeze(-3)).tanh() @ w
    return torch.softmax(scores, dim=-1) @ value


def gradients(backend, leaves, grad=None, **options):
    """The answer of a backend and the gradients of all its inputs, the score's among them."""
    out = attend(*leaves[:3], score=Additive(leaves[3]), backend=backend, **options)
    grad = torch.ones_like(out) if grad is None else grad.to(out.dtype)
    return out, torch.autograd.grad(out, leaves, grad)


@pytest.mark.parametrize(("pairs", "rows"), [(1, 3), (64, 7), (1000, 64), (2**22, 512)])
@pytest.mark.parametrize("units", [1, 2**20])
def test_the_answer_does_not_depend_on_blocks_and_tasks(monkeypatch, pairs, rows, units):
    monkeypatch.setattr(additive_cpu, "_PAIRS", pairs)
    monkeypatch.setattr(additive_cpu, "_ROWS_UNDER_A_MASK", rows)
    monkeypatch.setattr(additive_cpu, "_UNITS_OF_A_TASK", units)
    leaves = [t.requires_grad_() for t in make(13, 37)]
    options = {"mask": lengths([20, 37]) & window(before=30, after=30), "dropout": 0.3}
    outs = []
    for backend in ("additive_cpu", "tiled"):
        torch.manual_seed(3)
        outs.append(gradients(backend, leaves, **options))
    (out, ours), (want, theirs) = outs
    torch.testing.assert_close(out, want, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("shift", "spread", "by_exponentials"),
    [(0, 2, True), (200, 2, True), (0, 10, False), (0, 60, False)],
)
def test_large_queries_and_keys_stay_exact(shift, spread, by_exponentials):
    query, key, value, w = make(dtype=torch.float32)
    query, key = query * spread + shift, key * spread - shift
    factors = additive_cpu._Factors.of(query[:, None], key[:, None], w)
    assert (factors.offset is not None) == by_exponentials
    leaves = [t.requires_grad_() for t in (query, key, value, w)]
    out = attend(*leaves[:3], score=Additive(w))
    out.sum().backward()
    want = dense_formula(*(t.detach().double() for t in leaves))
    torch.testing.assert_close(out.double(), want, atol=2e-4, rtol=0)
    assert all(t.grad.isfinite().all() for t in leaves)


@pytest.mark.parametrize(("dim", "spread", "scale"), [(32, 1, 3), (128, 0.03, 1), (512, 0.001, 10)])
def test_errors_are_at_most_four_times_those_of_the_plain_formula(dim, spread, scale):
    query, key, value, w = make(67, 131, dim)
    inputs = [t.requires_grad_() for t in (query * spread, key * spread, value, w * scale)]
    wide = [t.detach().double().requires_grad_() for t in inputs]
    exact, plain = dense_formula(*wide), dense_formula(*inputs)
    ours = attend(*inputs[:3], score=Additive(inputs[3]), backend="additive_cpu")
    assert (ours - exact).abs().max() <= 4 * (plain - exact).abs().max()
    grad = torch.randn_like(ours)
    for mine, naive, right in zip(
        torch.autograd.grad(ours, inputs, grad),
        torch.autograd.grad(plain, inputs, grad),
        torch.autograd.grad(exact, wide, grad.double()),
        strict=True,
    ):
        assert (mine - right).abs().max() <= 4 * (naive - right).abs().max()


def test_the_plan_says_which_form():
    query, key, value, w = make()
    plan = explain(query, key, value, score=Additive(w))
    assert plan.backend == "additive_cpu"
    assert "exponentials" in plan.notes[0]
    few = explain(query[:, :1], key, value, score=Additive(w), dropout=0.1)
    assert "tanh itself" in few.notes[0]


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("shape", [(), (1,), (5,), (1, 1), (1, 5), (2, 1), (2, 5)])
def test_the_gradient_of_w_has_its_shape_however_it_broadcasts(heads, shape):
    if shape[:1] == (2,) and heads == 1:
        shape = (1, *shape[1:])
    w = torch.randn(shape, requires_grad=True)
    query, key = torch.randn(2, heads, 4, 5), torch.randn(2, heads, 6, 5)
    grads = [
        torch.autograd.grad(
            attend(query, key, score=Additive(w), backend=backend).square().sum(), w
        )
        for backend in ("additive_cpu", "tiled")
    ]
    assert grads[0][0].shape == w.shape
    torch.testing.assert_close(*grads, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("sizes", [(0, 2, 5, 4), (2, 0, 5, 4), (2, 2, 0, 4), (2, 2, 5, 0)])
def test_nothing_to_do(sizes):
    B, H, N, D = sizes
    query, key, value = (torch.randn(B, H, n, d) for n, d in ((N, D), (7, D), (7, 3)))
    leaves = [t.requires_grad_() for t in (query, key, value, torch.randn(D))]
    out = attend(*leaves[:3], score=Additive(leaves[3]), mask=lengths(7))
    out.sum().backward()
    torch.testing.assert_close(out, value.mean(dim=2, keepdim=True).expand_as(out))


@pytest.mark.parametrize("queries", [1, 3, 5])
@pytest.mark.parametrize("mask", [None, lengths([4, 7]), lengths([0, 2])])
def test_few_queries_have_the_gradients_of_the_tiles(make_inputs, queries, mask):
    leaves = [t.float() for t in make_inputs(queries=queries)]
    leaves = [t.requires_grad_() for t in (*leaves, torch.linspace(-1, 1, 11))]
    out, ours = gradients("additive_cpu", leaves, mask=mask)
    want, theirs = gradients("tiled", leaves, mask=mask)
    torch.testing.assert_close(out, want, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(ours, theirs, atol=2e-6, rtol=1e-4)
