import importlib
import inspect
import pkgutil
from dataclasses import fields, is_dataclass
from pathlib import Path

from tools import samples

import regard


def modules():
    packages_found = pkgutil.walk_packages(regard.__path__, "regard.")
    return sorted(
        {"regard", *(info.name for info in packages_found if not info.name.endswith("__main__"))}
    )


def packages():
    packages_found = pkgutil.walk_packages(regard.__path__, "regard.")
    return sorted({"regard", *(info.name for info in packages_found if info.ispkg)})


def own(module):
    """The public classes and functions that a module defines."""
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == module.__name__
    }


def test_public_names_are_sorted_and_there():
    for package in map(importlib.import_module, packages()):
        names = getattr(package, "__all__", [])
        # Constants, then classes, then functions, as the linter sorts them.
        assert len(names) == len(set(names))
        assert names == sorted(names, key=_by_kind)
        for public in names:
            assert not public.startswith("_")
            assert getattr(package, public) is not None


def _by_kind(name):
    if name.isupper():
        return 0, name
    return (1 if name[:1].isupper() else 2), name


def test_the_page_of_public_names_is_current():
    docs, names = Path(__file__).parents[2] / "docs", samples.public_names()
    for page in ("names.md", "names.zh.md"):
        text = (docs / page).read_text("utf-8")
        # Written by `python -m tools.samples public-names`.
        assert samples.filled(text, {"public-names": names}) == text
        assert "\nregard\n    Additive " in text


def test_what_a_package_brings_in_is_in_its_list():
    for package in map(importlib.import_module, packages()):
        brought = {
            public
            for public, value in vars(package).items()
            if not public.startswith("_")
            and (inspect.isclass(value) or inspect.isfunction(value))
            and value.__module__.startswith("regard.")
        }
        assert not hasattr(package, "__all__") or brought <= set(package.__all__), package


def test_everything_public_is_explained():
    assert [name for name, text in _docstrings() if not _says_something(text)] == []


def _docstrings():
    """Every module, class, function and method, and its docstring."""
    for name in modules():
        module = importlib.import_module(name)
        yield name, module.__doc__
        for public, value in own(module).items():
            yield f"{name}.{public}", value.__doc__
            members = vars(value).items() if inspect.isclass(value) else ()
            for member, value_of_member in members:
                if not member.startswith("_") and _is_described(value_of_member):
                    yield f"{name}.{public}.{member}", inspect.getdoc(getattr(value, member))


def _is_described(member):
    return inspect.isfunction(member) or isinstance(member, property | classmethod | staticmethod)


def _says_something(text):
    """Whether a docstring is more than a placeholder."""
    if not text or len(text.split()) < 2:
        return False
    return not any(mark in text for mark in ("TODO", "FIXME", "XXX", "TBD", "lorem ipsum"))


def test_every_field_of_a_config_is_explained():
    from regard import models
    from regard.tasks import DataConfig, DecodingConfig, Recipe
    from regard.text import TokenizerConfig
    from regard.training import TrainingConfig

    of_models = [getattr(models, name) for name in models.__all__ if name.endswith("Config")]
    assert len(of_models) > 10
    configs = [*of_models, DataConfig, DecodingConfig, Recipe]
    for config in [*configs, TokenizerConfig, TrainingConfig]:
        explained = set()  # what a base explains need not be explained again
        for kind in filter(is_dataclass, config.__mro__):
            _, _, rest = inspect.cleandoc(kind.__doc__ or "").partition("Attributes:\n")
            attributes, _, _ = rest.partition("\n\n")
            lines = [line for line in attributes.splitlines() if line[4:5].strip()]
            names = [line.split(":")[0].strip() for line in lines]
            assert names == [each.name for each in fields(kind) if each.name in names], kind
            explained |= {*names}
        assert explained == {field.name for field in fields(config)}, config.__name__
