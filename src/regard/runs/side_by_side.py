"""Runs side by side: which settings differ, and the curves of their trainings."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from regard.comparison.report import (
    ComparisonReport,
    ComparisonTable,
    Curve,
    Plot,
    short,
)
from regard.config import JsonValue
from regard.errors import SettingError
from regard.runs.history import told
from regard.runs.overview import RunOverview, overview
from regard.runs.run import Run

# As many lines have a place in a legend and a look of their own.
_MOST = 8
# Points of a drawn curve; of more, neighbours are averaged.
_POINTS = 240
# The sections of a recipe, in their order.
_SECTIONS = ("task", "data", "tokenizer", "model", "head", "training", "decoding")
# Letters of a run's name that a legend has room for.
_NAME = 30


@dataclass(frozen=True, kw_only=True, slots=True)
class RunCurve:
    """One figure of one run as it was trained.

    Attributes:
        run: The run's name.
        split: ``train`` or ``valid``.
        figure: What is drawn, such as ``loss``.
        points: Updates and the figure after them.
    """

    run: str
    split: str
    figure: str
    points: tuple[tuple[int, int | float], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunComparison:
    """Runs side by side.

    Attributes:
        names: The runs, each by as much of its path as tells it from the others.
        overviews: Each at a glance.
        settings: What each says of every setting that differs, by its dotted name; None where it
            has none.
        history: What was changed while each was trained, in lines for people.
        curves: One for each run and figure.
    """

    names: tuple[str, ...]
    overviews: tuple[RunOverview, ...]
    settings: Mapping[str, tuple[JsonValue, ...]]
    history: tuple[tuple[str, ...], ...]
    curves: tuple[RunCurve, ...]

    def to_dict(self) -> dict[str, JsonValue]:
        """As plain data."""
        return {
            "comparison": "runs",
            "runs": [
                {"name": name, **seen.to_dict(), "changed": list(changes)}
                for name, seen, changes in zip(
                    self.names, self.overviews, self.history, strict=True
                )
            ],
            "settings": {
                name: dict(zip(self.names, values, strict=True))
                for name, values in self.settings.items()
            },
            "curves": [
                {"run": c.run, "split": c.split, "figure": c.figure, "points": c.points}
                for c in self.curves
            ],
        }

    def report(self) -> ComparisonReport:
        """As tables and plots."""
        changed = [
            f"{name}, {line}"
            for name, lines in zip(self.names, self.history, strict=True)
            for line in lines
        ]
        text = [
            "A point of training is the mean loss since the point before. Validations of the "
            "same figure are comparable only where the validation text is the same.",
            *changed,
        ]
        of_one = self._of_one_kind()
        both = {name: values for name, values in self.settings.items() if name not in of_one}
        tables = [
            overview_table(self.names, self.overviews, title="At a glance"),
            self._table("Settings that differ" if both else "No setting differs", both),
        ]
        if of_one:
            title = "Settings that only one kind of model has"
            tables.append(self._table(title, {name: self.settings[name] for name in of_one}))
        return ComparisonReport(
            title="Runs side by side",
            text=tuple(text),
            tables=tuple(tables),
            pictures=tuple(self._plots()),
        )

    def _of_one_kind(self) -> list[str]:
        """The settings of a model that those of another kind do not know."""
        if not {"task", "model.type"} & self.settings.keys():
            return []
        return [
            name
            for name, values in self.settings.items()
            if name.startswith(("model.", "head.")) and None in values
        ]

    def _table(self, title: str, settings: Mapping[str, tuple[JsonValue, ...]]) -> ComparisonTable:
        rows = ((name, *map(_told_setting, values)) for name, values in settings.items())
        return ComparisonTable(title=title, columns=("setting", *self.names), rows=tuple(rows))

    def _plots(self) -> list[Plot]:
        curves = {(each.split, each.figure, each.run): each.points for each in self.curves}
        figures = dict.fromkeys((split, figure) for split, figure, _ in curves)
        named = {"train": "Training", "valid": "Validation"}
        return [
            Plot(
                title=f"{named.get(split, split)}: {figure}",
                across="updates",
                up=figure,
                # Each run in each plot, so that its colour is the same in all of them.
                lines=tuple(
                    Curve(
                        name=_shortened(run), points=_thinned(curves.get((split, figure, run), ()))
                    )
                    for run in self.names
                ),
            )
            for split, figure in figures
        ]


def compare_runs(paths: Sequence[str | Path]) -> RunComparison:
    """What differs between runs, and how each of them learned.

    Args:
        paths: Two run folders or more, of whatever tasks; some may be in training.

    Raises:
        SettingError: There are fewer than two, more than eight, or one twice.
        RunError: One is no run, is damaged, or its figures are.
    """
    places = [Path(path) for path in paths]
    if not 2 <= len(places) <= _MOST:
        raise SettingError(
            f"runs to compare must be two to {_MOST}; got {len(places)}. Name their folders."
        )
    if len({place.resolve() for place in places}) < len(places):
        raise SettingError(
            f"runs to compare must be different ones; got {', '.join(map(str, places))}."
        )
    runs = [Run.open(place) for place in places]
    names = distinct_names(places)
    tables = [_flat(cast(Mapping[str, JsonValue], run.recipe)) for run in runs]
    every = sorted({name for table in tables for name in table}, key=_place)
    values = {name: tuple(table.get(name) for table in tables) for name in every}
    return RunComparison(
        names=names,
        overviews=tuple(overview(place) for place in places),
        settings={
            name: found for name, found in values.items() if any(each != found[0] for each in found)
        },
        history=tuple(tuple(told(run.changes)) for run in runs),
        curves=_curves(dict(zip(names, (run.metrics() for run in runs), strict=True))),
    )


def overview_table(
    names: Sequence[str], runs: Sequence[RunOverview], *, title: str
) -> ComparisonTable:
    """Runs at a glance, a row each."""
    columns = ("run", "recipe", "updates", "best validation", "speed", "state")
    rows = zip(names, map(_row, runs), strict=True)
    return ComparisonTable(
        title=title, columns=columns, rows=tuple((name, *row) for name, row in rows)
    )


def distinct_names(paths: Sequence[Path]) -> tuple[str, ...]:
    """Each path without the folders that all share.

    Example:
        >>> distinct_names([Path("runs/ende/a"), Path("runs/ende/b")])
        ('a', 'b')
        >>> distinct_names([Path("runs/a"), Path("old/a")])
        ('runs/a', 'old/a')
    """
    whole = [Path(os.path.abspath(path)) for path in paths]  # noqa: PTH100  (links keep their names)
    shared = os.path.commonpath([path.parent for path in whole])
    return tuple(path.relative_to(shared).as_posix() for path in whole)


def _place(name: str) -> tuple[int, str]:
    """Where a setting stands: in the order of a recipe's sections, the kind of model first."""
    section, _, key = name.partition(".")
    return (_SECTIONS.index(section) if section in _SECTIONS else len(_SECTIONS)), (
        "" if key == "type" else key
    )


def _row(run: RunOverview) -> tuple[str, ...]:
    best, speed = run.best, run.speed
    of = f" of {run.limit:,}" if run.limit is not None else ""
    return (
        run.recipe or "–",
        "–" if run.state == "damaged" else f"{run.updates:,}{of}",
        "–" if best is None else f"{best.metric} {best.value:.4g} at {best.update:,}",
        "–" if speed is None else f"{short(speed.each_second)} {speed.counted}/s",
        run.state,
    )


def _flat(table: Mapping[str, JsonValue], before: str = "") -> dict[str, JsonValue]:
    """Settings by their dotted names."""
    found: dict[str, JsonValue] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{before}{name}.")
        else:
            found[f"{before}{name}"] = value
    return found


def _curves(records: Mapping[str, Sequence[Mapping[str, JsonValue]]]) -> tuple[RunCurve, ...]:
    """The loss in training, and every figure of validation."""
    points: dict[tuple[str, str, str], list[tuple[int, int | float]]] = {}
    for run, lines in records.items():
        for line in lines:
            split, update = line.get("split"), line.get("update")
            if split not in ("train", "valid") or not isinstance(update, int):
                continue
            wanted = {"loss"} if split == "train" else line.keys() - {"update", "split"}
            for figure in sorted(wanted):
                if isinstance(value := line.get(figure), int | float):
                    points.setdefault((str(split), figure, run), []).append((update, value))
    curves = [
        RunCurve(run=run, split=split, figure=figure, points=tuple(found))
        for (split, figure, run), found in points.items()
    ]
    order = {"train": 0, "valid": 1}
    return tuple(sorted(curves, key=lambda c: (order[c.split], c.figure != "loss", c.figure)))


def _thinned(
    points: Sequence[tuple[int, int | float]],
) -> tuple[tuple[int | float, int | float], ...]:
    """Curves of so many points that more would not be seen: the mean of neighbours."""
    step = max(1, -(-len(points) // _POINTS))
    groups = [points[first : first + step] for first in range(0, len(points), step)]
    return tuple((group[-1][0], sum(value for _, value in group) / len(group)) for group in groups)


def _shortened(name: str) -> str:
    return name if len(name) <= _NAME else f"…{name[1 - _NAME :]}"


def _told_setting(value: JsonValue) -> str:
    if value is None:
        return "–"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
