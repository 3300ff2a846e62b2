"""What ``regard predict`` does with a language model: it goes on with lines of text."""

import json
import sys
from pathlib import Path

from regard.cli.decoding_options import DecodingOptions
from regard.cli.output import say


def is_run_of_language_model(run: Path) -> bool:
    """Whether a run is one that continues texts."""
    from regard.inference import Run

    return Run.open(run).task == "language_modelling"


def continue_lines(
    run: Path,
    file: Path | None,
    options: DecodingOptions,
    *,
    n_best: int | None,
    output_format: str,
) -> None:
    """Each line of a file or of stdin and what follows it, written as it comes if one is asked for.

    Args:
        run: The run folder.
        file: Prompts, one a line; None is stdin.
        options: How to search, over what the recipe says.
        n_best: Continuations of each.
        output_format: ``text``, the prompt and its continuation; or ``jsonl``.
    """
    from regard.cli.jobs import lines_of
    from regard.inference.continuing import Continuer

    continuer = Continuer.load(run)
    asked = options.given() | ({} if n_best is None else {"n_best": n_best})
    decoding = continuer.recipe.decoding.changed(**asked)
    is_one = decoding.n_best == 1 and decoding.minimum_bayes_risk is None
    is_streamed = is_one and decoding.method != "beam" and output_format == "text"
    for line in lines_of(file):
        if is_streamed:
            sys.stdout.write(line.text)
            for piece in continuer.stream(line.text, decoding):
                sys.stdout.write(piece)
                sys.stdout.flush()
            say("\n")
            continue
        found = continuer.continuations(line.text, decoding)
        if output_format == "jsonl":
            say(json.dumps({"prompt": line.text, "continuations": found}, ensure_ascii=False))
        else:
            for text in found:
                say(f"{line.text}{text}\n")
        sys.stdout.flush()
