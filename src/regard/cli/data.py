"""``regard data``: look at a corpus before training on it."""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from regard.cli.jobs import Arguments, Files, infer_task, parse_arguments
from regard.cli.options import OPTIONS
from regard.cli.output import refuse, say
from regard.config import JsonValue, assign, parse_settings
from regard.errors import SettingError
from regard.progress import progress
from regard.training.recipes.resolving import are_pairs, file_settings, resolve

if TYPE_CHECKING:
    from regard.tasks import Recipe

PHRASEBOOK = "phrasebook"

data = App(
    name="data",
    help="Look at a corpus before training on it.",
    help_format="markdown",
    default_parameter=OPTIONS,
)

Columns = Annotated[tuple[int | str, ...], Parameter(consume_multiple=True)]


@data.command
def check(
    *files: str,
    valid: Files = (),
    test: Files = (),
    columns: Columns = (),
    settings: Annotated[tuple[str, ...], Parameter(name="--set", show_default=False)] = (),
    run: Path | None = None,
    encoding: str | None = None,
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
        files: The training text: a file, of which it is guessed what it is for; two files of lines;
            a recipe by name or path, which files may follow; or phrasebook.
        valid: The validation text, in the same forms.
        test: The test text, in the same forms.
        columns: Columns of source, target and further references in a table: numbers from 1, or
            names in its header.
        settings: A setting over the recipe's, such as data.text=review; may be given often.
        run: A run, whose tokenizer is asked for lengths and lost characters.
        encoding: What text that is not UTF-8 is in, such as gbk, big5, cp1252 or utf-16; by default
            GB18030, Windows-1252 and UTF-16 are recognised.
        examples: Examples shown of each finding.
        as_json: Print one JSON object instead.
    """
    from regard.checks import check_at_least
    from regard.runs import Run
    from regard.tasks import TASKS
    from regard.text import load_pair_tokenizer
    from regard.text.checking import STEPS
    from regard.text.reading.encodings import encoded_as

    check_at_least("examples", examples, 0)
    with encoded_as(encoding):
        arguments = parse_arguments(files)
        recipe = _recipe(arguments, valid=valid, test=test, columns=columns, settings=settings)
        if recipe.task != "translation":
            options: dict[str, object] = {"--columns": columns, "--run": run}
            refuse(options, f"for {recipe.task}; it is for sentence pairs")
        tokenizer = None if run is None else load_pair_tokenizer(Run.open(run).tokenizer_folder)
        with encoded_as(recipe.encoding), progress("checking", STEPS) as advance:
            report = TASKS[recipe.task].task.check(
                recipe, examples=examples, tokenizer=tokenizer, progress=advance
            )
    text = (
        json.dumps(report.to_dict(), ensure_ascii=False) if as_json else "\n".join(report.lines())
    )
    say(text)
    return 1 if report.problems else 0


@data.command
def sample(
    *files: str,
    number: Annotated[int, Parameter(name=["--number", "-n"])] = 10,
    split: str = "train",
    columns: Columns = (),
    settings: Annotated[tuple[str, ...], Parameter(name="--set", show_default=False)] = (),
    seed: int = 0,
    on_bad_line: Literal["error", "skip"] = "error",
    encoding: str | None = None,
) -> None:
    """Print some examples at random, tabs between what is asked and what is right.

    Example: `regard data sample phrasebook -n 20`

    Args:
        files: One .tsv, .csv or .jsonl file, two files of lines, a recipe by name or path, or
            phrasebook.
        number: How many.
        split: Which part of a recipe's data or of the phrasebook: train, valid, test,
            new, everyday.
        columns: Columns of source and target in a table: numbers from 1, or names in its header.
        settings: A setting over the recipe's, such as data.text=review; may be given often.
        seed: Another one draws other examples.
        on_bad_line: What to do about lines that cannot be read: stop, or leave them out.
        encoding: What text that is not UTF-8 is in, such as gbk, big5, cp1252 or utf-16; by default
            GB18030, Windows-1252 and UTF-16 are recognised.
    """
    from regard.checks import check_at_least, choose
    from regard.text.reading.encodings import encoded_as

    check_at_least("number", number, 1)
    with encoded_as(encoding):
        arguments = parse_arguments(files)
        recipe = _recipe(
            arguments,
            columns=columns,
            settings=settings,
            on_bad_line=on_bad_line,
            verb="data sample",
        )
        splits = (
            "train",
            "valid",
            "test",
            *(["new", "everyday"] if recipe.uses_phrasebook else []),
        )
        choose("split", split, dict.fromkeys(splits))
        with encoded_as(recipe.encoding):
            examples = list(_examples(recipe, split))
    if not examples:
        raise SettingError(f"split must be one the data has; got {split!r}, for which it has none.")
    for example in random.Random(seed).sample(examples, min(number, len(examples))):
        say("\t".join(example))


def _examples(recipe: "Recipe", split: str) -> Iterator[list[str]]:
    """Inputs and right answers of a split's examples."""
    from regard.tasks import TASKS, OnePassTask
    from regard.tasks.sequences.translation import TranslationTask
    from regard.text import Pair

    task = TASKS[recipe.task].task
    read = partial(task.read, merge=False) if issubclass(task, TranslationTask) else task.read
    for example in read(recipe, split):
        if isinstance(example, Pair):
            yield [example.source, *example.references]
        elif issubclass(task, OnePassTask):
            checked = task.checked(example)
            right = [*filter(None, [" ".join(checked.labels)]), *checked.answers]
            yield [" ".join(part.split()) for part in (*checked.parts, *right)]


def _recipe(
    arguments: Arguments,
    *,
    valid: Sequence[str] = (),
    test: Sequence[str] = (),
    columns: Sequence[int | str] = (),
    settings: Sequence[str] = (),
    on_bad_line: str = "skip",
    verb: str = "data check",
) -> "Recipe":
    """A recipe that reads these files; one named among them, with the options over it."""
    if not arguments.name:
        raise SettingError(
            "files must name text; got nothing. Try phrasebook, the built-in sentence pairs."
        )
    over: dict[str, JsonValue] = {**file_settings("valid", valid), **file_settings("test", test)}
    if columns:
        over["data.columns"] = list(columns)
    over |= parse_settings(settings)
    recipe, files = arguments
    if list(files) == [PHRASEBOOK] and recipe is None:
        return _of_pairs({"data.train": PHRASEBOOK, **over}, on_bad_line)
    if recipe is None and not are_pairs(files, over):
        task = infer_task(files, verb)
        recipe, over = task.recipe, {**task.settings, **over}
    if recipe is None:
        return _of_pairs({**file_settings("train", files), **over}, on_bad_line)
    resolved = resolve(recipe, files, over)
    if not resolved.uses_phrasebook and not any(map(resolved.named, ("train", "valid", "test"))):
        raise SettingError(
            f"{recipe} must name text in [data]; got none. Name the files behind it."
        )
    data: Any = resolved.data
    if not hasattr(data, "on_bad_line"):
        return resolved
    return replace(resolved, data=replace(data, on_bad_line=on_bad_line))


def _of_pairs(settings: Mapping[str, JsonValue], on_bad_line: str) -> "Recipe":
    """A recipe of sentence pairs with no settings but those of its text."""
    from regard.tasks import recipe_from_table

    return recipe_from_table(assign({"data": {"on_bad_line": on_bad_line}}, settings))
