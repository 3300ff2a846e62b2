import pytest
import torch
from torch import nn

from regard.devices.memory import (
    build_in_memory,
    build_within,
    describing_out_of_memory,
    in_halves,
    is_finite,
    is_out_of_memory,
)
from regard.errors import OutOfMemory, RunError

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("MPS backend out of memory (MPS allocated: 5.00 GB)"),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:117] … DefaultCPUAllocator: can't allocate memory"
        ),
        MemoryError(),
    ],
)
def test_errors_of_memory_name_a_cure(error):
    assert is_out_of_memory(error)
    with (
        pytest.raises(OutOfMemory, match="batch must fit; got a large one"),
        describing_out_of_memory(lambda: "batch must fit; got a large one."),
    ):
        raise error


@pytest.mark.parametrize("error", [RuntimeError("no shape fits"), ValueError("out of memory")])
def test_other_errors_stay_as_they_are(error):
    with (
        pytest.raises(type(error), match=str(error)) as raised,
        describing_out_of_memory(lambda: "never"),
    ):
        raise error
    assert raised.value is error


def test_work_is_done_in_parts_that_fit_each_once_and_in_order():
    done, tried = [], []

    def work(items):
        tried.append(len(items))
        if len(items) > 3:
            raise torch.OutOfMemoryError
        done.extend(items)

    in_halves(work, range(10), CPU)
    assert done == list(range(10))
    assert tried == [10, 5, 3, 2, 5, 3, 2]


def test_one_item_that_does_not_fit_is_an_error_with_a_cure():
    def work(items):
        raise MemoryError

    with pytest.raises(OutOfMemory, match=r"a text must fit into the memory of cpu, .* --device"):
        in_halves(work, [1, 2], CPU)


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
        lambda: [torch.zeros(1) for _ in range(10**12)],
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
