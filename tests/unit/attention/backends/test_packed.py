"""Packed documents: each by itself, the same numbers as one call with a mask."""

import pytest
import torch

import regard as rg

SIZES = [5, 130, 40, 1, 77]
LENGTH = sum(SIZES)
IDS = torch.repeat_interleave(torch.arange(5), torch.tensor(SIZES))
OTHER = torch.repeat_interleave(torch.arange(5), torch.tensor([77, 1, 40, 130, 5]))
MASKS = {
    "documents": rg.documents(IDS),
    "causal": rg.documents(IDS) & rg.causal(),
    "window": rg.window(before=9, after=4) & rg.documents(IDS),
    "per row": rg.documents(torch.stack([IDS, OTHER])) & rg.causal(),
}
SCORES = [rg.ScaledDot(), rg.Gaussian(3.0), rg.Bilinear(torch.eye(16) / 4)]


def make(dtype=torch.float32, heads=4, groups=4):
    shapes = [(2, heads, LENGTH, 16), (2, groups, LENGTH, 16), (2, groups, LENGTH, 16)]
    return [torch.randn(s, dtype=dtype).requires_grad_() for s in shapes]


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("score", SCORES, ids=str)
def test_answers_and_gradients_are_those_of_one_masked_call(mask, score):
    inputs = make()
    chosen = rg.explain(*inputs, score=score, mask=MASKS[mask]).backend
    is_for_loops = mask != "documents" and not isinstance(score, rg.Gaussian)
    assert (chosen == "packed") == (not is_for_loops)
    results = []
    for backend in ("packed", "tiled"):
        out = rg.attend(*inputs, score=score, mask=MASKS[mask], backend=backend)
        results.append([out, *torch.autograd.grad(out.square().sum(), inputs)])
    torch.testing.assert_close(*results, atol=2e-5, rtol=1e-4)


def test_nan_in_one_document_stays_there():
    query, key, value = (t.detach() for t in make())
    key[:, :, 5:135] = float("nan")
    out = rg.attend(query, key, value, mask=MASKS["documents"])
    assert out[:, :, 5:135].isnan().all()
    assert out[:, :, :5].isfinite().all()
    assert out[:, :, 135:].isfinite().all()


@pytest.mark.parametrize(
    ("mask", "reason"),
    [
        (rg.documents(IDS) & rg.lengths([LENGTH, 9]), "not one of documents"),
        (rg.documents(IDS, IDS.flip(0)), "in the same order"),
        (rg.documents([0] * (LENGTH - 9) + [1] * 9), "most of the row"),
        (rg.causal(), "not one of documents"),
        (MASKS["causal"], "compiled loops are faster with a mask inside documents"),
    ],
)
def test_what_it_cannot_serve_goes_elsewhere(mask, reason):
    inputs = make()
    plan = rg.explain(*inputs, mask=mask)
    assert plan.backend != "packed"
    assert reason in plan.reason
    torch.testing.assert_close(
        rg.attend(*inputs, mask=mask),
        rg.attend(*inputs, mask=mask, backend="tiled"),
        atol=2e-5,
        rtol=1e-4,
    )


def test_a_stripe_that_misses_the_documents_shows_nothing():
    mask = (
        rg.documents(IDS)
        & rg.window(before=0, after=0, first=3)
        & rg.window(before=0, after=0, first=9)
    )
    assert rg.attend(*make(), mask=mask).eq(0).all()
    far = rg.documents(IDS) & rg.window(before=0, after=0, first=200)
    out = rg.attend(*make(), mask=far)
    torch.testing.assert_close(out, torch.zeros_like(out))


def test_settings_of_the_kernel_for_one_document_do_not_hold_for_the_next():
    ids = torch.repeat_interleave(torch.arange(3), torch.tensor([40, 40, 130]))
    mask = rg.documents(ids) & rg.window(before=9, after=4)
    inputs = [torch.randn(1, 2, 210, 16) for _ in range(3)]
    for _ in range(2):
        out = rg.attend(*inputs, mask=mask, backend="packed")
        torch.testing.assert_close(out, rg.attend(*inputs, mask=mask, backend="tiled"))
