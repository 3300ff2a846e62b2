import pytest
import torch

from regard.training import precision
from regard.training.precision import compute_dtype, keep_freed_memory, mixed_precision

CPU = torch.device("cpu")


def test_a_named_format_is_taken():
    assert compute_dtype("float32", CPU) == torch.float32
    assert compute_dtype("bfloat16", CPU) == torch.bfloat16


@pytest.mark.parametrize(("is_fast", "expected"), [(True, torch.bfloat16), (False, torch.float32)])
def test_auto_asks_the_processor(monkeypatch, is_fast, expected):
    monkeypatch.setattr(precision, "multiplies_bfloat16", lambda _: is_fast)
    assert compute_dtype("auto", CPU) == expected


def test_a_format_that_is_slow_here_is_taken_with_a_word(monkeypatch):
    asked = []
    monkeypatch.setattr(precision, "warn_of_slow_bfloat16", asked.append)
    assert compute_dtype("auto", CPU) in (torch.bfloat16, torch.float32)
    assert compute_dtype("float32", CPU) == torch.float32
    assert not asked
    assert compute_dtype("bfloat16", CPU) == torch.bfloat16
    assert asked == [CPU]


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
