"""The packaged recipes, and the arguments that name one."""

from glob import has_magic
from importlib.resources import as_file, files
from pathlib import Path

from regard.choices import choose, nearest
from regard.errors import SettingError

_FOLDER = files("regard") / "recipes"
# Recipes of before, and those that are in their place.
_REPLACED = {"word-answering": "sentence-selection"}


def packaged_recipes() -> dict[str, str]:
    """Purpose of each recipe, by its name.

    Example:
        >>> packaged_recipes()["rnn-attention"]
        'A recurrent encoder-decoder with additive attention, after Bahdanau et al. (2015).'
    """
    purposes = {}
    for file in _FOLDER.iterdir():
        if file.name.endswith(".toml"):
            first = file.read_text(encoding="utf-8").partition("\n")[0]
            purposes[file.name.removesuffix(".toml")] = first.lstrip("# ")
    return dict(sorted(purposes.items()))


def packaged_recipe(name: str) -> Path:
    """The file of a packaged recipe.

    Raises:
        SettingError: No recipe has that name.
    """
    choose("recipe", name, packaged_recipes())
    with as_file(_FOLDER / f"{name}.toml") as path:
        return path


def is_recipe(name: str) -> bool:
    """Whether an argument names a recipe; a file of that name hides a packaged recipe."""
    if name.endswith(".toml"):
        return True
    if Path(name).is_file():
        return False
    if name in packaged_recipes():
        return True
    if Path(name).suffix or Path(name).name != name or Path(name).is_dir() or has_magic(name):
        return False
    close = _REPLACED.get(name) or nearest(name, packaged_recipes())
    raise SettingError(
        f"{name!r} must be a recipe or a file; there is neither. "
        f"{f'Did you mean {close!r}? ' if close else ''}`regard recipes` lists them."
    )


def default_run(name: str) -> Path:
    """Run folder of a recipe or file where none is named: ``runs/`` and the stem."""
    path = Path(name)
    stem = path.parent.name if has_magic(path.name) else path.name
    return Path("runs") / (stem.partition(".")[0] or "run")
