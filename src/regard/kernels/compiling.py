"""How loops are compiled, and where the result is kept."""

import logging
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from inspect import unwrap
from pathlib import Path
from typing import ParamSpec, TypeVar

import numba
from numba.core import event

# Sums may be reordered, and products fused into them, so that they run eight or sixteen at a time.
# NaN and infinities keep their meaning.
_RULES = {"reassoc", "contract", "arcp", "nsz"}
# Of a function whose rounding is part of its formula.
_IN_ORDER = {"contract", "nsz"}
_LOG = logging.getLogger(__name__)
P = ParamSpec("P")
R = TypeVar("R")


def cache_folder() -> Path:
    """Folder in which the next process finds compiled loops; one for each state of this room.

    A loop is compiled together with the parts that it calls, in whichever module of the room; numba
    looks at none of them to see whether it has changed.
    """
    home = os.environ.get("XDG_CACHE_HOME")
    code = sha256()
    for module in sorted(Path(__file__).parent.rglob("*.py")):
        code.update(module.read_bytes())
    base = Path(home) if home else Path.home() / ".cache"
    return base / "regard" / "kernels" / code.hexdigest()[:16]


def compiled(loop: Callable[..., None]) -> Callable[..., None]:
    """``loop`` compiled at its first call, without the interpreter's lock, and kept.

    A division by zero gives an infinity or NaN, as it does in tensors. What checks arguments in
    tests is taken off. Where nothing can be kept, every process compiles for itself.
    """
    return _entry(loop, counts=True)


def uncounted(loop: Callable[..., None]) -> Callable[..., None]:
    """Compile a loop that makes no arrays, and calls nothing that returns one.

    References to what it slices are not counted, which can cost more than the work on a slice.
    """
    return _entry(loop, counts=False)


def _entry(loop: Callable[..., None], *, counts: bool) -> Callable[..., None]:
    with _kept_in(_writable_folder()) as is_kept:
        made: Callable[..., None] = numba.njit(  # type: ignore[call-overload]
            fastmath=_RULES,
            nogil=True,
            error_model="numpy",
            cache=is_kept,
            boundscheck=False,
            _nrt=counts,
        )(unwrap(loop))
    return made


def inlined(loop: Callable[P, R]) -> Callable[P, R]:
    """``loop`` as a part of the compiled loops that call it.

    A call would cost more than most parts do: arrays are counted when they are handed over.
    """
    return _part(loop, _RULES)


def uncounted_part(loop: Callable[P, R]) -> Callable[P, R]:
    """``loop`` as a part of ``uncounted`` loops that they call, and that slices arrays itself."""
    return _part(loop, _RULES, is_inlined=False, counts=False)


def written_in(loop: Callable[P, R]) -> Callable[P, R]:
    """``loop`` as lines of the one loop that calls it: a long part would be compiled alone, too."""
    made: Callable[P, R] = numba.njit(inline="always", fastmath=_RULES, error_model="numpy")(
        unwrap(loop)
    )
    return made


def shared(loop: Callable[P, R]) -> Callable[P, R]:
    """Compile a longer part that several loops call, once for all of them."""
    return _part(loop, _RULES, is_inlined=False)


def in_order(loop: Callable[P, R]) -> Callable[P, R]:
    """Compile a part whose operations keep their order."""
    return _part(loop, _IN_ORDER)


def _part(
    loop: Callable[P, R], rules: set[str], *, is_inlined: bool = True, counts: bool = True
) -> Callable[P, R]:
    made: Callable[P, R] = numba.njit(  # type: ignore[call-overload]
        fastmath=rules,
        nogil=True,
        error_model="numpy",
        boundscheck=False,
        no_cpython_wrapper=True,  # compiled in three quarters of the time
        no_cfunc_wrapper=True,
        forceinline=is_inlined,
        _nrt=counts,
    )(unwrap(loop))
    return made


@cache
def _writable_folder() -> Path | None:
    """The folder of this code, made and found to take files; None if it does not."""
    try:
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except (OSError, RuntimeError):  # RuntimeError: there is no home
        return None


@contextmanager
def _kept_in(folder: Path | None) -> Iterator[bool]:
    """While it lasts, numba keeps in ``folder`` what it compiles, unless users chose another."""
    chosen = numba.config.CACHE_DIR  # type: ignore[attr-defined]
    if not chosen and folder is not None:
        numba.config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
    try:
        yield bool(chosen) or folder is not None
    finally:
        numba.config.CACHE_DIR = chosen  # type: ignore[attr-defined]


class _Announcement(event.Listener):
    """Says once a process, on a terminal or in its log, why a first call takes so long."""

    is_made = False

    def on_start(self, event: event.Event) -> None:
        """Called before numba compiles, not when it finds what it once compiled."""
        code = event.data["dispatcher"].py_func.__module__
        if self.is_made or not code.startswith("regard."):
            return
        self.is_made = True
        kept = _writable_folder()
        where = "kept for the next time" if kept else "its cache folder cannot be written"
        text = f"compiling for this processor: from seconds to two minutes, {where}"
        if _LOG.isEnabledFor(logging.INFO):
            _LOG.info(text)
        elif sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write(f"{text}\n")

    def on_end(self, event: event.Event) -> None:
        """Nothing."""


event.register("numba:compile", _Announcement())  # type: ignore[no-untyped-call]
