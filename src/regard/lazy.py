"""Packages whose public names are imported when they are first used, so that nothing else is."""

import ast
import sys
from collections.abc import Callable
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
        found = getattr(import_module(homes()[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    return find
