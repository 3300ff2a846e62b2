"""What ``regard predict --score`` does: how likely given outputs are."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from regard.cli.oddities import Oddities
from regard.cli.output import say

if TYPE_CHECKING:
    from regard.inference import Predictor
    from regard.tasks import DecodingConfig


def score_lines(
    predictor: "Predictor",
    file: Path | None,
    decoding: "DecodingConfig",
    *,
    output_format: str,
    on_bad_line: str,
) -> None:
    """Print the score of each pair of a file or of stdin, as soon as there is one.

    Args:
        predictor: The model in use.
        file: Pairs in columns, or JSON objects if it ends in .jsonl; None is stdin, in columns.
        decoding: For its length penalty.
        output_format: ``text`` or ``jsonl``.
        on_bad_line: Whether a line that cannot be scored stops, or leaves its score empty.
    """
    from regard.inference.filtering import groups_of
    from regard.inference.pair_scoring import scored_lines

    groups, name, ending = groups_of(file)
    oddities = Oddities("Its score is left empty.")
    scored = scored_lines(
        predictor,
        groups,
        name=name,
        ending=ending,
        skip_bad_lines=on_bad_line == "skip",
        length_penalty=decoding.length_penalty,
    )
    for group in scored:
        for pair in group:
            oddities.see(pair.problem)
            say(
                json.dumps(pair.to_dict(), ensure_ascii=False)
                if output_format == "jsonl"
                else pair.text()
            )
        sys.stdout.flush()
    oddities.end()
