"""Packages whose public names are imported when they are first used, so that nothing else is."""

import ast
import sys
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path


def names(package: str, file: str) -> Callable[[str], object]:
    """A package's ``__getattr__`` (PEP 562): modules and imports ``if TYPE_CHECKING``."""

    @cache
    def homes() -> dict[str, str]:
        tree = ast.parse(Path(file).read_text("utf-8"))
        imports = [line for line in ast.walk(tree) if isinstance(line, ast.ImportFrom)]
        return {each.name: line.module for line in imports if line.module for each in line.names}

    def find(name: str) -> object:
        is_module = name.isidentifier() and name[0] != "_" and name not in homes()
        home = f"{package}.{name}" if is_module else homes().get(name)
        if home is None or (is_module and find_spec(home) is None):
            cure = "" if name.startswith("_") else _nearest(package, name)
            raise AttributeError(f"module {package!r} has no attribute {name!r}{cure}")
        module = import_module(home)
        if is_module:
            return module
        value = getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return find


# What torch and scikit-learn call what has another name here.
_FOREIGN = {
    "evaluate": "load(RUN).evaluate",
    "fit": "train",
    "flash_attn_func": "attend",
    "predict": "load(RUN).predict",
    "scaled_dot_product_attention": "attend",
}


def _nearest(package: str, name: str) -> str:
    """Suggest the public name most like an unknown one: of the package itself, else of a room."""
    root = package.partition(".")[0]
    if package == root and name in _FOREIGN:
        return f". Did you mean {root}.{_FOREIGN[name]}?"
    folded, public = name.casefold(), _public_names(root)
    rooms = [each for each in public if each != package and each.count(".") < 2]
    for homes, cutoff in (([*rooms, package], 0.9), ([package], 0.65), (rooms, 0.7)):
        full = {each.casefold(): f"{home}.{each}" for home in homes for each in public[home]}
        if close := get_close_matches(folded, list(full), n=1, cutoff=cutoff):
            return f". Did you mean {full[close[0]]}?"
    return ""


@cache
def _public_names(root: str) -> dict[str, list[str]]:
    """Collect the ``__all__`` of a package and of those inside it, without importing them."""
    folder = Path(str(sys.modules[root].__file__)).parent
    return {
        ".".join([root, *file.parent.relative_to(folder).parts]): ast.literal_eval(line.value)
        for file in sorted(folder.rglob("__init__.py"))
        for line in ast.parse(file.read_text("utf-8")).body
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "__all__"
    }
