"""A fast translator beside its teacher: quality and tokens a second.

    python -m benchmarks.fast_translators --work W [--minutes 12] [--rounds 5] [--threads 1] [--dry]

On Tatoeba zh→en and Multi30k en→de, by the recipes that come with the package and with the same
CPU minutes each: ``transformer-tiny``, the teacher; ``transformer-fast``, the student, which learns
what the teacher writes; and the same model on people's translations. The time in which the teacher
translates the training text is not counted. The test sets are read once, after training; each side
translates them from text to text, in turn, with the search of its recipe and with others.

Run again after an interruption, it goes on where it was.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks import chinese_english, measuring, multi30k
from benchmarks.equal_budgets import argument_parser, folder_name, train_for
from regard.cli.recipes import packaged_recipe
from regard.inference import Predictor
from regard.metrics import bleu
from regard.tasks import read_recipe
from regard.text import Pair

NAME = "fast_translators"
TEACHER, STUDENT, ALONE = "teacher", "student", "the student's model without a teacher"
RECIPES = {TEACHER: "transformer-tiny", STUDENT: "transformer-fast", ALONE: "transformer-fast"}
GREEDY, BEAM = "greedy", "a beam of 5"
SEARCHES: dict[str, dict[str, Any]] = {
    GREEDY: {"method": "greedy"},
    BEAM: {"method": "beam", "beam_size": 5},
}
# Who translates how; the first is what the others stand beside.
SIDES = ((TEACHER, BEAM), (TEACHER, GREEDY), (STUDENT, GREEDY), (STUDENT, BEAM), (ALONE, GREEDY))


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """A corpus.

    Attributes:
        title: What it is, in words.
        data: The ``[data]`` table, given the folder of corpora.
        test: The pairs to test on, given the same.
    """

    title: str
    data: Callable[[Path], Mapping[str, Any]]
    test: Callable[[Path], list[Pair]]


def _multi30k_data(corpora: Path) -> Mapping[str, Any]:
    found: Mapping[str, Any] = multi30k.recipe_table(corpora, 1, 1)["data"]
    return found


WORKS = {
    "cmn-eng": Work(
        title="Tatoeba zh→en",
        data=chinese_english.data_table,
        test=lambda corpora: chinese_english.read_split(corpora, "test.tsv"),
    ),
    "multi30k": Work(
        title="Multi30k en→de, test 2016",
        data=_multi30k_data,
        test=lambda corpora: multi30k.read_test(corpora, multi30k.TESTS[0]),
    ),
}


def recipe_table(
    system: str, data: Mapping[str, Any], minutes: float, teacher: Path
) -> dict[str, Any]:
    """The recipe of a system, which ends after so many minutes.

    Args:
        system: A name in ``RECIPES``.
        data: The ``[data]`` table.
        minutes: CPU minutes of training.
        teacher: The run of the teacher.
    """
    table: dict[str, Any] = dict(read_recipe(packaged_recipe(RECIPES[system])).table())
    table["data"] = dict(data)
    table["tokenizer"] = {**table["tokenizer"], "may_shrink": True}
    training = {k: v for k, v in table["training"].items() if k not in ("epochs", "patience")}
    table["training"] = {
        **training,
        "minutes": minutes,
        "batch_tokens": 2048,
        "schedule": "linear",
        "validation_pairs": 0,
        "keep": 3,
    }
    # What has learned nothing writes nothing, and so teaches nothing.
    table["decoding"] = {**table["decoding"], "min_length": measuring.sized(0, 3)}
    if system == STUDENT:
        table["training"]["distill"] = str(teacher.resolve())
    return table


def translated(predictor: Predictor, search: str, pairs: Sequence[Pair]) -> tuple[list[str], float]:
    """The best translation of each pair's source, and tokens a second, ends counted."""
    decoding = predictor.decoding.changed(**SEARCHES[search])
    begin = time.perf_counter()
    found = predictor.translate([pair.source for pair in pairs], decoding=decoding)
    seconds = time.perf_counter() - begin
    tokens = sum(len(best.tokens) + 1 for best, *_ in found)
    return [best.text for best, *_ in found], tokens / seconds


def measured(
    predictors: Mapping[str, Predictor], pairs: Sequence[Pair], rounds: int
) -> list[dict[str, Any]]:
    """BLEU and tokens a second of each side."""
    outputs: dict[str, list[str]] = {}

    def speed(name: str, system: str, search: str) -> float:
        outputs[name], tokens = translated(predictors[system], search, pairs)
        return round(tokens, 1)

    for predictor in predictors.values():
        predictor.warm_up()
    sides = {f"{system}, {search}": (system, search) for system, search in SIDES}
    samples = measuring.alternate(
        {name: partial(speed, name, *side) for name, side in sides.items()}, rounds
    )
    (first, *_), references = sides, [pair.references for pair in pairs]
    found = []
    for name, speeds in samples.items():
        score = bleu(outputs[name], references, resamples=1000)
        found.append(
            {
                "side": name,
                "bleu": score.to_dict(),
                "margin": score.margin,
                "tokens_a_second": measuring.Spread.of(speeds).table(),
                "times_as_fast": measuring.paired_ratio(speeds, samples[first]).table(),
                "outputs": [
                    {"source": p.source, "reference": p.target, "output": o}
                    for p, o in list(zip(pairs, outputs[name], strict=True))[::100]
                ],
            }
        )
    return found


def figures(work: Work, found: Sequence[Mapping[str, Any]], count: int) -> list[measuring.Figure]:
    """A line of docs/measured.md for each side."""
    first = found[0]
    return [
        measuring.Figure(
            what=f"{work.title}, BLEU and tokens a second: {each['side']}",
            ours=f"{each['bleu']['value']:.2f} ± {each['margin'] or 0:.2f}, "
            f"{each['tokens_a_second']['median']:,.0f} tokens/s",
            beside=f"{first['side']}: {first['bleu']['value']:.2f}, "
            f"{first['tokens_a_second']['median']:,.0f} tokens/s",
            note=f"{each['times_as_fast']['median']:.2f} × ± "
            f"{each['times_as_fast']['relative']:.0%} as fast; {count:,} sentences",
        )
        for each in found
    ]


def main() -> None:
    """Train all on both corpora, measure them, write the record."""
    parser = argument_parser(__doc__ or "", minutes=12)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=list(WORKS), default=list(WORKS))
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    before, corpora = measuring.machine(), measuring.corpora()
    details: dict[str, Any] = {"cpu_minutes": arguments.minutes, "threads": arguments.threads}
    lines: list[measuring.Figure] = []
    for name in arguments.only:
        work, home = WORKS[name], arguments.work / name
        predictors, training = {}, {}
        for system in RECIPES:
            table = recipe_table(
                system, work.data(corpora), arguments.minutes, home / folder_name(TEACHER)
            )
            predictors[system], training[system] = train_for(table, home / folder_name(system))
        pairs = work.test(corpora)
        found = measured(predictors, pairs, arguments.rounds)
        details[name] = {"training": training, "sides": found}
        lines += figures(work, found, len(pairs))
    print(*lines, sep="\n")
    if arguments.dry or set(arguments.only) != set(WORKS):
        return
    measuring.write_record(
        NAME,
        title="Fast translators beside their teachers",
        figures=lines,
        details=details,
        started_on=before,
    )


if __name__ == "__main__":
    main()
