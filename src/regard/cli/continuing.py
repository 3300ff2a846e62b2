"""``regard predict`` with a language model: continue lines of text."""

import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from regard.cli.decoding_options import DecodingOptions
from regard.cli.oddities import Oddities
from regard.cli.output import say
from regard.errors import DataError
from regard.layers.choices import Precision

# Prompts that are gone on with side by side.
_AT_ONCE = 32

if TYPE_CHECKING:
    from regard.inference.generator import Generator
    from regard.tasks import DecodingConfig
    from regard.text import Line


def is_run_of_language_model(run: Path) -> bool:
    """Whether a run is one that continues texts."""
    from regard.runs import Run

    return Run.open(run).task == "language_modelling"


def continue_lines(
    run: Path,
    files: Sequence[Path | None],
    options: DecodingOptions,
    *,
    n_best: int | None,
    output_format: str,
    on_bad_line: str,
    precision: Precision,
    device: str,
) -> None:
    """Each line of files or of stdin and what follows it; of stdin, one answer as it is written.

    Args:
        run: The run folder.
        files: Prompts, one a line, or at "text" of JSON objects in .jsonl; None is stdin.
        options: How to search, over what the recipe says.
        n_best: Continuations of each.
        output_format: ``text``, the prompt and its continuation; or ``jsonl``.
        on_bad_line: Whether a line that cannot be read stops, or is left without a continuation.
        precision: What weights are kept in.
        device: Where it works.
    """
    from regard.inference.generator import Generator

    continuer = Generator.load(run, precision=precision, device=device, setting="--device")
    changes = options.given() | ({} if n_best is None else {"n_best": n_best})
    decoding = continuer.decoding.changed(**changes)
    for file in files:
        _continue_file(
            continuer, file, decoding, output_format=output_format, on_bad_line=on_bad_line
        )


def _continue_file(
    continuer: "Generator",
    file: Path | None,
    decoding: "DecodingConfig",
    *,
    output_format: str,
    on_bad_line: str,
) -> None:
    """Continue the lines of one file or of stdin."""
    from regard.inference.filtering import asked, groups_of
    from regard.inference.generator import Continuations

    is_one = decoding.n_best == 1
    # Whoever types, or waits for each answer, sees it as it is written.
    is_streamed = is_one and decoding.method != "beam" and output_format == "text" and file is None
    groups, name, ending = groups_of(file)
    read = partial(_prompt, is_json=ending == ".jsonl")
    oddities = Oddities("Nothing follows it.")
    for group in asked(groups, read, name=name, skip_bad_lines=on_bad_line == "skip"):
        for first in range(0, len(group), _AT_ONCE):
            lines = group[first : first + _AT_ONCE]
            prompts = [line.content for line in lines if line.content is not None]
            found = iter([] if is_streamed else continuer.continuations_of(prompts, decoding))
            for line in lines:
                oddities.see(line.problem)
                if (prompt := line.content) is None:
                    say("{}" if output_format == "jsonl" else "\n")
                elif is_streamed:
                    say(prompt, end="")
                    for piece in continuer.stream(prompt, decoding):
                        say(piece, end="")
                        sys.stdout.flush()
                    say("\n")
                elif output_format == "jsonl":
                    written = Continuations(prompt, tuple(next(found)))
                    say(json.dumps(written.to_dict(), ensure_ascii=False))
                else:
                    for text in next(found):
                        say(f"{prompt}{text}\n")
            sys.stdout.flush()
    oddities.end()


def _prompt(line: "Line", *, is_json: bool) -> str:
    from regard.text.lines import readable
    from regard.text.records import object_of

    text = readable(line)
    if not is_json:
        return text
    prompt = object_of(text, line.where).get("text")
    if not isinstance(prompt, str):
        got = "none" if prompt is None else repr(prompt)
        raise DataError(f'{line.where}: text must be what to go on with; got {got}. Write "text".')
    return prompt
