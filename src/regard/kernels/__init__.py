"""Compiled loops over arrays, by numba and, on GPUs, by Triton: arrays in, arrays out.

``attention`` has the passes of the engine, ``products`` matrix products in float32 and int8,
``transformer`` and ``recurrent`` steps and encoders of models, ``search`` steps of searches,
``training`` dropout, the residual connection and the loss. By ``team`` the threads of torch share
out the rows of a loop, or of its parts, and ``threads`` says how many there are.

Masks come as bytes that are one where a pair is masked; an array
without entries stands for none. Modules are imported by the first call that needs them, after
``why_not`` found nothing against it.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor


_is_off: ContextVar[bool] = ContextVar("compiled passes are off", default=False)


@contextmanager
def uncompiled() -> Iterator[None]:
    """Let other paths answer meanwhile: for little work, which takes less time than compiling.

    Example:
        >>> with uncompiled():
        ...     why_not()
        'compiled passes are off'
    """
    before = _is_off.set(True)
    try:
        yield
    finally:
        _is_off.reset(before)


def why_not() -> str | None:
    """Reason why compiled passes cannot run here, or None; no error, as other paths answer."""
    return "compiled passes are off" if _is_off.get() else _why_never()


@cache
def _why_never() -> str | None:
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        return "NUMBA_DISABLE_JIT turns compiling off"
    try:
        from regard.kernels import machine_code

        if not machine_code.is_there():
            import numba  # noqa: F401
    except Exception as error:
        return f"numba cannot be loaded ({type(error).__name__}: {error})"
    return None


def takes(*inputs: "Tensor") -> bool:
    """Whether a loop can take tensors now: of float32 or bfloat16, on a CPU, nothing recorded."""
    import torch

    if torch.is_grad_enabled() or torch.compiler.is_compiling() or why_not() is not None:
        return False
    return all(
        type(tensor) in (torch.Tensor, torch.nn.Parameter)
        and tensor.dtype in (torch.float32, torch.bfloat16)
        and tensor.device.type == "cpu"
        for tensor in inputs
    )


def numbers(tensor: "Tensor") -> "np.ndarray":
    """A tensor as loops take it, contiguous; of bfloat16 its bits, as int16."""
    import torch

    flat = tensor.detach().contiguous()
    array: np.ndarray = (flat.view(torch.int16) if flat.dtype == torch.bfloat16 else flat).numpy()
    return array
