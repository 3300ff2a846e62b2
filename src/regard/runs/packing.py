"""Writing a finished run into one file, a bundle: the files that its use takes, and a README."""

import shutil
import zipfile
from copy import deepcopy
from pathlib import Path
from typing import cast

import torch

from regard.config import JsonValue, write_toml
from regard.files import new_file
from regard.runs.bundle import README
from regard.runs.card import CARD_FILE, CHECKSUMS, RECIPE_FILE, tokenizer_files
from regard.runs.checkpoints import MODEL_FILE
from regard.runs.files import checksum, seal
from regard.runs.run import TOKENIZER, Run
from regard.runs.state import converted, pack_tensors
from regard.tasks import RecipeTable

# So that the same run is the same file whenever it is packed: the first moment zip knows.
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


def pack(run: Run, bundle: str | Path, *, readme: str, dtype: torch.dtype | None = None) -> None:
    """Write a finished run, and a README, into a file that ``Run.open`` takes.

    Its recipe has the settings that training ended with, and files without their folders.

    Args:
        run: The run.
        bundle: The file.
        readme: Its README, in Markdown.
        dtype: Of the weights in it; None leaves them as they are.

    Raises:
        RunError: It has not finished, is damaged, or the disk is full or refuses.
    """
    run.check_finished()
    weights = run.load_model()
    parts = pack_tensors(weights if dtype is None else converted(weights, dtype))
    recipe = write_toml(_of_no_machine(run.recipe)).encode()
    changed = {"recipe": checksum(recipe), "model": checksum(*parts), "changes": []}
    written = {
        README: readme.encode(),
        RECIPE_FILE: recipe,
        CARD_FILE: seal({**run.card, **changed}),
        MODEL_FILE: b"".join(parts),
    }
    listed = tokenizer_files(run.tokenizer_folder, run.card.get("tokenizer"))
    with new_file(Path(bundle)) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name, content in written.items():
            archive.writestr(zipfile.ZipInfo(name, _LONG_AGO), content)
        for name in sorted((*listed, CHECKSUMS)):
            path = run.tokenizer_folder / name
            member = zipfile.ZipInfo(f"{TOKENIZER}/{name}", _LONG_AGO)
            member.file_size = path.stat().st_size
            with path.open("rb") as source, archive.open(member, "w") as target:
                shutil.copyfileobj(source, target)


def without_folders(names: JsonValue) -> JsonValue:
    """Names of files without the folders of whoever trained; other values as they are.

    Example:
        >>> without_folders(["/home/mary/pairs.tsv", "more.tsv"]), without_folders("hf:mary/bert")
        (['pairs.tsv', 'more.tsv'], 'hf:mary/bert')
    """
    if isinstance(names, list):
        return [without_folders(name) for name in names]
    if not isinstance(names, str) or names.startswith("hf:"):  # of the Hub, not of a machine
        return names
    return Path(names).name


def _of_no_machine(recipe: RecipeTable) -> RecipeTable:
    """The recipe with the names of its files, and of the run it began from, without folders."""
    table = deepcopy(recipe)
    for section, names in (("data", ("train", "valid", "test")), ("training", ("pretrained",))):
        settings = cast(dict[str, JsonValue], table.get(section, {}))
        settings |= {name: without_folders(settings[name]) for name in names if name in settings}
    return table
