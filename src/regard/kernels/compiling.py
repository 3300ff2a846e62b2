"""How loops are compiled and cached; numba is imported only where one has to be compiled."""

import logging
import sys
import tempfile
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from copy import copy
from functools import cache
from importlib import import_module
from inspect import unwrap
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

from regard.kernels import machine_code
from regard.kernels.threads import Team, team

# Sums may be reordered, and products fused into them, so that they run eight or sixteen at a time.
# NaN and infinities keep their meaning.
_RULES = {"reassoc", "contract", "arcp", "nsz"}
# Of a function whose rounding is part of its formula.
_IN_ORDER = {"contract", "nsz"}
_LOG = logging.getLogger(__name__)
P = ParamSpec("P")
R = TypeVar("R")


class _Module:
    """A module of numba, imported when something of it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:  # Any: as untyped as numba
        return getattr(import_module(self._name), name)


types, cgutils = _Module("numba.types"), _Module("numba.core.cgutils")


class Subroutine:
    """A function that compiled loops call; numba takes ``_numba_type_`` for its type."""

    def __init__(self, function: Callable[..., Any], **options: object) -> None:
        self.function: Callable[..., Any] = unwrap(function)  # of checks in tests
        self.py_func = self.function  # where numba looks for its lines
        self._options = options
        self._dispatcher: Any = None

    def dispatcher(self) -> Any:  # Any: a class of numba
        """The function as numba has it, which compiles it when it is called."""
        if self._dispatcher is None:
            with _lock:
                if self._dispatcher is None:
                    self._dispatcher = self._make()
        return self._dispatcher

    def _make(self) -> Any:
        return _numba().njit(**self._options)(self.function)

    @property
    def _numba_type_(self) -> Any:
        from numba.core.registry import cpu_target

        made = self.dispatcher()
        cpu_target.typing_context.refresh()  # an intrinsic becomes known by it
        return cpu_target.typing_context.resolve_value_type(made)

    @property
    def targetoptions(self) -> Any:
        """Options of numba, which asks whether to inline."""
        return self.dispatcher().targetoptions

    def __call__(self, *arguments: Any) -> Any:
        """Run it alone, by numba."""
        return self.dispatcher()(*arguments)


class _Part(Subroutine):
    """A part of loops, optimised and turned into machine code with each of them, and not alone."""

    def _make(self) -> Any:
        dispatcher = super()._make()
        compiler = dispatcher._compiler
        compiler._compile_core = _linking_only()(compiler._compile_core)
        return dispatcher


class _Intrinsic(Subroutine):
    def _make(self) -> Any:
        return import_module("numba.extending").intrinsic(self.function)


class Loop(Subroutine):
    """A compiled loop called from Python; imports numba only where no machine code is cached."""

    def __init__(self, function: Callable[..., Any], **options: object) -> None:
        super().__init__(function, nogil=True, error_model="numpy", **options)
        self._entries: dict[Hashable, Callable[..., None]] = {}

    def _make(self) -> Any:
        """Make it with a cache in our folder, unless users chose another."""
        numba, folder = _numba(), _writable_folder()
        chosen = numba.config.CACHE_DIR
        if not chosen and folder is not None:
            numba.config.CACHE_DIR = str(folder)
        try:
            is_cached = bool(numba.config.CACHE_DIR)
            return numba.njit(cache=is_cached, **self._options)(self.function)
        finally:
            numba.config.CACHE_DIR = chosen

    def __call__(self, *arguments: Any) -> None:
        """Run it for these arguments, compiled if it has to be."""
        self._run(_kind(arguments), arguments)

    def _run(self, kind: Hashable, arguments: tuple[Any, ...]) -> None:
        if kind not in self._entries:
            self._entries[kind] = self._entry(arguments)
        self._entries[kind](*arguments)

    def _entry(self, arguments: tuple[Any, ...]) -> Callable[..., None]:
        """The loop for arguments of these types, loaded, or compiled and cached."""
        name = machine_code.name(self.function, arguments)
        with _lock:
            entry = machine_code.load(name, self.function)
        if entry is None:
            entry = dispatcher = self.dispatcher()
            dispatcher.compile(tuple(map(dispatcher.typeof_pyval, arguments)))
            if _writable_folder() is not None:
                machine_code.store(name, dispatcher, arguments)
        return entry


class ParallelLoop(Loop):
    """A loop ``(first, stop, ...)`` over rows, which threads share out; see ``team``."""

    _bound: tuple[Any, ...] = ()

    def __call__(self, first: int, stop: int, *arguments: Any) -> None:
        """Run it for some rows, on this thread."""
        self.share(team(1), 1, first, stop, arguments)

    def share(
        self, by: Team, tasks: int, first: int, stop: int, arguments: tuple[Any, ...]
    ) -> None:
        """Run it for so many even parts of the rows, each on any thread of a team."""
        self._run(_kind(arguments), (by, tasks, first, stop, self._bound + arguments))

    def bind(self, *arguments: Any) -> "ParallelLoop":
        """The loop with arguments behind ``stop``, whose many kinds are looked at once."""
        bound = copy(self)
        bound._bound, bound._entries = arguments, {}
        bound._make = self.dispatcher  # type: ignore[method-assign]
        return bound


_lock = threading.RLock()


def _kind(arguments: tuple[object, ...]) -> Hashable:
    """Types and layouts of arguments, which decide how a loop is compiled for them."""
    return tuple(
        [
            (argument.dtype, argument.ndim, argument.flags.num)
            if type(argument) is np.ndarray
            else (type(argument), _kind(argument))
            if isinstance(argument, tuple)
            else type(argument)
            for argument in arguments
        ]
    )


def compiled(loop: Callable[..., None]) -> Loop:
    """Compile ``loop`` at its first call, without the interpreter's lock, and cache it."""
    return Loop(loop, fastmath=_RULES, boundscheck=False)


def inlined(loop: Callable[P, R]) -> Callable[P, R]:
    """``loop`` inlined in the loops that call it: a call counts references to arrays."""
    return _part(loop, _RULES)


def uncounted_part(loop: Callable[P, R]) -> Callable[P, R]:
    """``loop`` as a part that slices arrays and makes none: references are not counted."""
    return _part(loop, _RULES, is_inlined=False, counts=False)


def written_in(loop: Callable[P, R]) -> Callable[P, R]:
    """``loop`` as lines of its one caller: a long part would be compiled alone, too."""
    part = Subroutine(loop, inline="always", fastmath=_RULES, error_model="numpy")
    return cast("Callable[P, R]", part)


def shared(loop: Callable[P, R]) -> Callable[P, R]:
    """Compile a longer part that several loops call, once for all of them."""
    return _part(loop, _RULES, is_inlined=False)


def in_order(loop: Callable[P, R]) -> Callable[P, R]:
    """Compile a part whose operations keep their order."""
    return _part(loop, _IN_ORDER)


def intrinsic(function: Callable[..., Any]) -> Callable[..., Any]:
    """A part that writes LLVM's instructions itself, as ``numba.extending.intrinsic`` has it."""
    return _Intrinsic(function)


def _part(
    loop: Callable[P, R], rules: set[str], *, is_inlined: bool = True, counts: bool = True
) -> Callable[P, R]:
    part = _Part(
        loop,
        fastmath=rules,
        nogil=True,
        error_model="numpy",
        boundscheck=False,
        no_cpython_wrapper=True,  # compiled in three quarters of the time
        no_cfunc_wrapper=True,
        forceinline=is_inlined,
        _nrt=counts,
    )
    return cast("Callable[P, R]", part)


@contextmanager
def _linking_only() -> Iterator[None]:
    """While it lasts, numba links functions without optimising; the loop is optimised whole."""
    codegen: Any = import_module("numba.core.codegen")
    libraries, codes = codegen.JITCodeLibrary, codegen.JITCPUCodegen
    finalize, set_env = libraries.finalize, codes.set_env

    def link(library: Any) -> None:
        for linked in dict.fromkeys(library._linking_libraries):
            library._reload_init.update(linked._reload_init)
            library._final_module.link_in(linked._get_module_for_linking(), preserve=True)
        library._finalize_dynamic_globals()
        library._finalized = True

    libraries.finalize, codes.set_env = link, lambda *names: None
    try:
        yield
    finally:
        libraries.finalize, codes.set_env = finalize, set_env


@cache
def _writable_folder() -> Path | None:
    """Cache folder of this code; None if it cannot be written."""
    try:
        folder = machine_code.cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except (OSError, RuntimeError):  # RuntimeError: there is no home
        return None


@cache
def _numba() -> Any:
    """numba, which announces once a process why a first call is slow."""
    import numba
    from numba.core import event

    class Announcement(event.Listener):
        is_made = False

        def on_start(self, event: event.Event) -> None:
            """Called before numba compiles, not when it finds code in its cache."""
            code = event.data["dispatcher"].py_func.__module__
            if self.is_made or not code.startswith("regard."):
                return
            self.is_made = True
            folder = _writable_folder()
            where = "kept for the next time" if folder else "its cache folder cannot be written"
            text = f"compiling for this processor: from seconds to two minutes, {where}"
            if _LOG.isEnabledFor(logging.INFO):
                _LOG.info(text)
            elif sys.stderr is not None and sys.stderr.isatty():
                sys.stderr.write(f"{text}\n")

        def on_end(self, event: event.Event) -> None:
            """Nothing."""

    event.register("numba:compile", Announcement())  # type: ignore[no-untyped-call]
    return numba
