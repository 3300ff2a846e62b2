"""The quality of texts: figures beside right ones, by length, and ten outputs to read."""

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise

from regard import metrics
from regard.errors import DataError, SettingError
from regard.inference.evaluation.report import (
    Baseline,
    Bucket,
    OutputExample,
    TextReport,
    beside_baselines,
)
from regard.metrics import MetricScore, References
from regard.tasks.tables import Table

_SHOWN_AT_RANDOM = 4
# Lengths a bucket of sources ends at, in words or, for text without spaces, characters.
LENGTH_EDGES = (5, 10, 15, 20, 30, 40, 60)


def evaluate(
    hypotheses: Sequence[str],
    references: References,
    *,
    sources: Sequence[str] | None = None,
    languages: tuple[str | None, str | None] = (None, None),
    trivial: Mapping[str, Sequence[str]] | None = None,
    resamples: int = 1000,
    rouge: bool = False,
) -> TextReport:
    """BLEU, chrF and exact match, with intervals, baselines and tables.

    Where the second of the languages, that of targets, has spaces, BLEU is also given lower-cased,
    as many papers report it. Baselines are ``trivial`` outputs, by how they are made, or else the
    sources themselves. With ``rouge``, for summaries and answers, ROUGE comes before the other
    figures, and novel n-grams are counted.
    """
    check_sources(sources, hypotheses)
    right = metrics.answers(references)
    source_language, target_language = languages
    figures = partial(_figures, right, target_language, rouge=rouge)
    outputs = trivial_outputs(sources) if trivial is None else trivial

    def p_value(texts: Sequence[str]) -> float | None:
        return metrics.compare_rouge(texts, hypotheses, right)[0].p_value if rouge else None

    by_length: tuple[Bucket, ...] = ()
    if sources is not None:
        by_length = quality_by_length(
            hypotheses,
            right,
            sources,
            source_language=source_language,
            target_language=target_language,
        )
    scores = figures(hypotheses, resamples=resamples)
    baselines = tuple(
        Baseline(name=name, scores=figures(texts, resamples=0), p_value=p_value(texts))
        for name, texts in outputs.items()
    )
    main = {baseline.name: baseline.scores[0].value for baseline in baselines}
    return TextReport(
        count=len(hypotheses),
        scores=scores,
        baselines=baselines,
        beside=beside_baselines(scores[0].name, scores[0].value, main),
        by_length=by_length,
        outputs=_outputs_to_read(hypotheses, right, sources),
        tables=(ngram_table(hypotheses, right, sources),) if rouge and sources else (),
    )


def trivial_outputs(
    sources: Sequence[str] | None,
    training_targets: Iterable[str] = (),
    given: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Sequence[str]]:
    """Trivial outputs: the given or the sources themselves, and the most frequent target."""
    if sources is None:
        return {}
    # Of equally frequent ones the first, so that the order of a file decides and not chance.
    common = Counter(training_targets).most_common(1)
    always = {f"always {text!r}": [text] * len(sources) for text, _ in common}
    return {**(given or {"the source itself": sources}), **always}


def ngram_table(hypotheses: Sequence[str], references: References, sources: Sequence[str]) -> Table:
    """Novel and repeated n-grams of outputs and references: figure 6 of See et al. (2017)."""
    first_references = [right[0] for right in metrics.answers(references)]
    rows: list[tuple[str | int | float, ...]] = []
    for n in range(1, 5):
        figures = [metrics.novelty(texts, sources, n=n) for texts in (hypotheses, first_references)]
        figures += [metrics.repetition(texts, n=n) for texts in (hypotheses, first_references)]
        rows.append((f"{n}-grams", *figures))
    columns = ("", "new", "of references", "said before", "of references")
    return Table(
        "n-grams new to the document, and said before in the output, %", columns, tuple(rows)
    )


def quality_by_length(
    hypotheses: Sequence[str],
    references: References,
    sources: Sequence[str],
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    edges: Sequence[int] = LENGTH_EDGES,
) -> tuple[Bucket, ...]:
    """BLEU and chrF by the length of sources: figure 2 of Bahdanau et al. (2015)."""
    check_sources(sources, hypotheses)
    if not all(low < high for low, high in pairwise([0, *edges])):
        raise SettingError(f"edges must rise from 1; got {list(edges)}.")
    right = metrics.answers(references)
    words = [source.split() for source in sources]
    is_unspaced = metrics.is_unspaced(source_language)
    lengths = [
        len("".join(source_words)) if is_unspaced else len(source_words) for source_words in words
    ]
    bleu = partial(metrics.bleu, target_language=target_language)
    buckets = []
    for shortest, longest in zip([0, *edges], [*edges, None], strict=True):
        most = float("inf") if longest is None else longest
        inside = [i for i, size in enumerate(lengths) if shortest < size <= most]
        if inside:
            texts, targets = [hypotheses[i] for i in inside], [right[i] for i in inside]
            buckets.append(
                Bucket(
                    shortest=shortest + 1,
                    longest=longest,
                    count=len(inside),
                    mean_length=sum(lengths[i] for i in inside) / len(inside),
                    scores=(bleu(texts, targets), metrics.chrf(texts, targets)),
                )
            )
    return tuple(buckets)


def _figures(
    references: Sequence[tuple[str, ...]],
    target_language: str | None,
    texts: Sequence[str],
    *,
    rouge: bool,
    resamples: int,
) -> tuple[MetricScore, ...]:
    scored = partial(metrics.bleu, target_language=target_language, resamples=resamples)
    scores = []
    if rouge:
        scores.append(metrics.rouge_l(texts, references, resamples=resamples))
        scores += [metrics.rouge_n(texts, references, n=n, resamples=resamples) for n in (1, 2)]
    scores.append(scored(texts, references))
    if not metrics.is_unspaced(target_language):
        lower = scored(texts, references, lowercase=True)
        scores.append(replace(lower, name="BLEU lower-cased"))
    scores.append(metrics.chrf(texts, references, resamples=resamples))
    scores.append(metrics.exact_match(texts, references, resamples=resamples))
    return tuple(scores)


def _outputs_to_read(
    hypotheses: Sequence[str], references: Sequence[tuple[str, ...]], sources: Sequence[str] | None
) -> tuple[OutputExample, ...]:
    """Three best, three worst and four at random; of equally good ones, the longer say more."""
    chrf = metrics.sentence_chrf(hypotheses, references)

    all_indices = range(len(hypotheses))

    def ranked(sign: int) -> list[int]:
        return sorted(all_indices, key=lambda i: (sign * chrf[i], -max(map(len, references[i])), i))

    ranking = {"best": (3, ranked(-1)), "worst": (3, ranked(1))}
    chosen = to_read(ranking, all_indices, random.Random(0))
    chosen["random"].sort()
    return tuple(
        OutputExample(
            kind=kind,
            index=index,
            source=None if sources is None else sources[index],
            text=hypotheses[index],
            references=references[index],
            chrf=chrf[index],
        )
        for kind, indices in chosen.items()
        for index in indices
    )


def to_read(
    ranked: Mapping[str, tuple[int, Sequence[int]]], indices: Sequence[int], dice: random.Random
) -> dict[str, list[int]]:
    """So many of each ranking, from its first, and some of all ranks at random; none twice."""
    chosen: dict[str, list[int]] = {}

    def unchosen(order: Sequence[int]) -> list[int]:
        earlier = set(chain(*chosen.values()))
        return [index for index in order if index not in earlier]

    for kind, (most, order) in ranked.items():
        chosen[kind] = unchosen(order)[:most]
    remaining = unchosen(indices)
    chosen["random"] = dice.sample(remaining, min(_SHOWN_AT_RANDOM, len(remaining)))
    return chosen


def check_sources(sources: Sequence[str] | None, hypotheses: Sequence[str]) -> None:
    """Raise DataError unless there is a source for each output."""
    if sources is not None and len(sources) != len(hypotheses):
        raise DataError(
            f"sources must have one line per output; got {len(sources)} for "
            f"{len(hypotheses)} outputs."
        )
