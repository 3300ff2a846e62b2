"""How good the answers of a run are: figures, what no model would score, and ten to read."""

import os
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Protocol, runtime_checkable

from torch import nn

from regard import metrics
from regard.errors import DataError, SettingError
from regard.inference.evaluation.report import (
    AnswerReport,
    Baseline,
    Bucket,
    Figure,
    OutputExample,
    TextReport,
)
from regard.metrics import MetricScore, References
from regard.progress import progress as show_progress
from regard.progress import track
from regard.tasks import Parts
from regard.tasks.one_pass_task import OnePassTask
from regard.tasks.sequences.sequence_task import SequenceTask
from regard.tasks.sequences.translation import TranslationTask
from regard.tasks.settings.recipe import DataConfig
from regard.tasks.tables import Table
from regard.tasks.task import Answer, AnyTask
from regard.text import Pair, PairLayout, read_pairs
from regard.text.reading.encodings import encoded_as
from regard.text.reading.sources import as_files

# Lengths a bucket of sources ends at, in words or, for text without spaces, characters.
LENGTH_EDGES = (5, 10, 15, 20, 30, 40, 60)
# Resamples that the intervals of answers are drawn from, and examples shown at random.
_RESAMPLES, _SHOWN_AT_RANDOM = 200, 4


@runtime_checkable
class Member(Protocol):
    """Interface of predictors: a run, several of them, or one that needs no training."""

    @property
    def task(self) -> AnyTask:
        """Task of the examples."""

    def answers(
        self, examples: Sequence[object], *, progress: Callable[[int], None] | None = None
    ) -> Sequence[Answer]:
        """The answer to each example."""


def evaluate(
    hypotheses: Sequence[str],
    references: References,
    *,
    sources: Sequence[str] | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    training_targets: Iterable[str] = (),
    resamples: int = 1000,
    seed: int = 0,
    trivial: Mapping[str, Sequence[str]] | None = None,
    rouge: bool = False,
) -> TextReport:
    """BLEU, chrF and exact match, with what it takes to judge them.

    Where the target language has spaces, BLEU is also given lower-cased, as many papers report it.
    Baselines are ``trivial`` outputs, by how they are made, or else the sources themselves; and the
    most frequent of ``training_targets``. With ``rouge``, for summaries and answers, ROUGE comes
    before the other figures, and what is taken over from the sources is counted.
    """
    check_sources(sources, hypotheses)
    right = metrics.answers(references)
    figures = partial(_figures, right, target_language, rouge=rouge)
    outputs = dict(trivial or ({} if sources is None else {"the source itself": sources}))
    # Of equally frequent ones the first, so that the order of a file decides and not chance.
    for text, _ in Counter(training_targets).most_common(1):
        outputs[f"always {text!r}"] = [text] * len(hypotheses)

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
    return TextReport(
        count=len(hypotheses),
        scores=figures(hypotheses, resamples=resamples),
        baselines=tuple(
            Baseline(name=name, scores=figures(texts, resamples=0), p_value=p_value(texts))
            for name, texts in outputs.items()
        ),
        by_length=by_length,
        outputs=_outputs_to_read(hypotheses, right, sources, seed),
        tables=(ngram_table(hypotheses, right, sources),) if rouge and sources else (),
    )


def evaluate_written(
    task: SequenceTask,
    outputs: Sequence[str],
    pairs: Sequence[Pair],
    *,
    training_targets: Iterable[str] = (),
    trivial: Mapping[str, Sequence[str]] | None = None,
) -> TextReport:
    """How good the texts are that a task wrote for the sources of these pairs."""
    return evaluate(
        outputs,
        [pair.references for pair in pairs],
        sources=[pair.source for pair in pairs],
        source_language=task.data.source_language,
        target_language=task.data.target_language,
        training_targets=training_targets,
        trivial=trivial,
        rouge="rouge_l" in task.metrics,
    )


def read_data(task: AnyTask, data: object) -> tuple[Sequence[object], Sequence[object]]:
    """Examples to evaluate on, of ``data`` or of the recipe's text, and the training examples."""
    recipe = task.recipe
    parts: Parts[object] = Parts((), ())
    with encoded_as(recipe.encoding):
        if recipe.training.get("corpus") != "disk":
            with suppress(DataError):  # the training text may be gone
                parts = task.read_parts(recipe)
        if data is None:
            examples = parts.test or task.read(recipe, "test")
        else:
            with as_files(data) as files:
                examples = read_examples(task, files)
    if not examples:
        raise DataError("data must be given: the run's recipe names no text to test on.")
    return examples, parts.train


def read_examples(task: AnyTask, files: Sequence[Path]) -> Sequence[object]:
    """The examples of files in the form of the training text."""
    recipe = task.recipe
    if not isinstance(task, TranslationTask):
        test = tuple(os.path.realpath(file) for file in files)
        return task.read(replace(recipe, data=replace(recipe.data, test=test)), "test")
    source, *targets = files
    if len(targets) > 1:
        raise SettingError(
            f"FILE must be one of pairs, or a source's and a target's; got {len(files)} files. "
            "Further right answers go with --references."
        )
    target = targets[0] if targets else None
    columns = recipe.settings(DataConfig).columns
    layout = PairLayout(columns=columns, merge_references=target is None)
    return list(read_pairs(source, target, layout=layout))


def ngram_table(hypotheses: Sequence[str], references: References, sources: Sequence[str]) -> Table:
    """Novel and repeated n-grams of outputs and references: figure 6 of See et al. (2017)."""
    known = [right[0] for right in metrics.answers(references)]
    rows: list[tuple[str | int | float, ...]] = []
    for n in range(1, 5):
        figures = [metrics.novelty(texts, sources, n=n) for texts in (hypotheses, known)]
        figures += [metrics.repetition(texts, n=n) for texts in (hypotheses, known)]
        rows.append((f"{n}-grams", *figures))
    columns = ("", "new", "of references", "said before", "of references")
    return Table(
        "n-grams new to the document, and said before in the output, %", columns, tuple(rows)
    )


def evaluate_task(
    predictor: Member,
    examples: Sequence[object],
    train: Sequence[object] = (),
    *,
    answers: Sequence[Answer] | None = None,
    progress: Callable[[int], None] | None = None,
    seed: int = 0,
) -> AnswerReport:
    """How good a task's answers to these examples are."""
    task = predictor.task
    assert isinstance(task, OnePassTask)
    if answers is None:
        answers = predictor.answers(examples, progress=progress)
    dice = random.Random(seed)
    with show_progress("baselines"):
        trivial = task.baselines(train, examples) if train else {}
    scores = [task.example_score(a, e) for a, e in zip(answers, examples, strict=True)]
    order, model = (
        sorted(range(len(scores)), key=scores.__getitem__),
        getattr(predictor, "model", None),
    )
    figures = _with_intervals(task, answers, examples, dice)
    chosen = _to_read({"worst": (4, order), "best": (2, order[::-1])}, order, dice)
    return AnswerReport(
        count=len(examples),
        unit=task.unit,
        figures=figures,
        baselines={name: task.score(outputs, examples) for name, outputs in trivial.items()},
        tables=tuple(task.tables(answers, examples)),
        examples=tuple(
            (kind, task.show(examples[index], answers[index]))
            for kind, indices in chosen.items()
            for index in indices
        ),
        learned=tuple(task.describe_learned(model)) if isinstance(model, nn.Module) else (),
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
    lengths = [len("".join(each)) if is_unspaced else len(each) for each in words]
    bleu = partial(metrics.bleu, target_language=target_language)
    buckets = []
    for shortest, longest in zip([0, *edges], [*edges, None], strict=True):
        most = float("inf") if longest is None else longest
        inside = [i for i, size in enumerate(lengths) if shortest < size <= most]
        if inside:
            texts, known = [hypotheses[i] for i in inside], [right[i] for i in inside]
            buckets.append(
                Bucket(
                    shortest=shortest + 1,
                    longest=longest,
                    count=len(inside),
                    mean_length=sum(lengths[i] for i in inside) / len(inside),
                    scores=(bleu(texts, known), metrics.chrf(texts, known)),
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


def _with_intervals(
    task: AnyTask, answers: Sequence[Answer], examples: Sequence[object], dice: random.Random
) -> tuple[Figure, ...]:
    count = len(examples)
    drawn: list[dict[str, float]] = []
    for _ in track("resampling", range(_RESAMPLES), _RESAMPLES):
        indices = dice.choices(range(count), k=count)
        drawn.append(task.score([answers[i] for i in indices], [examples[i] for i in indices]))
    figures = []
    for name, value in task.score(answers, examples).items():
        ordered = sorted(drawn_figures[name] for drawn_figures in drawn)
        low, high = (ordered[round(share * (_RESAMPLES - 1))] for share in (0.025, 0.975))
        figures.append(Figure(name=name, value=value, low=low, high=high))
    return tuple(figures)


def _outputs_to_read(
    hypotheses: Sequence[str],
    references: Sequence[tuple[str, ...]],
    sources: Sequence[str] | None,
    seed: int,
) -> tuple[OutputExample, ...]:
    """Three best, three worst and four at random; of equally good ones, the longer say more."""
    chrf = metrics.sentence_chrf(hypotheses, references)

    all_indices = range(len(hypotheses))

    def ranked(sign: int) -> list[int]:
        return sorted(all_indices, key=lambda i: (sign * chrf[i], -max(map(len, references[i])), i))

    ranking = {"best": (3, ranked(-1)), "worst": (3, ranked(1))}
    chosen = _to_read(ranking, all_indices, random.Random(seed))
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


def _to_read(
    ranked: Mapping[str, tuple[int, Sequence[int]]], indices: Sequence[int], dice: random.Random
) -> dict[str, list[int]]:
    """So many of each ranking, from its first, and some of all places at random; none twice."""
    chosen: dict[str, list[int]] = {}

    def unchosen(order: Sequence[int]) -> list[int]:
        earlier = set(chain(*chosen.values()))
        return [index for index in order if index not in earlier]

    for kind, (most, order) in ranked.items():
        chosen[kind] = unchosen(order)[:most]
    rest = unchosen(indices)
    chosen["random"] = dice.sample(rest, min(_SHOWN_AT_RANDOM, len(rest)))
    return chosen


def check_sources(sources: Sequence[str] | None, hypotheses: Sequence[str]) -> None:
    """Raise DataError unless there is a source for each output."""
    if sources is not None and len(sources) != len(hypotheses):
        raise DataError(
            f"sources must have one line per output; got {len(sources)} for "
            f"{len(hypotheses)} outputs."
        )
