"""Models that no machine holds are known before they are made."""

import pytest
import torch
from torch import nn

from regard.devices import build_in_memory, build_within, is_finite
from regard.errors import OutOfMemory, RunError

WIDE = 10**9


@pytest.mark.parametrize(
    "build",
    [
        lambda: nn.Linear(WIDE, WIDE),
        lambda: nn.Embedding(WIDE, 10 * WIDE),
        lambda: nn.LSTM(WIDE, WIDE),
        lambda: nn.Parameter(torch.randn(WIDE, WIDE)),
        lambda: torch.zeros(size=(WIDE, WIDE)),
        lambda: torch.arange(10**15),
        lambda: nn.ModuleList(nn.Linear(1, 1) for _ in range(10**12)),
    ],
)
def test_what_is_too_large_is_refused_before_it_is_made(build):
    with pytest.raises(OutOfMemory, match=r"\[model\] must describe a model that fits into"):
        build_in_memory(build)


def test_a_model_of_its_size_is_built_as_ever():
    refusal = RunError("too large")
    torch.manual_seed(1)
    built = build_within(lambda: nn.Linear(3, 5), tensors=2, numbers=20, refusal=refusal)
    torch.manual_seed(1)
    assert torch.equal(built.weight, nn.Linear(3, 5).weight)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_large_numbers_are_finite_and_infinite_ones_are_not(dtype):
    large = torch.full((1000,), torch.finfo(dtype).max, dtype=dtype)
    assert is_finite(large)  # whose sum is not
    for value in ("nan", "inf", "-inf"):
        large[7] = float(value)
        assert not is_finite(large)
    assert is_finite(torch.tensor([1, 2]))
    assert is_finite(large[:0])
