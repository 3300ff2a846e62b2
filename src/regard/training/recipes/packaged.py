"""Recipes that come with regard."""

from importlib.resources import as_file, files
from pathlib import Path

from regard.checks import choose

_FOLDER = files("regard") / "recipes"


def packaged_recipes() -> dict[str, str]:
    """Purpose of each recipe, by its name."""
    purposes = {}
    for file in _FOLDER.iterdir():
        if file.name.endswith(".toml"):
            first = file.read_text(encoding="utf-8").partition("\n")[0]
            purposes[file.name.removesuffix(".toml")] = first.lstrip("# ")
    return dict(sorted(purposes.items()))


def packaged_recipe(name: str) -> Path:
    """The file of a packaged recipe."""
    choose("recipe", name, packaged_recipes())
    with as_file(_FOLDER / f"{name}.toml") as path:
        return path
