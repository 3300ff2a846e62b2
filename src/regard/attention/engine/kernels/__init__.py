"""Compiled passes over the processor's memory, by numba.

They are single loops that know nothing of threads: ``engine.workers`` shares tasks out. Masks come
as bytes that are one where a pair is hidden; an array without entries stands for none. The modules
beside this one are imported by the first call that needs them, after ``why_not`` found nothing
against it.
"""

import os
from functools import cache


@cache
def why_not() -> str | None:
    """Reason why compiled passes cannot run here, or None. The first call imports numba.

    Anything that goes wrong in the import is a reason to do without, not an error: there is
    another path with the same answers.
    """
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        return "NUMBA_DISABLE_JIT turns compiling off"
    try:
        import numba  # noqa: F401
    except Exception as error:
        return f"numba cannot be loaded ({type(error).__name__}: {error})"
    return None
