"""Compiled loops over arrays, by numba and, on GPUs, by Triton: arrays in, arrays out.

``attention`` has the passes of the engine, ``products`` matrix products in float32 and int8,
``transformer`` and ``recurrent`` steps and encoders of models, ``search`` steps of searches,
``residual`` a residual connection in training; ``threads`` splits their rows among the threads of
torch, and in ``team`` threads share out the parts of one loop.

No other loop knows of threads. Masks come as bytes that are one where a pair is masked; an array
without entries stands for none. Modules are imported by the first call that needs them, after
``why_not`` found nothing against it.
"""

import os
from functools import cache


@cache
def why_not() -> str | None:
    """Reason why compiled passes cannot run here, or None; no error, as other paths answer."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        return "NUMBA_DISABLE_JIT turns compiling off"
    try:
        from regard.kernels import machine_code

        if not machine_code.is_there():
            import numba  # noqa: F401
    except Exception as error:
        return f"numba cannot be loaded ({type(error).__name__}: {error})"
    return None
