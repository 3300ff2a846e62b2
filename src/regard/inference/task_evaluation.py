"""How good the answers of a task are: figures, baselines, tables, and examples to read."""

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from regard.config import JsonValue
from regard.inference.ensemble import Member
from regard.tasks.task import Answer, OnePassTask, Table

# Examples shown of each kind, and resamples that the intervals are drawn from.
_SHOWN, _RESAMPLES = {"worst": 4, "best": 2, "random": 4}, 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """One figure of a metric.

    Attributes:
        name: Of the metric.
        value: Over all examples.
        low: The lower end of the 95 % bootstrap interval.
        high: Its upper end.
    """

    name: str
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.name} {self.value:.2f} (95 %: {self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskReport:
    """What an evaluation found.

    Attributes:
        count: Examples.
        unit: What they are called.
        figures: One of each metric.
        baselines: The same figures for answers that took no model.
        tables: Where the figures come from.
        examples: To read: (worst, best or random; the example and its answer).
    """

    count: int
    unit: str
    figures: tuple[Figure, ...]
    baselines: dict[str, dict[str, float]]
    tables: tuple[Table, ...]
    examples: tuple[tuple[str, str], ...]

    def to_dict(self) -> dict[str, JsonValue]:
        """The report as plain data, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"{self.count:,} {self.unit}", *(f"  {figure}" for figure in self.figures)]
        for name, figures in self.baselines.items():
            shown = ", ".join(f"{metric} {value:.2f}" for metric, value in figures.items())
            lines.append(f"  beside it, {name}: {shown}")
        for table in self.tables:
            lines += ["", *draw_table(table)]
        lines += ["", *(f"{kind}: {text}" for kind, text in self.examples)]
        return "\n".join(lines)


def evaluate_task(
    predictor: Member,
    examples: Sequence[object],
    train: Sequence[object] = (),
    *,
    progress: Callable[[int], None] | None = None,
    seed: int = 0,
) -> TaskReport:
    """How good a task's answers to these examples are.

    Args:
        predictor: The model in use.
        examples: With their right answers.
        train: What the model was trained on, which baselines are made from; none without it.
        progress: Called after each batch with the number of examples in it.
        seed: Of the resamples, and of which examples are shown at random.
    """
    task = predictor.task
    assert isinstance(task, OnePassTask)
    answers = predictor.answers(examples, progress=progress)
    dice = random.Random(seed)
    trivial = task.baselines(train, examples) if train else {}
    scores = [task.example_score(a, e) for a, e in zip(answers, examples, strict=True)]
    return TaskReport(
        count=len(examples),
        unit=task.unit,
        figures=_figures(predictor, answers, examples, dice),
        baselines={name: task.score(found, examples) for name, found in trivial.items()},
        tables=tuple(task.tables(answers, examples)),
        examples=tuple(
            (kind, task.show(examples[place], answers[place]))
            for kind, place in _to_read(scores, dice)
        ),
    )


def draw_table(table: Table) -> list[str]:
    """A table in lines, columns lined up."""
    cells = [table.columns, *(tuple(map(_cell, row)) for row in table.rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(table.columns))]
    return [
        table.title,
        *(
            "  ".join(
                text.ljust(width) if place == 0 else text.rjust(width)
                for place, (text, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in cells
        ),
    ]


def _cell(value: str | int | float) -> str:
    if isinstance(value, float):
        return f"{value:.1f}"
    return f"{value:,}" if isinstance(value, int) else value


def _figures(
    predictor: Member, answers: Sequence[Answer], examples: Sequence[object], dice: random.Random
) -> tuple[Figure, ...]:
    count, task = len(examples), predictor.task
    values = task.score(answers, examples)
    drawn: list[dict[str, float]] = []
    for _ in range(_RESAMPLES):
        places = dice.choices(range(count), k=count)
        drawn.append(task.score([answers[i] for i in places], [examples[i] for i in places]))
    found = []
    for name, value in values.items():
        ordered = sorted(figures[name] for figures in drawn)
        low, high = (
            ordered[round(0.025 * (_RESAMPLES - 1))],
            ordered[round(0.975 * (_RESAMPLES - 1))],
        )
        found.append(Figure(name=name, value=value, low=low, high=high))
    return tuple(found)


def _to_read(scores: Sequence[float], dice: random.Random) -> list[tuple[str, int]]:
    """Which examples to show: the worst, the best, and some at random; none twice."""
    order = sorted(range(len(scores)), key=scores.__getitem__)
    worst = order[: _SHOWN["worst"]]
    best = [place for place in order[::-1][: _SHOWN["best"]] if place not in worst]
    rest = [place for place in order if place not in worst and place not in best]
    drawn = dice.sample(rest, min(_SHOWN["random"], len(rest)))
    return [
        *(("worst", place) for place in worst),
        *(("best", place) for place in best),
        *(("random", place) for place in drawn),
    ]
