"""``regard data``: look at a corpus before training on it."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from regard.cli.output import note, preparing_bar, progress_bar, say
from regard.cli.recipes import packaged_recipes
from regard.errors import SettingError

if TYPE_CHECKING:
    from regard.tasks import Recipe
    from regard.tasks.checking import CheckReport

data = App(
    name="data",
    help="Look at a corpus before training on it.",
    help_format="markdown",
    default_parameter=Parameter(negative=()),
)

Files = Annotated[tuple[str, ...], Parameter(consume_multiple=True)]
Columns = Annotated[tuple[int, ...], Parameter(consume_multiple=True)]


@data.command
def check(
    *files: str,
    valid: Files = (),
    test: Files = (),
    columns: Columns = (),
    run: Path | None = None,
    examples: int = 3,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Find what spoils a training, before it takes hours.

    Example: `regard data check train.tsv --test test.tsv`

    Example: `regard data check reviews.toml`

    Counts, lengths, lines that cannot be read, overlap of training and test, wrong encodings, sides
    that are exchanged, characters that the tokenizer would lose. The exit status is 1 if there are
    problems, marked with !. Of a recipe of another task than translation: counts and lengths, how
    often each label occurs, labels that training does not have, texts that repeat, contradict or
    are in test too.

    Args:
        files: The training text: one .tsv or .jsonl file, two files of lines, a recipe by name or
            path, or phrasebook. A recipe that names no files is followed by them.
        valid: The validation text, in the same forms.
        test: The test text, in the same forms.
        columns: Columns of source, target and further references in a .tsv file, from 1.
        run: A run, whose tokenizer is asked for lengths and lost characters.
        examples: Examples shown of each finding.
        as_json: Print one JSON object instead.
    """
    from regard.checks import check_at_least
    from regard.runs import Run
    from regard.tasks import TASKS
    from regard.text import load_pair_tokenizer
    from regard.text.checking import STEPS

    check_at_least("examples", examples, 0)
    recipe = _recipe_of_task(files, valid, test, columns, run)
    if recipe is None:
        recipe = _recipe(files, valid=valid, test=test, columns=columns)
    tokenizer = None if run is None else load_pair_tokenizer(Run.open(run).tokenizer_folder)
    with progress_bar("checking", lambda: STEPS) as advance:
        report = TASKS[recipe.task].task.check(
            recipe, examples=examples, tokenizer=tokenizer, progress=advance
        )
    return _say(report, as_json)


def _say(report: "CheckReport", as_json: bool) -> int:
    if as_json:
        say(json.dumps(report.to_dict(), ensure_ascii=False))
    else:
        for line in report.lines():
            say(line)
    return 1 if report.problems else 0


def _recipe_of_task(
    files: Sequence[str],
    valid: Sequence[str],
    test: Sequence[str],
    columns: Sequence[int],
    run: Path | None,
) -> "Recipe | None":
    """The recipe that is named, where it is of another task than translation."""
    from regard.cli.train import find_recipe

    if not files or not _is_recipe(files[0]) or files[0] == "phrasebook":
        return None
    splits = {"valid": valid, "test": test}
    settings = [
        f"data.{name}={[str(Path(file).resolve()) for file in given]}"
        for name, given in splits.items()
        if given
    ]
    recipe = find_recipe(files, settings)
    if recipe.task == "translation":
        return None
    for option, value in {"--columns": columns, "--run": run}.items():
        if value:
            raise SettingError(f"{option} must go with sentence pairs; got it with {files[0]}.")
    if hasattr(recipe.data, "on_bad_line"):
        recipe = replace(recipe, data=replace(recipe.data, on_bad_line="skip"))
    return recipe


@data.command
def sample(
    *files: str,
    number: Annotated[int, Parameter(name=["--number", "-n"])] = 10,
    split: str = "train",
    columns: Columns = (),
    seed: int = 0,
    on_bad_line: Literal["error", "skip"] = "error",
) -> None:
    """Print some sentence pairs at random, a tab between the two.

    Example: `regard data sample phrasebook -n 20`

    Args:
        files: One .tsv or .jsonl file, two files of lines, a recipe by name or path, or phrasebook.
        number: How many.
        split: Which part of a recipe's data or of the phrasebook: train, valid, test, new.
        columns: Columns of source and target in a .tsv file, from 1.
        seed: Another one draws other pairs.
        on_bad_line: What to do about lines that cannot be read: stop, or leave them out.
    """
    from regard.checks import check_at_least
    from regard.choices import choose
    from regard.tasks.translation import TranslationTask

    check_at_least("number", number, 1)
    recipe = _recipe(files, columns=columns, on_bad_line=on_bad_line)
    splits = ("train", "valid", "test", *(["new"] if recipe.uses_phrasebook else []))
    choose("split", split, dict.fromkeys(splits))
    pairs = TranslationTask.read(recipe, split, merge=False)
    if not pairs:
        raise SettingError(f"split must be one the data has; got {split!r}, for which it has none.")
    for pair in random.Random(seed).sample(pairs, min(number, len(pairs))):
        say("\t".join([pair.source, *pair.references]))


@data.command
def encode(
    *what: str,
    settings: Annotated[tuple[str, ...], Parameter(name="--set", show_default=False)] = (),
    processes: int | None = None,
    cache: Path | None = None,
) -> None:
    """Encode a text that does not fit into memory, before it is trained on.

    Example: `regard data encode transformer-base 'shards/*.tsv.gz' --processes 8`

    What it writes is found by each training of the same text, tokenizer and settings whose text is
    on disk: from a gigabyte on, or with training.corpus = "disk". Killed, it goes on where it was.

    Args:
        what: A recipe by name or path, and files that it is to be trained on, as for train.
        settings: A setting over the recipe's; may be given often.
        processes: How many work at it; by default as many as there are processors.
        cache: Where it is kept, over the recipe's training.cache; by default in the user's cache.
    """
    from regard.checks import check_at_least
    from regard.cli.train import find_recipe

    check_at_least("processes", 1 if processes is None else processes, 1)
    extra = [] if cache is None else [f"training.cache={cache.resolve()}"]
    recipe = find_recipe(what, [*settings, *extra])
    from regard.training.corpora.place import is_on_disk
    from regard.training.corpora.preparing import encode_ahead

    text, stored = encode_ahead(recipe, processes=processes, watch=preparing_bar)
    say(f"{text.key}\t{len(stored)} samples\t{text.folder}")
    if recipe.training.get("corpus") != "disk" and not is_on_disk(recipe, "auto"):
        note("a text as small as this is trained from memory; set training.corpus=disk to use it")


@data.command
def cached(*, delete: str | None = None, cache: Path | None = None) -> None:
    """List the texts that are encoded in the cache, that used last first, or delete one.

    Example: `regard data cached --delete 4e3b04630c823ab5`

    Args:
        delete: The name of a text to delete, as the list has it; or all.
        cache: Where they are; by default in the user's cache.
    """
    from regard.training.corpora.cache import cached_texts, delete_cached

    texts = cached_texts(cache)
    if delete is None:
        for text in texts:
            used = datetime.fromtimestamp(text.used).strftime("%Y-%m-%d %H:%M")
            state = f"{text.samples:,} samples" if text.is_whole else "not yet whole"
            files = ", ".join(text.files[:2]) + (", …" if len(text.files) > 2 else "")
            say(f"{text.key}\t{text.size / 1e6:,.1f} MB\t{state}\t{used}\t{files}")
        return
    for key in [text.key for text in texts] if delete == "all" else [delete]:
        text = delete_cached(key, cache)
        note(f"deleted {text.key}: {text.size / 1e6:,.1f} MB")


def _recipe(
    files: Sequence[str],
    *,
    valid: Sequence[str] = (),
    test: Sequence[str] = (),
    columns: Sequence[int] = (),
    on_bad_line: str = "skip",
) -> "Recipe":
    """A recipe that reads these files; one named among them, with the options over it."""
    from regard.cli.train import find_recipe
    from regard.tasks import recipe_from_table

    if not files:
        raise SettingError(
            "files must name sentence pairs; got nothing. Try phrasebook, the built-in ones."
        )
    table: dict[str, object] = {"on_bad_line": on_bad_line}
    if columns:
        table["columns"] = list(columns)
    table |= {name: _absolute(side) for name, side in (("valid", valid), ("test", test)) if side}
    if len(files) == 1 and _is_recipe(files[0]):
        recipe = find_recipe(files)
        if not any(recipe.named(split) for split in ("train", "valid", "test")):
            raise SettingError(
                f"{files[0]} must name sentence pairs in [data]; got none. Name the files instead."
            )
        return recipe_from_table({"data": {**recipe.table()["data"], **table}})
    return recipe_from_table({"data": {"train": _absolute(files), **table}})


def _is_recipe(name: str) -> bool:
    """Whether ``name`` is a recipe's; a file of that name goes over one that comes with regard."""
    return name.endswith(".toml") or (name in packaged_recipes() and not Path(name).is_file())


def _absolute(files: Sequence[str]) -> str | list[str]:
    if list(files) == ["phrasebook"]:
        return "phrasebook"
    return [str(Path(name)) for name in files]
