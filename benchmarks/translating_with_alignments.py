"""What it costs to know, of every translated sentence, which words each word looked at.

    python -m benchmarks.translating_with_alignments [--rounds 5] [--run FOLDER] [--dry]

Multi30k's test set of 2016, German to English, by the recipe ``transformer-tiny``, greedy and with
a beam of 4, with ``attention=True`` and without it, in turn. The time is that of the processor.

A random model of that recipe does the same work as a trained one, as long as its outputs have real
lengths: it would hardly ever end one, so every output is cut at its longest length, set to 0.3
times the source's tokens and ten, which makes 14 tokens on average. ``--run`` takes a trained one.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.measuring import (
    TINY,
    Figure,
    alternate,
    corpora,
    machine,
    paired_ratio,
    sized,
    write_record,
)

# Tokens of an output for each of its source, beside ten.
RATIO = 0.3
AIM = 1.1


def main() -> None:
    """Measure, print, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Raw)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--run", type=Path, help="a trained run of German to English")
    parser.add_argument("--dry", action="store_true", help="few sentences, no record")
    arguments = parser.parse_args()
    started_on = machine()
    figures, details = measure(
        arguments.rounds,
        threads=arguments.threads,
        run=arguments.run,
        sentences=20 if arguments.dry else None,
    )
    for figure in figures:
        print(f"{figure.what}: {figure.ours}; {figure.beside}; {figure.note}")
    if not arguments.dry:
        write_record(
            "translating_with_alignments",
            title="Translating with alignments, against without",
            figures=figures,
            details=details,
            started_on=started_on,
        )


def measure(
    rounds: int,
    *,
    threads: int = 1,
    run: Path | None = None,
    sentences: int | None = None,
    report: Callable[[str], None] = print,
) -> tuple[list[Figure], dict[str, Any]]:
    """The figures of both searches, and what they were made from.

    Args:
        rounds: How often each side is measured.
        threads: Of torch.
        run: A trained run; None makes a random model.
        sentences: How many; None is all 1,000.
        report: Gets one line after each measurement.
    """
    import torch

    torch.set_num_threads(threads)
    predictor = make_predictor() if run is None else _load(run)
    sources = _lines("test_2016_flickr.de")[: sized(sentences, 4)]
    figures: list[Figure] = []
    details: dict[str, Any] = {"rounds": rounds, "threads": threads, "sentences": len(sources)}
    for name, beam_size in (("greedy", 1), ("beam of 4", 4)):
        translate = partial(predictor.translate, sources, beam_size=beam_size)
        found = translate(attention=True)
        samples = alternate(
            {
                "without": partial(_seconds, translate),
                "with": partial(_seconds, partial(translate, attention=True)),
            },
            rounds,
            report=report,
        )
        ratio = paired_ratio(samples["with"], samples["without"])
        length = sum(len(best.tokens) for best, *_ in found) / len(found)
        difference = _difference(predictor, found[:: max(1, len(found) // 50)])
        figures.append(
            Figure(
                what=f"Translating Multi30k's test set with alignments, {name}",
                ours=f"{ratio.median:.2f} × the time without, ±{ratio.relative:.0%}",
                beside=f"asked for: {AIM} ×",
                note=f"{len(sources):,} sentences, {length:.1f} tokens each; weights as of a "
                f"teacher-forced pass to {difference:.0e}; threads: {threads}",
            )
        )
        details[name] = {
            "seconds": samples,
            "ratio": ratio.table(),
            "tokens": length,
            "largest_difference": difference,
            "model": "random, outputs cut" if run is None else "trained",
        }
    return figures, details


def make_predictor() -> Any:
    """The tiny Transformer with random weights, and the tokenizer of Multi30k."""
    import torch

    from benchmarks.training import shortened
    from regard.inference import Predictor
    from regard.tasks import read_recipe
    from regard.tasks.translation import TranslationTask
    from regard.text import train_pair_tokenizer

    path = Path(__file__).parent.parent / "src" / "regard" / "recipes" / "transformer-tiny.toml"
    recipe = read_recipe(path)
    recipe = replace(recipe, decoding=replace(recipe.decoding, max_ratio=RATIO))
    if TINY is not None:
        recipe = shortened(recipe)
    sides = (_lines(f"train.{language}.gz") for language in ("de", "en"))
    tokenizer = train_pair_tokenizer(*sides, recipe.tokenizer)
    torch.manual_seed(0)
    task = TranslationTask(recipe, tokenizer)
    return Predictor(task.build_model(), task)


def _load(run: Path) -> Any:
    from regard.inference import Predictor

    return Predictor.load(run)


def _lines(name: str) -> list[str]:
    from regard.text import read_lines

    return [line.text for line in read_lines(corpora() / "multi30k" / name)]


def _seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def _difference(predictor: Any, found: list[Any]) -> float:
    """The largest distance of an alignment's weights from those of a look at its sentence."""
    return max(
        float((best.alignment.weights - look.cross()[: len(best.tokens)]).abs().max())
        for best, *_ in found
        for look in [predictor.attention(best.source, best.tokens)]
        if best.tokens
    )


class _Raw(argparse.RawDescriptionHelpFormatter):
    """The module's text as it is written."""


if __name__ == "__main__":
    main()
