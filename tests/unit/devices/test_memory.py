import pytest
import torch

from regard.devices import in_halves, is_out_of_memory, out_of_memory_told
from regard.errors import OutOfMemory

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
def test_what_is_said_of_memory_is_told_with_a_cure(error):
    assert is_out_of_memory(error)
    with (
        pytest.raises(OutOfMemory, match="batch must fit; got a large one"),
        out_of_memory_told(lambda: "batch must fit; got a large one."),
    ):
        raise error


@pytest.mark.parametrize("error", [RuntimeError("no shape fits"), ValueError("out of memory")])
def test_other_errors_stay_as_they_are(error):
    with (
        pytest.raises(type(error), match=str(error)) as raised,
        out_of_memory_told(lambda: "never"),
    ):
        raise error
    assert raised.value is error


def test_an_error_of_ours_is_not_told_twice():
    with pytest.raises(OutOfMemory, match="inside"), out_of_memory_told(lambda: "outside"):
        raise OutOfMemory("inside")


def test_work_is_done_in_parts_that_fit_each_once_and_in_order():
    done, tried = [], []

    def work(things):
        tried.append(len(things))
        if len(things) > 3:
            raise torch.OutOfMemoryError
        done.extend(things)

    in_halves(work, range(10), CPU)
    assert done == list(range(10))
    assert tried == [10, 5, 3, 2, 5, 3, 2]


def test_one_thing_that_does_not_fit_is_an_error_with_a_cure():
    def work(things):
        raise MemoryError

    with pytest.raises(OutOfMemory, match=r"a text must fit into the memory of cpu, .* --device"):
        in_halves(work, [1, 2], CPU)


def test_other_errors_of_work_leave_it():
    def work(things):
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        in_halves(work, [1, 2], CPU)
