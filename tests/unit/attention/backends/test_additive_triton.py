"""Additive attention on GPUs: what it refuses, that it compiles, and what its kernels give."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

import regard as rg
from regard.attention.backends import additive_triton
from regard.errors import SettingError

needs_triton = pytest.mark.skipif(
    find_spec("triton") is None, reason="triton is not installed; it is there for Linux on x86-64"
)
CASES = Path(__file__).with_name("additive_triton_cases.py")
D = 5
W = torch.ones(D)
WIDE = rg.dense(torch.ones(1, 1, dtype=torch.bool).expand(1, 1, 8200, 8200))


@pytest.fixture
def _as_if_interpreted(monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setattr(additive_triton, "_has_triton", lambda: True)


def run(*arguments, **environment):
    """Python in a process of its own, which reads its environment before it imports Triton."""
    variables = {name: text for name, text in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**variables, **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@needs_triton
@pytest.mark.slow
def test_what_the_kernels_give():
    lines = run("-m", "pytest", "-q", "-p", "no:cacheprovider", CASES, TRITON_INTERPRET="1")
    assert re.match(r"\d+ passed in", lines[-1])


@pytest.mark.usefixtures("_as_if_interpreted")
def test_a_cpu_has_faster_paths():
    query, key, value = (torch.zeros(2, 2, 9, D) for _ in range(3))
    assert rg.explain(query, key, value, score=rg.Additive(W)).backend == "additive_cpu"
    plan = rg.explain(query, key, value, score=rg.Additive(W), backend="additive_triton")
    assert "Triton" in plan.notes[0]


@pytest.mark.parametrize(
    ("options", "dtype", "queries", "reason"),
    [
        ({"score": rg.ScaledDot()}, torch.float32, 3, "not additive"),
        ({"weighting": rg.Sparsemax()}, torch.float32, 3, "not softmax"),
        ({}, torch.float64, 3, "in float32"),
        ({"bias": rg.alibi()}, torch.float32, 3, "rule of distances"),
        ({"bias": torch.ones(1, requires_grad=True)}, torch.float32, 3, "needs a gradient"),
        ({}, torch.float32, 0, "nothing to compute"),
        ({"mask": WIDE & rg.causal()}, torch.float32, 8200, "more than 64 MB"),
    ],
)
@pytest.mark.usefixtures("_as_if_interpreted")
def test_what_it_cannot_serve_is_refused_by_name(options, dtype, queries, reason):
    query = torch.zeros(1, 1, queries, D, dtype=dtype)
    key = torch.zeros(1, 1, max(queries, 3), D, dtype=dtype)
    options = {"score": rg.Additive(W.to(dtype)), **options}
    with pytest.raises(SettingError, match=reason):
        rg.attend(query, key, **options, backend="additive_triton")


@pytest.mark.usefixtures("_as_if_interpreted")
def test_without_triton_the_refusal_says_so(monkeypatch):
    monkeypatch.setattr(additive_triton, "_has_triton", lambda: False)
    with pytest.raises(SettingError, match="triton is not installed"):
        rg.attend(
            torch.ones(2, D), torch.ones(3, D), score=rg.Additive(W), backend="additive_triton"
        )


# Everything but the launch: on a machine without a GPU, the kernels become one's machine code.
COMPILE = """
import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

class Hopper:
    def get_current_device(self): return 0
    def get_current_stream(self, device): return 0
    def get_current_target(self): return GPUTarget("cuda", 90, 32)

driver.set_active(Hopper())
from regard.attention import Additive, attend, causal, lengths
from regard.attention.backends import additive_triton

def compile_only(launch, name, grid, arguments, sizes):
    launch.is_fast = True
    kernel = getattr(launch.kernels, name)
    options = {**launch.constants(kernel, sizes), "enable_fp_fusion": True}
    built = kernel.warmup(*arguments, launch.sizes, grid=grid, **options)
    print(name, "cubin" in built.asm, "rcp.approx" in built.asm["ptx"])

additive_triton._why_not_machine = lambda query: None
additive_triton._Launch.start = compile_only
leaves = [torch.randn(2, 2, 70, 32).requires_grad_() for _ in range(3)]
torch.manual_seed(0)
for mask, dropout, bias in ((None, 0.0, None), (causal() & lengths([9, 70]), 0.1, torch.ones(70))):
    out = attend(*leaves, score=Additive(torch.ones(32)), mask=mask, dropout=dropout, bias=bias,
                 backend="additive_triton")
    torch.autograd.grad(out.sum(), leaves)
"""


@needs_triton
@pytest.mark.slow
def test_the_kernels_compile_for_a_gpu(tmp_path):
    lines = run("-c", COMPILE, TRITON_CACHE_DIR=str(tmp_path))
    kernels = ["forward", "score_gradient", "query_gradient", "key_gradient", "value_gradient"]
    want = [f"{name} True {name != 'value_gradient'}" for name in kernels]
    assert lines == 2 * want


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA GPU")
@pytest.mark.parametrize(
    "mask", [None, rg.causal(), rg.dense(torch.eye(70, 90).bool().cummax(1)[0])]
)
def test_on_a_gpu_it_is_chosen_and_exact(mask):
    shapes = [(2, 4, 70, 32), (2, 2, 90, 32), (2, 2, 90, 24), (4, 32)]
    narrow = [torch.randn(shape, device="cuda").requires_grad_() for shape in shapes]
    if mask is not None:
        mask = rg.dense(mask.bind(2, 4, 70, 90).dense().cuda()) & rg.causal()
    assert (
        rg.explain(*narrow[:3], score=rg.Additive(narrow[3]), mask=mask).backend
        == "additive_triton"
    )
    answers = []
    for inputs in (narrow, [t.detach().double().requires_grad_() for t in narrow]):
        out = rg.attend(*inputs[:3], score=rg.Additive(inputs[3]), mask=mask)
        answers.append([out, *torch.autograd.grad(out.square().sum(), inputs)])
    for one, other in zip(*answers, strict=True):
        torch.testing.assert_close(one.double(), other, atol=1e-4, rtol=1e-4)
