import os
import platform
from pathlib import Path

import pytest
import torch

from regard.errors import SettingError
from regard.training import precision
from regard.training.precision import (
    LossScale,
    compute_dtype,
    freed_memory_returned,
    keep_freed_memory,
    products_of,
)
from regard.training.settings import TrainingConfig

CPU = torch.device("cpu")


def dtype_of(name, device, *, tokens=4096, model_dim=512):
    config = TrainingConfig(updates=1, precision=name, batch_tokens=tokens)
    return compute_dtype(config, device, model_dim)


def test_a_format_that_is_slow_here_is_taken_with_a_warning(monkeypatch):
    warned = []
    monkeypatch.setattr(precision, "warn_of_slow_bfloat16", warned.append)
    assert dtype_of("auto", CPU) in (torch.bfloat16, torch.float32)
    assert dtype_of("float32", CPU) == torch.float32
    assert not warned
    assert dtype_of("bfloat16", CPU) == torch.bfloat16
    assert warned == [CPU]


def test_few_compiled_products_are_cached_unless_the_user_says_so(monkeypatch):
    for name in precision._PRIMITIVES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LRU_CACHE_CAPACITY", "100")
    precision.keep_few_primitives()
    assert os.environ["LRU_CACHE_CAPACITY"] == "100"
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "64"


GPU = torch.device("cuda", 0)


@pytest.mark.parametrize(
    ("is_fast", "device", "expected"),
    [
        (True, CPU, torch.bfloat16),
        (False, CPU, torch.float32),
        (True, GPU, torch.bfloat16),
        (False, GPU, torch.float16),
        (False, "mps", torch.float32),
    ],
)
def test_auto_is_what_the_device_is_fast_in(monkeypatch, is_fast, device, expected):
    monkeypatch.setattr(precision, "multiplies_bfloat16", lambda _: is_fast)
    assert dtype_of("auto", torch.device(device)) == expected


@pytest.mark.parametrize(
    ("device", "tokens", "model_dim", "expected"),
    [
        (CPU, 1024, 96, torch.float32),
        (CPU, 1024, 256, torch.bfloat16),
        (CPU, 4096, 64, torch.bfloat16),
        (CPU, "auto", 64, torch.bfloat16),
        (GPU, 1024, 96, torch.bfloat16),
    ],
)
def test_auto_leaves_small_products_of_a_cpu_in_float32(
    monkeypatch, device, tokens, model_dim, expected
):
    monkeypatch.setattr(precision, "multiplies_bfloat16", lambda _: True)
    assert dtype_of("auto", device, tokens=tokens, model_dim=model_dim) == expected


def test_float16_is_of_gpus():
    assert dtype_of("float16", GPU) == torch.float16
    assert dtype_of("tf32", GPU) == torch.float32
    assert dtype_of("tf32", CPU) == torch.float32
    with pytest.raises(SettingError, match=r"training.precision must be another one on a CPU"):
        dtype_of("float16", CPU)


def rounding():
    return torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32


def test_a_gpu_rounds_float32_only_on_request():
    before = rounding()
    with products_of("tf32", CPU):
        assert rounding() == before
    with products_of("tf32", GPU):
        assert rounding() == ("high", True)
    with products_of("float32", GPU):
        assert rounding() == ("highest", False)
    assert rounding() == before


def test_a_loss_in_float16_is_scaled_and_the_scale_goes_with_a_run():
    scale = LossScale.of(torch.float16)
    assert scale.factor == 2**16
    assert scale.overflows(float("inf"))
    assert not scale.overflows(3.0)
    state = {"factor": 4.0, "since": 7}
    assert scale.restored(state) == LossScale(4.0, 7)
    assert scale.restored({"factor": 1.0, "since": 0}) == scale
    none = LossScale.of(torch.bfloat16)
    assert none == LossScale(1.0) == none.restored(state) == none.after(is_overflow=False)
    assert not none.overflows(float("nan"))
    # The least scale is not made smaller: what is not finite then is an error. It grows again.
    assert not LossScale(2.0).after(is_overflow=True).overflows(float("inf"))
    least = LossScale(4.0).after(is_overflow=True)
    assert not least.overflows(float("inf"))
    for _ in range(2000):
        least = least.after(is_overflow=False)
    assert least == LossScale(4.0)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries keep no memory")
def test_freed_memory_is_returned_around_a_validation():
    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    keep_freed_memory()
    with freed_memory_returned():
        before = resident()
        blocks = [torch.ones(2**18) for _ in range(256)]
        last = torch.ones(8)  # what lies behind them
        del blocks
        held = resident()
    assert held - before > 2**27 > resident() - before
    assert last.sum() == 8
