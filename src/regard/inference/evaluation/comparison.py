"""Several runs: which is better, or chance alone made it so; and their ensemble."""

import random
from collections.abc import Callable, Sequence
from functools import singledispatch
from pathlib import Path
from typing import Any, cast

from regard import metrics
from regard.checks import check_count
from regard.errors import DataError, RunError
from regard.inference.evaluation.evaluate import Member, best_texts, reports_rouge
from regard.inference.evaluation.report import Comparison, Difference
from regard.inference.evaluation.texts import check_sources
from regard.inference.predictor import Predictor
from regard.metrics import References, SystemComparison
from regard.progress import track
from regard.tasks import AnyTask, SequenceTask
from regard.tasks.labels.label_task import LabelPrediction, LabelTask
from regard.tasks.task import Answer
from regard.text import Pair

# How often answers are swapped; and the largest gains, and losses, to read: of texts, of answers.
_TRIALS, _MOST_TEXTS, _MOST_ANSWERS = 1000, 5, 4


def compare(
    first: Sequence[str],
    second: Sequence[str],
    references: References,
    *,
    sources: Sequence[str] | None = None,
    target_language: str | None = None,
    trials: int = 10_000,
    rouge: bool = False,
) -> Comparison:
    """Whether the second of two systems' texts are better, and of which sentences.

    With ``rouge``, ROUGE comes before the other figures.

    Example:
        >>> duel = compare(["I run.", "Me swim."], ["I run.", "I swim."], ["I run.", "I swim."],
        ...     trials=100)
        >>> duel.better, duel.worse, duel.equal, duel.differences[0].second
        (1, 0, 1, 'I swim.')
    """
    check_sources(sources, first)
    comparisons = metrics.compare_rouge(first, second, references) if rouge else []
    comparisons += metrics.compare(
        first, second, references, target_language=target_language, trials=trials
    )
    right = metrics.answers(references)
    before, after = (metrics.sentence_chrf(texts, right) for texts in (first, second))
    gains = [new - old for old, new in zip(before, after, strict=True)]
    up, down = _by_gain(gains)
    return Comparison(
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
            for index in (*up[:_MOST_TEXTS], *down[:_MOST_TEXTS])
        ),
    )


def compare_answers(
    task: AnyTask,
    first: Sequence[Answer],
    second: Sequence[Answer],
    examples: Sequence[object],
    *,
    trials: int = _TRIALS,
    seed: int = 0,
) -> Comparison:
    """How the answers of two runs differ, and how likely chance alone does that."""
    check_count("trials", trials)
    if not len(first) == len(second) == len(examples):
        raise DataError(
            "first and second must have one answer for each example; "
            f"got {len(first)} and {len(second)} for {len(examples)}."
        )
    return _compared(task, first, second, examples, trials, random.Random(seed))


@singledispatch
def _compared(
    task: AnyTask,
    first: Sequence[Answer],
    second: Sequence[Answer],
    examples: Sequence[object],
    trials: int,
    dice: random.Random,
) -> Comparison:
    gains = [
        _figure(task, after, example) - _figure(task, before, example)
        for before, after, example in zip(first, second, examples, strict=True)
    ]
    up, down = _by_gain(gains)
    return Comparison(
        unit=task.unit,
        comparisons=_by_chance(task, first, second, examples, trials, dice),
        better=len(up),
        worse=len(down),
        equal=len(gains) - len(up) - len(down),
        differences=tuple(
            (task.show(examples[index], first[index]), task.show(examples[index], second[index]))
            for index in (*up[:_MOST_ANSWERS], *down[:_MOST_ANSWERS])
        ),
    )


@_compared.register(SequenceTask)
def _compared_texts(
    task: SequenceTask,
    first: Sequence[Answer],
    second: Sequence[Answer],
    examples: Sequence[object],
    *_: object,
) -> Comparison:
    pairs = cast("Sequence[Pair]", examples)
    return compare(
        best_texts(first),
        best_texts(second),
        [pair.references for pair in pairs],
        sources=[pair.source for pair in pairs],
        target_language=task.data.target_language,
        rouge=reports_rouge(task),
    )


def _by_gain(gains: Sequence[float]) -> tuple[list[int], list[int]]:
    """Indices of the gains, largest first, and of the losses, largest first."""
    order = sorted(range(len(gains)), key=lambda index: -gains[index])
    up = [index for index in order if gains[index] > 0]
    return up, [index for index in reversed(order) if gains[index] < 0]


def _figure(task: AnyTask, answer: Answer, example: object) -> float:
    """The task's first figure of one answer, the larger the better."""
    name, sign = next(iter(task.metrics.items()))
    return sign * task.score([answer], [example])[name]


def _by_chance(
    task: AnyTask,
    first: Sequence[Answer],
    second: Sequence[Answer],
    examples: Sequence[object],
    trials: int,
    dice: random.Random,
) -> tuple[SystemComparison, ...]:
    """Approximate randomisation (Riezler & Maxwell, 2005): https://aclanthology.org/W05-0908."""
    first_scores, second_scores = task.score(first, examples), task.score(second, examples)
    as_far = dict.fromkeys(first_scores, 0)
    for _ in track("comparing", range(trials), trials):
        swapped = [
            (after, before) if dice.random() < 0.5 else (before, after)
            for before, after in zip(first, second, strict=True)
        ]
        befores, afters = zip(*swapped, strict=True)
        left, right = task.score(befores, examples), task.score(afters, examples)
        for name in first_scores:
            gap = abs(second_scores[name] - first_scores[name])
            as_far[name] += abs(right[name] - left[name]) >= gap - 1e-9
    return tuple(
        SystemComparison(
            name=name,
            first=first_scores[name],
            second=second_scores[name],
            p_value=1.0
            if first_scores[name] == second_scores[name]
            else (as_far[name] + 1) / (trials + 1),
            signature=f"answers swapped {trials:,} times",
        )
        for name in first_scores
    )


class Ensemble:
    """Classifiers whose probabilities are averaged: Hansen & Salamon (1990).

    Trainings that differ in their seed alone make different mistakes, and the mean makes fewer than
    each of them. It answers examples as a ``Predictor`` does, and can be a member of another.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        if not members:
            raise RunError("An ensemble must have runs; got none.")
        first, *later = map(_labelling, members)
        for member in later:
            if member.recipe.task != first.recipe.task:
                raise RunError(
                    "An ensemble must be of runs of one task; got "
                    f"{first.recipe.task} and {member.recipe.task}."
                )
            if member.labels != first.labels:
                raise RunError(
                    "An ensemble must be of runs with the same labels; got "
                    f"{', '.join(first.labels)} and {', '.join(member.labels)}."
                )
        self.members, self.task = list(members), first

    @classmethod
    def load(cls, *paths: str | Path) -> "Ensemble":
        """The models in several run folders."""
        return cls([Predictor.load(path) for path in paths])

    def answers(
        self, examples: Sequence[object], *, progress: Callable[[int], None] | None = None
    ) -> list[LabelPrediction]:
        """The answer to each example."""
        *earlier, last = self.members
        every = [member.answers(examples) for member in earlier]
        every.append(last.answers(examples, progress=progress))
        predictions = cast("list[Sequence[LabelPrediction]]", every)
        return [self._mean(answers) for answers in zip(*predictions, strict=True)]

    def _mean(self, answers: Sequence[LabelPrediction]) -> LabelPrediction:
        """The answer with the mean of the probabilities."""
        shares = {
            label: sum(answer.probabilities[label] for answer in answers) / len(answers)
            for label in self.task.labels
        }
        return LabelPrediction(max(self.task.labels, key=shares.__getitem__), shares)


def _labelling(member: Member) -> LabelTask[Any]:
    if not isinstance(member.task, LabelTask):
        task = member.task.recipe.task
        raise RunError(f"An ensemble must be of runs that are classifiers; got one of {task}.")
    return member.task
