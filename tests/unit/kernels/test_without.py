"""Where nothing is compiled, tensor operations give the same answers, and the plan says why."""

import pytest
import torch

from regard.attention import Additive, Entmax15, Sparsemax, attend, causal, explain, summarize
from regard.attention.backends import additive_cpu, dot_cpu
from regard.attention.engine import tiled
from regard.attention.inspect import softmax_statistics
from regard.kernels import uncompiled, why_not

CALLS = {
    "additive": {"score": Additive(torch.linspace(-1, 1, 8))},
    "softmax": {"return_lse": True},
    "sparsemax": {"weighting": Sparsemax()},
    "entmax": {"weighting": Entmax15()},
}


@pytest.fixture
def inputs():
    return [torch.randn(2, 3, n, 8, requires_grad=True) for n in (61, 83, 83)]


@pytest.fixture
def leave_out(monkeypatch):
    def leave():
        for module in (additive_cpu, dot_cpu, tiled, softmax_statistics):
            monkeypatch.setattr(module, "why_not", lambda: "numba cannot be loaded (by a test)")

    return leave


@pytest.mark.parametrize("name", CALLS)
def test_answers_and_gradients_are_alike(inputs, leave_out, name):
    def answer():
        result = attend(*inputs, mask=causal(), dropout=0.2, generator=seeded(), **CALLS[name])
        outs = result if isinstance(result, tuple) else (result,)
        return *outs, *torch.autograd.grad(sum(each.square().sum() for each in outs), inputs)

    def seeded():
        return torch.Generator().manual_seed(5)

    compiled = answer()
    leave_out()
    plan = explain(*inputs, mask=causal(), dropout=0.2, **CALLS[name])
    assert plan.backend == "tiled"
    loops = "additive_cpu" if name == "additive" else "dot_cpu"
    assert f"{loops}, since numba cannot be loaded (by a test)" in plan.reason
    torch.testing.assert_close(compiled, answer(), atol=2e-5, rtol=1e-4)


def test_summaries_are_alike(inputs, leave_out):
    with torch.no_grad():
        compiled = summarize(*inputs[:2], mask=causal())
        leave_out()
        tiled = summarize(*inputs[:2], mask=causal())
    torch.testing.assert_close(compiled.tensors(), tiled.tensors(), atol=2e-5, rtol=1e-4)


def test_they_can_be_off_for_little_work(inputs):
    with uncompiled():
        assert why_not() == "compiled passes are off"
        off = attend(*inputs, score=CALLS["additive"]["score"])
    assert why_not() != "compiled passes are off"
    assert torch.allclose(off, attend(*inputs, score=CALLS["additive"]["score"]), atol=1e-5)
