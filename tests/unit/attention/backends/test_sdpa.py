"""Dropout that torch's kernel draws on a GPU: its mean, its gradient, and when it is drawn so."""

import pytest
import torch

from regard.attention import attend, causal, explain, lengths

B, H, N, D = 2, 3, 40, 16
MASKS = {
    "all": lambda: None,
    "causal": causal,
    "lengths": lambda: lengths(torch.tensor([40, 23], device="cuda")),
}

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA GPU"),
]


def on_a_gpu(dtype):
    torch.manual_seed(0)
    return [torch.randn(B, H, N, D, device="cuda", dtype=dtype).requires_grad_() for _ in range(3)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("mask", MASKS)
def test_dropout_on_a_gpu_keeps_the_mean_and_its_gradient_has_its_pattern(mask, dtype):
    query, key, value = on_a_gpu(dtype)
    options = {"mask": MASKS[mask](), "dropout": 0.25}
    assert explain(query, key, value, **options).backend == "sdpa"
    # Linear in the values: of the same pattern, Σ out is Σ value · gradient.
    out = attend(query, key, value, **options)
    (gradient,) = torch.autograd.grad(out.float().sum(), value)
    total = (gradient.float() * value.float()).sum()
    torch.testing.assert_close(out.float().sum(), total, rtol=0.05, atol=0.5)
    with torch.no_grad():
        drawn = torch.stack([attend(query, key, value, **options).float() for _ in range(400)])
        whole = attend(query, key, value, mask=options["mask"]).float()
    assert (drawn[0] != drawn[1]).any()
    margin = 6 * drawn.std(dim=0) / 20 + 0.02
    assert ((drawn.mean(dim=0) - whole).abs() <= margin).all()


def test_a_seed_draws_the_same_dropout_again():
    query, key, value = on_a_gpu(torch.bfloat16)
    outs = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        outs.append(attend(query, key, value, dropout=0.5))
    assert torch.equal(outs[0], outs[1])
    assert not torch.equal(outs[0], outs[2])


def test_a_generator_draws_the_pattern_of_every_device():
    tensors = [t.detach() for t in on_a_gpu(torch.float32)]
    options = {"dropout": 0.5}
    generators = [torch.Generator().manual_seed(5) for _ in range(2)]
    plan = explain(*tensors, **options, generator=generators[0])
    assert plan.backend == "tiled"
    here = attend(*tensors, **options, generator=generators[0])
    there = attend(*(t.cpu() for t in tensors), **options, generator=generators[1])
    torch.testing.assert_close(here.cpu(), there, rtol=1e-4, atol=1e-4)
