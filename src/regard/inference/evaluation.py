"""How good the outputs of a run are: figures, what nothing would score, and ten to read."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from regard import metrics
from regard.checks import check_at_least
from regard.errors import DataError, SettingError
from regard.inference.report import Baseline, Bucket, Difference, Output, PairedComparison, Report
from regard.metrics import MetricScore, References

# Lengths a bucket of sources ends at, in words or, for text without spaces, characters.
LENGTH_EDGES = (5, 10, 15, 20, 30, 40, 60)


def evaluate(
    hypotheses: Sequence[str],
    references: References,
    *,
    sources: Sequence[str] | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    training_targets: Iterable[str] = (),
    resamples: int = 1000,
    edges: Sequence[int] = LENGTH_EDGES,
    seed: int = 0,
    trivial: Mapping[str, Sequence[str]] | None = None,
    rouge: bool = False,
) -> Report:
    """BLEU, chrF and exact match, with what it takes to judge them.

    Where the target language has spaces, BLEU is also given lower-cased: sacrebleu's tokenizer
    stands in for the one of the papers that report *tokenised lower-cased* BLEU.

    Args:
        hypotheses: The outputs.
        references: One right answer of each, or several; their number may differ.
        sources: What was translated. None leaves out the first baseline and quality by length.
        source_language: Code of its language: lengths are in characters where it has no spaces.
        target_language: Code of the outputs' language: BLEU cuts Chinese into characters.
        training_targets: What the system was trained to say: the most frequent of them is the
            second baseline. Empty leaves it out.
        resamples: Bootstrap resamples for the 95 % intervals; none are drawn for 0.
        edges: The longest source of each bucket; one more takes what is longer.
        seed: Which outputs are shown at random.
        trivial: Outputs that took no work, by how they are made, instead of the source itself.
        rouge: Whether ROUGE-L comes before the other figures, as for summaries and answers.

    Raises:
        DataError: Outputs, references and sources do not pair up.
        SettingError: The edges do not rise.

    Example:
        >>> report = evaluate(["I love tea.", "Me run."], ["I love tea.", "I run."],
        ...     sources=["我爱茶。", "我跑。"], source_language="zh", resamples=0)
        >>> report.score("exact match"), [bucket.name for bucket in report.by_length]
        (50.0, ['1-5'])
        >>> report.outputs[0].text
        'I love tea.'
    """
    _check_sources(sources, hypotheses)
    right = metrics.answers(references)

    def figures(texts: Sequence[str], resamples: int) -> tuple[MetricScore, ...]:
        found = _figures(texts, right, target_language, resamples)
        return (metrics.rouge_l(texts, right, resamples=resamples), *found) if rouge else found

    trivial = {
        **(trivial or {}),
        **_trivial(len(hypotheses), None if trivial else sources, training_targets),
    }
    return Report(
        count=len(hypotheses),
        scores=figures(hypotheses, resamples),
        baselines=tuple(
            Baseline(name=name, scores=figures(texts, 0)) for name, texts in trivial.items()
        ),
        by_length=()
        if sources is None
        else quality_by_length(
            hypotheses,
            right,
            sources,
            source_language=source_language,
            target_language=target_language,
            edges=edges,
        ),
        outputs=_outputs_to_read(hypotheses, right, sources, seed),
    )


def quality_by_length(
    hypotheses: Sequence[str],
    references: References,
    sources: Sequence[str],
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    edges: Sequence[int] = LENGTH_EDGES,
    resamples: int = 0,
) -> tuple[Bucket, ...]:
    """BLEU and chrF over the sources of each length: the figure that attention changed.

    Figure 2 of Bahdanau et al. (2015), https://arxiv.org/abs/1409.0473. Lengths without a sentence
    have no bucket. BLEU of few sentences says little: look at ``count``.

    Args:
        hypotheses: The outputs.
        references: One right answer of each, or several.
        sources: What was translated.
        source_language: Code of its language: characters are counted where it has no spaces.
        target_language: Code of the outputs' language.
        edges: The longest source of each bucket; one more takes what is longer.
        resamples: Bootstrap resamples for the 95 % intervals; none are drawn for 0.

    Raises:
        DataError: Outputs, references and sources do not pair up.
        SettingError: The edges do not rise.
    """
    _check_sources(sources, hypotheses)
    if not all(low < high for low, high in pairwise([0, *edges])):
        raise SettingError(f"edges must rise from 1; got {list(edges)}.")
    right = metrics.answers(references)
    length = _length_counter(source_language)
    lengths = [length(source) for source in sources]
    buckets = []
    bounds: list[int | None] = [*edges, None]
    for shortest, longest in zip([0, *edges], bounds, strict=True):
        inside = [
            index
            for index, size in enumerate(lengths)
            if shortest < size and (longest is None or size <= longest)
        ]
        if inside:
            texts, known = [hypotheses[i] for i in inside], [right[i] for i in inside]
            buckets.append(
                Bucket(
                    shortest=shortest + 1,
                    longest=longest,
                    count=len(inside),
                    mean_length=sum(lengths[i] for i in inside) / len(inside),
                    scores=(
                        metrics.bleu(
                            texts, known, target_language=target_language, resamples=resamples
                        ),
                        metrics.chrf(texts, known, resamples=resamples),
                    ),
                )
            )
    return tuple(buckets)


def compare(
    first: Sequence[str],
    second: Sequence[str],
    references: References,
    *,
    sources: Sequence[str] | None = None,
    target_language: str | None = None,
    test: str = "randomisation",
    trials: int | None = None,
    shown: int = 5,
) -> PairedComparison:
    """Whether the second of two systems is better, and on which sentences.

    Args:
        first: Outputs of the one, often the baseline.
        second: Outputs of the other, in the same order.
        references: One right answer of each sentence, or several.
        sources: What was translated, to be shown beside the outputs.
        target_language: Code of the outputs' language.
        test: ``randomisation`` or ``bootstrap``, both paired and two-sided.
        trials: How often chance is tried; None is as often as sacrebleu does.
        shown: Largest gains, and largest losses, to show.

    Raises:
        DataError: Outputs, references and sources do not pair up.
        SettingError: No such test.

    Example:
        >>> duel = compare(["I run.", "Me swim."], ["I run.", "I swim."], ["I run.", "I swim."],
        ...     trials=100)
        >>> duel.better, duel.worse, duel.equal, duel.differences[0].second
        (1, 0, 1, 'I swim.')
    """
    check_at_least("shown", shown, 0)
    _check_sources(sources, first)
    comparisons = metrics.compare(
        first, second, references, target_language=target_language, test=test, trials=trials
    )
    right = metrics.answers(references)
    gains = [
        after - before
        for before, after in zip(
            metrics.sentence_chrf(first, right), metrics.sentence_chrf(second, right), strict=True
        )
    ]
    order = sorted(range(len(gains)), key=lambda index: -gains[index])
    up = [index for index in order if gains[index] > 0]
    down = [index for index in reversed(order) if gains[index] < 0]
    return PairedComparison(
        comparisons=tuple(comparisons),
        better=len(up),
        worse=len(down),
        equal=len(gains) - len(up) - len(down),
        differences=tuple(
            Difference(
                index=index,
                source=None if sources is None else sources[index],
                first=first[index],
                second=second[index],
                references=right[index],
                gain=gains[index],
            )
            for index in (*up[:shown], *down[:shown])
        ),
    )


def _figures(
    texts: Sequence[str],
    references: Sequence[tuple[str, ...]],
    target_language: str | None,
    resamples: int,
) -> tuple[MetricScore, ...]:
    def bleu(*, lowercase: bool) -> MetricScore:
        return metrics.bleu(
            texts,
            references,
            target_language=target_language,
            lowercase=lowercase,
            resamples=resamples,
        )

    scores = [bleu(lowercase=False)]
    if not metrics.is_unspaced(target_language):
        scores.append(replace(bleu(lowercase=True), name="BLEU lower-cased"))
    scores.append(metrics.chrf(texts, references, resamples=resamples))
    scores.append(metrics.exact_match(texts, references, resamples=resamples))
    return tuple(scores)


def _trivial(
    count: int, sources: Sequence[str] | None, training_targets: Iterable[str]
) -> Mapping[str, Sequence[str]]:
    """Outputs that took no work, by how they are made."""
    made: dict[str, Sequence[str]] = {}
    if sources is not None:
        made["the source itself"] = sources
    # Of equally frequent ones the first, so that the order of a file decides and not chance.
    common = Counter(training_targets).most_common(1)
    if common:
        made[f"always {common[0][0]!r}"] = [common[0][0]] * count
    return made


def _outputs_to_read(
    hypotheses: Sequence[str],
    references: Sequence[tuple[str, ...]],
    sources: Sequence[str] | None,
    seed: int,
) -> tuple[Output, ...]:
    """Three best, three worst and four at random; of equally good ones, the longer say more."""
    chrf = metrics.sentence_chrf(hypotheses, references)

    def length(index: int) -> int:
        return max(len(reference) for reference in references[index])

    def rank(index: int) -> tuple[float, int, int]:
        return (-chrf[index], -length(index), index)

    def rank_worst(index: int) -> tuple[float, int, int]:
        return (chrf[index], -length(index), index)

    places = range(len(hypotheses))
    best = sorted(places, key=rank)[:3]
    worst = sorted(set(places) - set(best), key=rank_worst)[:3]
    rest = sorted(set(places) - set(best) - set(worst))
    drawn = random.Random(seed).sample(rest, min(4, len(rest)))
    kinds = [("best", best), ("worst", worst), ("random", sorted(drawn))]
    return tuple(
        Output(
            kind=kind,
            index=index,
            source=None if sources is None else sources[index],
            text=hypotheses[index],
            references=references[index],
            chrf=chrf[index],
        )
        for kind, chosen in kinds
        for index in chosen
    )


def _length_counter(language: str | None) -> Callable[[str], int]:
    """How long a source is: its words, or its characters where words are not spaced."""
    if metrics.is_unspaced(language):
        return lambda text: len("".join(text.split()))
    return lambda text: len(text.split())


def _check_sources(sources: Sequence[str] | None, hypotheses: Sequence[str]) -> None:
    if sources is not None and len(sources) != len(hypotheses):
        raise DataError(
            f"sources must have one line per output; got {len(sources)} for "
            f"{len(hypotheses)} outputs."
        )
