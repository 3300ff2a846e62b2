"""Packages whose public names are imported when they are first used, so that nothing else is."""

import ast
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path


def names(package: str, file: str) -> Callable[[str], object]:
    """A package's ``__getattr__`` (PEP 562), for the names it imports ``if TYPE_CHECKING``.

    So a package lists its names once, as every other does, for people, type checkers and Python.
    None of them may be the name of a module in the package, which would hide it.

    Args:
        package: Its ``__name__``.
        file: Its ``__file__``, which has the imports.

    Example:
        >>> import regard
        >>> find = names("regard", regard.__file__)
        >>> find("causal").__name__
        'causal'
        >>> find("casual")
        Traceback (most recent call last):
        AttributeError: module 'regard' has no attribute 'casual'
    """

    @cache
    def homes() -> dict[str, str]:
        tree = ast.parse(Path(file).read_text("utf-8"))
        imports = [line for line in ast.walk(tree) if isinstance(line, ast.ImportFrom)]
        return {each.name: line.module for line in imports if line.module for each in line.names}

    def find(name: str) -> object:
        if name not in homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes()[name]
        if home not in sys.modules:
            with _no_search_for_garbage():
                import_module(home)
        found = getattr(import_module(home), name)
        setattr(sys.modules[package], name, found)
        return found

    return find


def freeze_imports() -> None:
    """Whatever there is, and is imported later, is searched for garbage never again.

    That is for a process of ours alone, which keeps all of it until it ends: with all of torch, the
    last search takes half a second.
    """
    gc.freeze()
    _AFTER.append(gc.freeze)


# What is done after an import.
_AFTER: list[Callable[[], None]] = []


@contextmanager
def _no_search_for_garbage() -> Iterator[None]:
    """An import makes none, and torch's takes a sixth longer with the searches."""
    if not gc.isenabled():  # by the import that this one is part of, perhaps
        yield
        return
    if _AFTER:
        gc.collect()  # lest garbage be frozen; it is quick where so much is
    gc.disable()
    try:
        yield
    finally:
        for each in _AFTER:
            each()
        gc.enable()
