"""The libraries below torch, asked without torch in between."""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import torch

_Body = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@cache
def address_of_products() -> int | None:
    """Where the product of float32 matrices begins, or None if that cannot be known.

    Only one is taken that a thread can ask to work alone: Intel's.
    """
    library = _library()
    if not hasattr(library, "sgemm_") or not hasattr(library, "MKL_Set_Num_Threads_Local"):
        return None
    assert library is not None
    return ctypes.cast(library.sgemm_, ctypes.c_void_p).value


def in_team(threads: int, do: Callable[[], None]) -> bool:
    """Call ``do`` once on each of so many threads, those on which torch shares out its own work.

    After an operation they stay awake for some milliseconds, in which others, woken beside them,
    would find no core of their own.

    Args:
        threads: How many, this one among them; there may be fewer.
        do: What is called; it raises nothing.

    Returns:
        Whether it was done: not where torch brings another OpenMP than GNU's, or one that does not
        answer to its name.
    """
    library = _library()
    if not hasattr(library, "GOMP_parallel"):
        return False
    assert library is not None
    body = _Body(lambda _: do())
    library.GOMP_parallel(body, None, ctypes.c_uint(threads), ctypes.c_uint(0))
    return True


@contextmanager
def alone() -> Iterator[None]:
    """While it lasts, this thread works out alone what it asks of torch and its BLAS.

    torch has a number for each thread and one for threads that are yet to begin, and sets both
    together: OpenMP and Intel's BLAS are told instead, as only they know of one thread.
    """
    library = _library()
    if library is None:
        yield
        return
    before = torch.get_num_threads()  # in a new thread, this is what makes torch set its own
    of_products = 0
    if hasattr(library, "omp_set_num_threads"):
        library.omp_set_num_threads(1)
    if hasattr(library, "MKL_Set_Num_Threads_Local"):
        of_products = library.MKL_Set_Num_Threads_Local(1)
    try:
        yield
    finally:
        if hasattr(library, "MKL_Set_Num_Threads_Local"):
            library.MKL_Set_Num_Threads_Local(of_products)
        if hasattr(library, "omp_set_num_threads"):
            library.omp_set_num_threads(before)


@cache
def _library() -> ctypes.CDLL | None:
    """Torch's library, and all that it is linked with; None if it lies elsewhere."""
    try:
        return ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
    except OSError:
        return None
