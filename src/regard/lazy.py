"""Packages whose public names are imported when they are first used, so that nothing else is.

The package lazy-loader reads a stub beside each package, which would list all names again; it finds
none in a zip, and suggests no names.
"""

import ast
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from inspect import unwrap
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any


def names(
    package: str, file: str, *, renamed: Mapping[str, str] = MappingProxyType({})
) -> Callable[[str], object]:
    """A package's ``__getattr__`` (PEP 562): its modules, and its imports ``as`` their own name.

    ``renamed`` has the new name of each old one that works for one more version, and warns.
    """

    @cache
    def homes() -> dict[str, str]:
        # By its loader, as the package may lie in a zip.
        loader: Any = vars(sys.modules[package])["__loader__"]
        return _exports(ast.parse(loader.get_data(file)))

    def find(name: str) -> object:
        if name == "__all__":
            return public(homes())
        if name in renamed:
            warnings.warn(
                f"{package}.{name} is called {package}.{renamed[name]} now; the old name goes with "
                "the next version.",
                DeprecationWarning,
                stacklevel=2,
            )
            return getattr(sys.modules[package], renamed[name])
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


def put_off_compiler() -> None:
    """Let torch's optimizers begin without its compiler, which takes a second to import."""
    from torch.optim import Optimizer

    if "torch._dynamo" in sys.modules:
        return
    for name in ("add_param_group", "zero_grad", "state_dict", "load_state_dict"):
        # Torch imports it to have it leave these alone, and keeps the result here.
        function = unwrap(getattr(Optimizer, name))
        vars(function).setdefault("__dynamo_disable", function)


def public(names: Iterable[str]) -> list[str]:
    """The ``__all__`` of names: constants, then classes, then functions, as the linter sorts."""
    return sorted(names, key=lambda name: (not name.isupper(), not name[:1].isupper(), name))


def _exports(tree: ast.Module) -> dict[str, str]:
    """The module of each name that an ``__init__`` imports ``as`` itself, which makes it public."""
    imports = [line for line in ast.walk(tree) if isinstance(line, ast.ImportFrom) and line.module]
    return {
        alias.name: str(line.module)
        for line in imports
        for alias in line.names
        if alias.name == alias.asname and alias.name[0] != "_"
    }


# Names of torch and scikit-learn for functions with another name here.
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
    rooms = [room for room in public if room != package and room.count(".") < 2]
    for homes, cutoff in (([*rooms, package], 0.9), ([package], 0.65), (rooms, 0.7)):
        full = {
            export.casefold(): f"{home}.{export}"
            for home in homes
            for export in public.get(home, ())
        }
        if close := get_close_matches(folded, list(full), n=1, cutoff=cutoff):
            return f". Did you mean {full[close[0]]}?"
    return ""


@cache
def _public_names(root: str) -> dict[str, list[str]]:
    """Collect the public names of a package and of those inside it, without importing them."""
    folder = Path(str(sys.modules[root].__file__)).parent
    of_packages: dict[str, list[str]] = {}
    for file in sorted(folder.rglob("__init__.py")):
        tree = ast.parse(file.read_text("utf-8"))
        listed = [
            ast.literal_eval(line.value)
            for line in tree.body
            if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "__all__"
        ]
        if names := [*chain.from_iterable(listed), *_exports(tree)]:
            of_packages[".".join([root, *file.parent.relative_to(folder).parts])] = names
    return of_packages
