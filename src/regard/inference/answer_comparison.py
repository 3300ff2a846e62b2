"""Whether the answers of one run are better than another's, or chance alone made them so."""

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from regard.checks import check_at_least
from regard.config import JsonValue
from regard.errors import DataError
from regard.metrics import SystemComparison
from regard.progress import track
from regard.tasks import AnyTask
from regard.tasks.task import Answer

# How often answers are swapped, and examples to read.
_TRIALS, _SHOWN = 1000, 4


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerComparison:
    """How the answers of two runs differ on the same examples."""

    unit: str
    comparisons: tuple[SystemComparison, ...]
    better: int
    worse: int
    equal: int
    differences: tuple[tuple[str, str], ...]

    def to_dict(self) -> dict[str, JsonValue]:
        """The comparison as plain data, ready for JSON."""
        return {**asdict(self), "comparisons": [one.to_dict() for one in self.comparisons]}

    def __str__(self) -> str:
        lines = [str(one) for one in self.comparisons]
        lines.append(f"{self.better} {self.unit} better, {self.worse} worse, {self.equal} equal")
        for before, after in self.differences:
            lines += [f"  was  {before}", f"  is   {after}"]
        return "\n".join(lines)


def compare_answers(
    task: AnyTask,
    first: Sequence[Answer],
    second: Sequence[Answer],
    examples: Sequence[object],
    *,
    trials: int = _TRIALS,
    seed: int = 0,
) -> AnswerComparison:
    """How the answers of two runs differ, and how likely chance alone does that."""
    # By approximate randomisation, two-sided: Riezler & Maxwell (2005),
    # https://aclanthology.org/W05-0908.
    check_at_least("trials", trials, 1)
    if not len(first) == len(second) == len(examples):
        raise DataError(
            "first and second must have one answer for each example; "
            f"got {len(first)} and {len(second)} for {len(examples)}."
        )
    gains = [
        _figure(task, after, example) - _figure(task, before, example)
        for before, after, example in zip(first, second, examples, strict=True)
    ]
    order = sorted(range(len(gains)), key=lambda place: -gains[place])
    up = [place for place in order if gains[place] > 0]
    down = [place for place in reversed(order) if gains[place] < 0]
    return AnswerComparison(
        unit=task.unit,
        comparisons=_by_chance(task, first, second, examples, trials, random.Random(seed)),
        better=len(up),
        worse=len(down),
        equal=len(gains) - len(up) - len(down),
        differences=tuple(
            (task.show(examples[place], first[place]), task.show(examples[place], second[place]))
            for place in (*up[:_SHOWN], *down[:_SHOWN])
        ),
    )


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
    one, other = task.score(first, examples), task.score(second, examples)
    as_far = dict.fromkeys(one, 0)
    for _ in track("comparing", range(trials), trials):
        swapped = [
            (after, before) if dice.random() < 0.5 else (before, after)
            for before, after in zip(first, second, strict=True)
        ]
        befores, afters = zip(*swapped, strict=True)
        left, right = task.score(befores, examples), task.score(afters, examples)
        for name in one:
            gap = abs(other[name] - one[name])
            as_far[name] += abs(right[name] - left[name]) >= gap - 1e-9
    return tuple(
        SystemComparison(
            name=name,
            first=one[name],
            second=other[name],
            p_value=1.0 if one[name] == other[name] else (as_far[name] + 1) / (trials + 1),
            signature=f"answers swapped {trials:,} times",
        )
        for name in one
    )
