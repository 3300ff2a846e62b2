"""``regard data``: look at a corpus before training on it."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from regard.cli.jobs import Arguments, Files, parse_arguments, task_of, typed_options
from regard.cli.options import OPTIONS
from regard.cli.output import as_typed_paths, say
from regard.config import JsonValue, parse_settings
from regard.errors import SettingError
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


@data.command
def check(
    *files: str,
    valid: Files = (),
    test: Files = (),
    settings: Annotated[tuple[str, ...], Parameter(name="--set", show_default=False)] = (),
    encoding: str | None = None,
    examples: int = 3,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Find faults of training text, before training takes hours.

    Example: `regard data check train.tsv --test test.tsv`

    Example: `regard data check reviews.toml`

    Counts, lengths, lines that cannot be read, overlap of training and test, wrong encodings, sides
    that are exchanged, how often each label occurs, labels that training does not have, texts that
    repeat or contradict each other. The exit status is 1 if there are problems, marked with !.

    Args:
        files: The training text: a file, whose task is inferred; two files of lines;
            a recipe by name or path, which files may follow; or phrasebook.
        valid: The validation text, in the same forms.
        test: The test text, in the same forms.
        settings: A setting over the recipe's, such as data.text=review; may be given often.
        encoding: Encoding of text that is not UTF-8, such as gbk, big5, cp1252 or utf-16; by
            default GB18030, Windows-1252 and UTF-16 are recognised.
        examples: Examples shown of each finding.
        as_json: Print one JSON object instead.
    """
    from regard.checks import check_at_least
    from regard.text.reading.encodings import encoded_as
    from regard.training.start import check as check_text

    check_at_least("examples", examples, 0)
    with encoded_as(encoding):
        arguments = parse_arguments(files)
        over = {**file_settings("valid", valid), **file_settings("test", test)}
        options = typed_options(valid=valid, test=test, settings=settings, encoding=encoding)
        recipe = _recipe(arguments, {**over, **parse_settings(settings)}, options)
        with encoded_as(recipe.encoding):
            report = check_text(recipe, examples=examples)
    text = (
        json.dumps(report.to_dict(), ensure_ascii=False) if as_json else "\n".join(report.lines())
    )
    say(text if as_json else as_typed_paths(text, [*files, *valid, *test]))
    return 1 if report.problems else 0


def _recipe(
    arguments: Arguments, over: Mapping[str, JsonValue], options: Sequence[str]
) -> "Recipe":
    """The recipe that reads these files, or the one named among them."""
    if not arguments.name:
        raise SettingError(
            "files must name text; got nothing. Try phrasebook, the built-in sentence pairs."
        )
    recipe, files = arguments
    if recipe is None and list(files) != [PHRASEBOOK] and not are_pairs(files, over):
        task = task_of(files, over, "data check", options)
        recipe, over = task.recipe, {**task.settings, **over}
    if recipe is None:  # sentence pairs, which are read to choose one
        over = {**over, "data.on_bad_line": "skip"}
    resolved = resolve({} if list(files) == [PHRASEBOOK] else recipe, files, over)
    if not resolved.uses_phrasebook and not any(map(resolved.named, ("train", "valid", "test"))):
        raise SettingError(
            f"{recipe} must name text in [data]; got none. Name the files behind it."
        )
    return resolved
