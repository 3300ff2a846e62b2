import pytest
import torch

from regard.training import precision
from regard.training.precision import compute_dtype, keep_freed_memory, mixed_precision

CPU = torch.device("cpu")


def test_a_named_format_is_taken():
    assert compute_dtype("float32", CPU) == torch.float32
    assert compute_dtype("bfloat16", CPU) == torch.bfloat16


@pytest.mark.parametrize(
    ("abilities", "expected"),
    [
        ((True, False), torch.bfloat16),
        ((False, True), torch.bfloat16),
        ((False, False), torch.float32),
    ],
)
def test_auto_asks_the_processor(monkeypatch, abilities, expected):
    names = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    for name, ability in zip(names, abilities, strict=True):
        monkeypatch.setattr(torch.cpu, name, lambda ability=ability: ability, raising=False)
    assert compute_dtype("auto", CPU) == expected


def test_auto_is_float32_where_torch_cannot_say(monkeypatch):
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.delattr(torch.cpu, name, raising=False)
    assert compute_dtype("auto", CPU) == torch.float32


def test_only_products_run_in_half_precision():
    a, norm = torch.randn(3, 3), torch.nn.LayerNorm(3)
    with mixed_precision(torch.bfloat16, CPU):
        assert (a @ a).dtype == torch.bfloat16
        assert (a + a).dtype == torch.float32
        assert norm(a).dtype == torch.float32
    with mixed_precision(torch.float32, CPU):
        assert (a @ a).dtype == torch.float32
    assert (a @ a).dtype == torch.float32


def test_keeping_freed_memory_changes_no_result():
    def work():
        torch.manual_seed(0)
        return sum(torch.randn(300, 300) @ torch.randn(300, 300) for _ in range(5))

    before = work()
    keep_freed_memory()
    keep_freed_memory()
    assert torch.equal(work(), before)


def test_where_there_is_no_such_setting_nothing_happens(monkeypatch):
    monkeypatch.setattr(precision.sys, "platform", "darwin")
    monkeypatch.setattr(precision.ctypes, "CDLL", None)
    keep_freed_memory()
    monkeypatch.setattr(precision.sys, "platform", "linux")
    monkeypatch.setattr(precision.ctypes, "CDLL", lambda _: object())
    keep_freed_memory()
