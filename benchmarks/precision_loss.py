"""What int8 and shortlists cost of a translator's quality, and what they save of its time.

    python -m benchmarks.precision_loss CORPUS=RUN … [--rounds 3] [--threads 1] [--dry]

For example ``multi30k=W/multi30k/teacher cmn-eng=W/cmn-eng/student``, where ``W`` is the folder of
``benchmarks.fast_translators``. Of each run: BLEU on the corpus' test set, in float32 and int8,
with lists of several lengths and with all pieces, beside float32 with all pieces, and how likely
chance alone makes such a difference. All ways translate the set in turn, by the recipe's search.
The runs are only read: shortlists are learned anew.
"""

import argparse
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks import measuring
from benchmarks.fast_translators import WORKS
from regard.inference import Predictor
from regard.metrics import bleu, compare
from regard.models.shortlist import Shortlist
from regard.text import BadLines, Pair
from regard.training.shortlisting import learned, tried

NAME = "precision_loss"
PRECISIONS = ("float32", "int8")
# Target pieces of each source piece; None is all pieces.
LISTS: tuple[int | None, ...] = measuring.sized((None, 100, 50, 25), (None, 5))
FREQUENT = 100
FIRST = "float32"


def side_of(precision: str, per_piece: int | None) -> str:
    """What a way of translating is called."""
    return precision if per_piece is None else f"{precision}, lists of {per_piece} a piece"


def predictors_of(run: Path) -> tuple[dict[str, Predictor], dict[str, Any]]:
    """Every way of translating with a run, and what its lists are like."""
    plain = Predictor.load(run)
    task = plain.sequence_task
    parts = task.read_parts(plain.recipe)
    corpus, held_out = (
        task.encode_corpus(pairs, BadLines()) for pairs in (parts.train, parts.valid)
    )
    lists: dict[int | None, Shortlist | None] = {
        size: None
        if size is None
        else learned(corpus, task.tokenizer, per_piece=size, frequent=FREQUENT)
        for size in LISTS
    }
    told = {
        str(size): str(tried(each, held_out)) for size, each in lists.items() if each is not None
    }
    found = {}
    for precision in PRECISIONS:
        loaded = Predictor.load(run, precision=precision)
        for size, each in lists.items():
            found[side_of(precision, size)] = Predictor(loaded.model, task, shortlist=each)
    return found, told


def measured(
    predictors: Mapping[str, Predictor], pairs: Sequence[Pair], rounds: int
) -> list[dict[str, Any]]:
    """BLEU and tokens a second of each way."""
    outputs: dict[str, list[str]] = {}

    def speed(name: str) -> float:
        begin = time.perf_counter()
        found = predictors[name].translate([pair.source for pair in pairs])
        seconds = time.perf_counter() - begin
        outputs[name] = [best.text for best, *_ in found]
        return round(sum(len(best.tokens) + 1 for best, *_ in found) / seconds, 1)

    for predictor in predictors.values():
        predictor.warm_up()
    samples = measuring.alternate({name: partial(speed, name) for name in predictors}, rounds)
    references = [pair.references for pair in pairs]
    found = []
    for name, speeds in samples.items():
        ((duel),) = compare(outputs[FIRST], outputs[name], references, metrics=("bleu",))
        found.append(
            {
                "side": name,
                "bleu": bleu(outputs[name], references).to_dict(),
                "change": round(duel.second - duel.first, 3),
                "p_value": duel.p_value,
                "same": sum(a == b for a, b in zip(outputs[FIRST], outputs[name], strict=True)),
                "tokens_a_second": measuring.Spread.of(speeds).table(),
                "times_as_fast": measuring.paired_ratio(speeds, samples[FIRST]).table(),
            }
        )
    return found


def figures(title: str, found: Sequence[Mapping[str, Any]], count: int) -> list[measuring.Figure]:
    """A line of docs/measured.md for each way but the first."""
    first, *others = found
    return [
        measuring.Figure(
            what=f"{title}, BLEU: {each['side']}",
            ours=f"{each['bleu']['value']:.2f} ({each['change']:+.2f}, p = {each['p_value']:.2f})",
            beside=f"{first['side']}: {first['bleu']['value']:.2f}",
            note=f"{each['same']:,} of {count:,} translations the same; "
            f"{each['times_as_fast']['median']:.2f} × ± "
            f"{each['times_as_fast']['relative']:.0%} as fast",
        )
        for each in others
    ]


def main() -> None:
    """Translate with every run in every way, and write the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="+", metavar="CORPUS=RUN")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dry", action="store_true", help="write no record")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    before = measuring.machine()
    details: dict[str, Any] = {"threads": arguments.threads, "frequent": FREQUENT}
    lines: list[measuring.Figure] = []
    for said in arguments.runs:
        corpus, _, run = said.partition("=")
        work, pairs = WORKS[corpus], WORKS[corpus].test(measuring.corpora())
        predictors, told = predictors_of(Path(run).resolve())
        found = measured(predictors, pairs, arguments.rounds)
        title = f"{work.title}, {Path(run).name}"
        details[title] = {"lists": told, "sides": found}
        lines += figures(title, found, len(pairs))
    print(*lines, sep="\n")
    if not arguments.dry:
        measuring.write_record(
            NAME,
            title="What int8 and shortlists cost of translators' quality",
            figures=lines,
            details=details,
            started_on=before,
        )


if __name__ == "__main__":
    main()
