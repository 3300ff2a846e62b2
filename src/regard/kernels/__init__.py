"""Compiled loops over arrays, by numba and, on GPUs, by Triton: arrays in, arrays out.

``attention`` has the passes of the engine, ``products`` matrix products in float32 and int8,
``transformer`` and ``recurrent`` what a model does for a token or a text, ``search`` what a search
does between two tokens; ``threads`` shares their rows out, ``libraries`` finds what torch brings.

A loop knows nothing of threads. Masks come as bytes that are one where a pair is masked; an array
without entries stands for none. Modules are imported by the first call that needs them, after
``why_not`` found nothing against it.
"""

import os
from functools import cache


@cache
def why_not() -> str | None:
    """Reason why compiled passes cannot run here, or None.

    The first call imports numba, unless it has compiled here before and is what it was then.

    Anything that goes wrong in the import is a reason to do without, not an error: there is
    another path with the same answers.
    """
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        return "NUMBA_DISABLE_JIT turns compiling off"
    try:
        from regard.kernels import machine_code

        if not machine_code.is_there():
            import numba  # noqa: F401
    except Exception as error:
        return f"numba cannot be loaded ({type(error).__name__}: {error})"
    return None
