"""Whether one system is better than another, or was only lucky with these sentences."""

from collections.abc import Callable, Sequence
from functools import partial

from regard.checks import check_count
from regard.errors import DataError
from regard.metrics.corpus import bleu_metric
from regard.metrics.rouge import sentence_rouge_l, sentence_rouge_n, signature_of
from regard.metrics.score import (
    SEED,
    References,
    SystemComparison,
    check_texts,
    draw,
    streams,
    swapped,
)


def compare(
    first: Sequence[str],
    second: Sequence[str],
    references: References,
    *,
    target_language: str | None = None,
    trials: int = 10_000,
) -> list[SystemComparison]:
    """How two systems differ in BLEU and chrF, and how likely chance alone makes them differ.

    The two outputs of each sentence are swapped at random (Riezler and Maxwell, 2005), two-sided.
    Equal figures give a p-value of 1. (sacrebleu gives two identical systems its smallest one.)

    Args:
        first: Outputs of the one, often the baseline.
        second: Outputs of the other, in the same order.
        references: One right answer of each sentence, or several; their number may differ.
        target_language: Code of their language, as in `bleu`.
        trials: How often chance is tried; fewer times for a corpus over 2,000 sentences.

    Raises:
        DataError: The two do not have one output for each sentence.

    Example:
        >>> right = [f"the king had {n} sons" for n in range(20)]
        >>> _, chrf = compare(["the king"] * 20, right, right, trials=99)
        >>> chrf.name, chrf.second, chrf.p_value
        ('chrF2', 100.0, 0.01)
    """
    check_count("trials", trials)
    check_texts("first", first)
    check_texts("second", second)
    if len(first) != len(second):
        raise DataError(
            "second must have one output for each of the first; "
            f"got {len(first)} and {len(second)} outputs."
        )
    from sacrebleu.metrics.chrf import CHRF

    metrics = {
        "bleu": bleu_metric(first, references, target_language),
        "chrf": CHRF(references=streams(first, references)),
    }
    results = draw({"first": first, "second": second}, metrics, "ar", trials)
    return [
        SystemComparison(
            name=name,
            first=float(ours.score),
            second=float(theirs.score),
            p_value=1.0 if theirs.score == ours.score else float(theirs.p_value or 1.0),
            signature=signature,
        )
        for name, (signature, (ours, theirs)) in results.items()
    ]


def compare_rouge(
    first: Sequence[str], second: Sequence[str], references: References, *, trials: int = 10_000
) -> list[SystemComparison]:
    """How two systems differ in ROUGE-L, -1 and -2, by swaps; arguments are those of `compare`.

    Example:
        >>> right = [f"the king had {n} sons" for n in range(20)]
        >>> print(compare_rouge(["the king"] * 20, right, right, trials=999)[0])
        ROUGE-L 57.14 → 100.00 (+42.86, p = 0.0010; nrefs:1|case:lc|stem:no|F1|ar:999|seed:12345)
    """
    ways: dict[str, Callable[[Sequence[str], References], list[float]]] = {
        "ROUGE-L": sentence_rouge_l,
        "ROUGE-1": partial(sentence_rouge_n, n=1),
        "ROUGE-2": partial(sentence_rouge_n, n=2),
    }
    check_count("trials", trials)
    comparisons = []
    for name, way in ways.items():
        ours, theirs = way(first, references), way(second, references)
        comparisons.append(
            SystemComparison(
                name=name,
                first=sum(ours) / len(ours),
                second=sum(theirs) / len(theirs),
                p_value=swapped(ours, theirs, trials),
                signature=f"{signature_of(references)}|ar:{trials}|seed:{SEED}",
            )
        )
    return comparisons
