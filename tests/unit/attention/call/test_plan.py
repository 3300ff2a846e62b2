"""Plans: values that say which path serves a call, and why."""

import pytest
import torch

import regard as rg
from regard.attention.backends.sdpa import kernels
from regard.attention.masks.bound import Memory


def make(dim=64, value_dim=64, requires_grad=False, length=512, heads=4):
    shapes = [(2, heads, length, dim), (2, heads, length, dim), (2, heads, length, value_dim)]
    return [torch.zeros(s).requires_grad_(requires_grad) for s in shapes]


@pytest.mark.parametrize(
    ("inputs", "options", "backend", "reason"),
    [
        (make(), {}, "sdpa", ""),
        (make(), {"mask": rg.causal()}, "sdpa", ""),
        (make(value_dim=16), {}, "dot_cpu", "values and keys differ so much in width"),
        (make(value_dim=48), {}, "sdpa", ""),
        (make(), {"score": rg.Gaussian(1.0)}, "dot_cpu", "adds a number of each key"),
        (make(), {"score": rg.Bilinear(torch.ones(64, 64))}, "sdpa", ""),
        (make(), {"score": rg.Laplace(1.0)}, "tiled", "not a dot product"),
        (make(), {"dropout": 0.1}, "dot_cpu", "dropout"),
        (make(), {"return_lse": True}, "dot_cpu", "log-sum-exp"),
        (make(), {"score": rg.ScaledDot(softcap=3.0)}, "tiled", "not a dot product"),
        (
            make(),
            {"bias": torch.zeros(512, requires_grad=True)},
            "dot_cpu",
            "bias needs a gradient",
        ),
        (make(), {"score": rg.Additive(torch.ones(64))}, "additive_cpu", "not a dot product"),
        (make(requires_grad=True, length=96, heads=16), {}, "short", ""),
        (make(requires_grad=True, length=64), {"dropout": 0.1}, "short", ""),
        (make(requires_grad=True, length=128), {"dropout": 0.1}, "short", ""),
        (make(requires_grad=True, length=160), {"dropout": 0.1}, "dot_cpu", "more than 128 keys"),
        (make(length=4200), {"mask": rg.causal(first=1)}, "dot_cpu", "N×M matrix"),
    ],
)
def test_the_plan_names_the_path_and_its_reason(inputs, options, backend, reason):
    plan = rg.explain(*inputs, **options)
    assert plan.backend == backend
    assert reason in plan.reason


@pytest.mark.parametrize(
    ("has_fast_threads", "threads", "wanted"),
    [(True, 2, "sdpa"), (True, 1, "short"), (False, 2, "short")],
)
def test_the_fused_kernel_is_left_few_pairs_where_threads_make_it_fast(
    has_fast_threads, threads, wanted, monkeypatch
):
    monkeypatch.setattr("regard.attention.call.choice.HAS_FAST_THREADS", has_fast_threads)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    monkeypatch.setattr("regard.attention.call.plan.MEMORY", Memory())
    assert rg.explain(*make(requires_grad=True, length=16, heads=128)).backend == wanted


def test_a_plan_is_a_value():
    plan = rg.explain(*make(), mask=rg.lengths([3, 512]))
    assert plan == rg.explain(*make(), mask=rg.lengths([3, 512]))
    assert plan == rg.Plan(plan.backend, plan.reason, plan.notes, plan.bytes, plan.operations)
    assert plan.operations == 2 * 2 * 4 * 512 * 512 * (64 + 64)


def test_a_plan_prints():
    text = str(rg.explain(*make(length=8), mask=rg.causal()))
    assert text.splitlines()[0].startswith("sdpa: ")
    assert "the mask is a flag" in text
    assert "operations" in text


def test_causal_over_equal_lengths_takes_no_memory_for_the_mask():
    plain, masked = rg.explain(*make()), rg.explain(*make(), mask=rg.causal())
    assert plain.bytes == masked.bytes


@pytest.mark.parametrize("is_masked", [False, True])
def test_on_a_gpu_no_kernel_may_serve_that_holds_the_matrix_nor_cudnns_under_a_mask(is_masked):
    def allowed():
        cuda = torch.backends.cuda
        return {
            "flash": cuda.flash_sdp_enabled(),
            "efficient": cuda.mem_efficient_sdp_enabled(),
            "math": cuda.math_sdp_enabled(),
            "cudnn": cuda.cudnn_sdp_enabled(),
        }

    before = allowed()
    with kernels(True, is_masked=is_masked):
        inside = allowed()
    assert inside == {"flash": True, "efficient": True, "math": False, "cudnn": not is_masked}
    with kernels(False, is_masked=is_masked):
        assert allowed() == before
    assert allowed() == before


@pytest.mark.parametrize(
    ("backend", "mask", "reason"),
    [
        ("short", None, "no gradient is wanted"),
        ("packed", rg.documents(torch.arange(100) // 90), "the documents are most of the row"),
        ("sdpa", rg.window(before=3, after=0), "the window is so narrow"),
    ],
)
def test_what_another_path_would_serve_faster_may_be_pinned(backend, mask, reason):
    query, key, value = torch.randn(
        3, 2, 4, 100 if mask is None or backend == "packed" else 400, 64
    )
    if backend == "sdpa":
        assert rg.explain(query, key, value, mask=mask).backend == "dot_cpu"
    assert reason in rg.explain(query, key, value, mask=mask).reason
    assert rg.explain(query, key, value, mask=mask, backend=backend).reason == "asked for"
    out = rg.attend(query, key, value, mask=mask, backend=backend)
    torch.testing.assert_close(out, rg.attend(query, key, value, mask=mask, backend="tiled"))
