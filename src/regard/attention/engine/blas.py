"""The libraries below torch, asked without torch in between."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import torch


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
