"""The reciprocal form: its range, its tiles, its memory."""

import weakref

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from regard.attention import Additive, attend, causal, explain, lengths, prefix, weights, window
from regard.attention.backends import additive_cpu


def make(queries=70, keys=90, dim=8, dtype=torch.float32, batch=2):
    torch.manual_seed(1)
    shapes = [(batch, queries, dim), (batch, keys, dim), (batch, keys, 5), (dim,)]
    return [torch.randn(s, dtype=dtype) for s in shapes]


def dense_formula(query, key, value, w):
    scores = (query.unsqueeze(-2) + key.unsqueeze(-3)).tanh() @ w
    return torch.softmax(scores, dim=-1) @ value


@pytest.mark.parametrize("tile", [1, 64, 1000, 2**19])
def test_the_answer_does_not_depend_on_the_tiles(monkeypatch, tile):
    monkeypatch.setattr(additive_cpu, "_TILE", tile)
    monkeypatch.setattr(additive_cpu, "_ROWS_OF_GRADIENTS", 3)
    inputs = [t.requires_grad_() for t in make(13, 37, dtype=torch.float64)]
    *qkv, w = inputs
    out = attend(*qkv, score=Additive(w), mask=lengths([20, 37]), backend="additive_cpu")
    want = attend(*qkv, score=Additive(w), mask=lengths([20, 37]), backend="tiled")
    torch.testing.assert_close(out, want)
    grad = torch.randn_like(out)
    for one, other in zip(
        torch.autograd.grad(out, inputs, grad), torch.autograd.grad(want, inputs, grad), strict=True
    ):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    ("shift", "spread", "reciprocal"), [(0, 2, True), (200, 2, True), (0, 60, False)]
)
def test_large_queries_and_keys_stay_exact(shift, spread, reciprocal):
    query, key, value, w = make(dtype=torch.float32)
    query, key = query * spread + shift, key * spread - shift
    factors = additive_cpu._Factors.of(query[:, None], key[:, None], w)
    assert (factors.one is not None) == reciprocal
    leaves = [t.requires_grad_() for t in (query, key, value, w)]
    out = attend(*leaves[:3], score=Additive(w))
    out.sum().backward()
    want = dense_formula(*(t.detach().double() for t in leaves))
    torch.testing.assert_close(out.double(), want, atol=2e-4, rtol=0)
    assert all(t.grad.isfinite().all() for t in leaves)


def test_nan_in_a_visible_query_reaches_only_its_own_row():
    query, key, value, w = make(5, 6)
    query[0, 2] = float("nan")
    out = attend(query, key, value, score=Additive(w))
    assert out[0, 2].isnan().all()
    assert out[0, :2].isfinite().all()
    assert out[1].isfinite().all()


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
        assert (mine - right).abs().max() <= 6 * (naive - right).abs().max()


class Largest(TorchDispatchMode):
    """Remembers the largest tensor any operation made."""

    elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        tensors = out if isinstance(out, (tuple, list)) else (out,)
        sizes = [t.untyped_storage().nbytes() // 4 for t in tensors if isinstance(t, torch.Tensor)]
        self.elements = max([self.elements, *sizes])
        return out


@pytest.mark.parametrize("queries", [1, 1024])
def test_no_tensor_of_all_hidden_units_is_ever_made(queries):
    N, M, h = queries, 1024, 128
    inputs = [t.requires_grad_() for t in make(N, M, h, batch=1)]
    with Largest() as largest:
        out = attend(*inputs[:3], score=Additive(inputs[3]))
        torch.autograd.grad(out, inputs, torch.ones_like(out))
    allowed = max(additive_cpu._TILE, M * h)
    assert 0 < largest.elements <= allowed
    assert allowed * 100 <= 1024 * M * h


def test_the_plan_says_which_form():
    query, key, value, w = make()
    plan = explain(query, key, value, score=Additive(w))
    assert plan.backend == "additive_cpu"
    assert "reciprocal" in plan.notes[0]
    few = explain(query[:, :1], key, value, score=Additive(w), dropout=0.1)
    assert "sigmoid" in few.notes[0]


def test_causal_rows_are_prefixes():
    query, key, value, w = make(90, 90)
    out = attend(query, key, value, score=Additive(w), mask=causal())
    rows = weights(query, key, score=Additive(w), mask=causal())
    torch.testing.assert_close(out, rows @ value, atol=1e-5, rtol=0)


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


def test_a_buffer_borrowed_in_inference_mode_serves_outside_of_it():
    additive_cpu._scratch.__dict__.clear()
    query, key, value, w = make()
    with torch.inference_mode():
        want = attend(query, key, value, score=Additive(w)).tolist()
    out = attend(query.requires_grad_(), key, value, score=Additive(w))
    out.sum().backward()
    torch.testing.assert_close(out.tolist(), want)


def test_memory_of_a_growing_number_of_keys_is_that_of_a_block(monkeypatch):
    monkeypatch.setattr(additive_cpu, "_TILE", 2**14)
    query, key, value, w = make(queries=1200, keys=1200, dim=4, batch=1)
    query.requires_grad_()
    kept = []
    blocks = additive_cpu.BlockPass.blocks

    def spied(job):
        for block in blocks(job):
            kept.append(weakref.ref(block.hidden))
            yield block
            alive.append(sum(ref() is not None for ref in kept))

    alive = []
    monkeypatch.setattr(additive_cpu.BlockPass, "blocks", spied)
    attend(query, key, value, score=Additive(w), mask=causal()).sum().backward()
    assert len(alive) > 15
    assert max(alive) <= 3


def test_a_room_has_one_place_for_dots(monkeypatch):
    monkeypatch.setattr(additive_cpu, "_TILE", 2**14)
    room = additive_cpu._Workspace(torch.empty(1, 1, 9, 4))
    places = {room.of(torch.empty(1, 8, m)).dots.data_ptr() for m in range(1, 100)}
    assert len(places) == 1


@pytest.mark.parametrize("spread", [0.1, 1.0])
def test_small_queries_and_keys_with_a_w_for_each_head_and_a_mask_with_gaps(spread):
    leaves = [torch.randn(2, 3, n, 8, dtype=torch.float64) * spread for n in (300, 300, 300)]
    leaves = [t.requires_grad_() for t in (*leaves, torch.randn(3, 8, dtype=torch.float64))]
    mask = prefix(4) | window(before=5, after=0)
    outs = [
        attend(*leaves[:3], score=Additive(leaves[3]), mask=mask, backend=backend)
        for backend in ("additive_cpu", "tiled")
    ]
    grad = torch.randn_like(outs[0])
    torch.testing.assert_close(*outs)
    for one, other in zip(*(torch.autograd.grad(out, leaves, grad) for out in outs), strict=True):
        torch.testing.assert_close(one, other)
