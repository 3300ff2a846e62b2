"""The recipes that come with regard."""

from importlib.resources import as_file, files
from pathlib import Path

_FOLDER = files("regard") / "recipes"


def packaged_recipes() -> dict[str, str]:
    """What each recipe is for, by its name.

    Example:
        >>> packaged_recipes()["rnn-attention"]
        'A recurrent encoder-decoder with additive attention, after Bahdanau et al. (2015).'
    """
    found = {}
    for file in _FOLDER.iterdir():
        if file.name.endswith(".toml"):
            first = file.read_text(encoding="utf-8").partition("\n")[0]
            found[file.name.removesuffix(".toml")] = first.lstrip("# ")
    return dict(sorted(found.items()))


def packaged_recipe(name: str) -> Path:
    """The file of a recipe that comes with regard."""
    with as_file(_FOLDER / f"{name}.toml") as path:
        return path
