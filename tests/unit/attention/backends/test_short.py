"""Short rows, by compiled loops and by batched products: the formula, wherever heads lie."""

import pytest
import torch

from regard.attention import attend, causal, lengths
from regard.attention.backends import short

B, H, N, M, D, E = 3, 2, 9, 11, 8, 6


@pytest.fixture(params=["loops", "torch"])
def way(request, monkeypatch):
    """Either way, whatever this machine would take."""
    if request.param == "loops":
        assert short._is_compiled()
    else:
        monkeypatch.setattr(short, "_is_compiled", lambda: False)
    return request.param


def as_projected(*shape):
    """Heads beside each other, between other numbers, as slices of one projection are."""
    batch, heads, rows, width = shape
    joint = torch.randn(batch, rows + 1, 3, heads, width)
    return joint[:, 1:, 1].transpose(1, 2)


def as_one_head(*shape):
    """Equal numbers for every head."""
    return torch.randn(shape[0], 1, *shape[2:]).expand(*shape)


def turned(*shape):
    """Columns that do not lie beside each other."""
    return torch.randn(*shape[:2], shape[3], shape[2]).transpose(2, 3)


LAYOUTS = {"whole": torch.randn, "projected": as_projected, "shared": as_one_head, "turned": turned}
MASKS = {
    "none": lambda: None,
    "lengths": lambda: lengths(torch.tensor([11, 4, 1])),
    "causal": causal,
    "pairs": lambda: torch.rand(B, H, N, M) > 0.5,
}


def answer(inputs, mask, dropout, **options):
    inputs = [each.detach().requires_grad_() for each in inputs]
    generator = torch.Generator().manual_seed(5)
    out = attend(*inputs, mask=mask, dropout=dropout, generator=generator, **options)
    ours = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view(out.shape)
    return out, *torch.autograd.grad(out, inputs, ours)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_answers_and_gradients_are_those_of_float64(way, layout, mask, dropout):
    make = LAYOUTS[layout]
    inputs = make(B, H, N, D), make(B, H, M, D), make(B, H, M, E)
    known = MASKS[mask]()
    found = answer(inputs, known, dropout, backend="short")
    exact = answer([each.double() for each in inputs], known, dropout, backend="tiled")
    for one, other in zip(found, exact, strict=True):
        torch.testing.assert_close(one.double(), other, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_worked_out_in_float32(way, dtype):
    inputs = [as_projected(B, H, rows, D).to(dtype) for rows in (N, M, M)]
    found = answer(inputs, None, 0.3, backend="short")
    exact = answer([each.double() for each in inputs], None, 0.3, backend="tiled")
    assert {each.dtype for each in found} == {dtype}
    for one, other in zip(found, exact, strict=True):
        torch.testing.assert_close(one.double(), other, atol=2e-2, rtol=2e-2)


@pytest.mark.parametrize("threads", [1, 2])
def test_one_query_or_many_heads_for_any_number_of_threads(way, threads):
    inputs = [torch.randn(40, 8, rows, D) for rows in (1, 16, 16)]
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        found = answer(inputs, None, 0.0, backend="short")
    finally:
        torch.set_num_threads(before)
    exact = answer([each.double() for each in inputs], None, 0.0, backend="tiled")
    for one, other in zip(found, exact, strict=True):
        torch.testing.assert_close(one.double(), other, atol=2e-5, rtol=1e-4)


def test_nan_reaches_what_sees_it(way):
    query, key, value = (torch.randn(B, H, rows, D) for rows in (N, M, M))
    query[0, 0, 2, 1] = torch.nan
    out = attend(query, key, value, backend="short")
    is_nan = out.isnan().all(-1)
    assert is_nan[0, 0, 2]
    assert is_nan.sum() == out.isnan().any(-1).sum() == 1
