"""Plot of an evaluation, and of the training that led to it."""

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import replace
from functools import singledispatch
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar, cast

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from regard.checks import check_choice
from regard.config import JsonValue
from regard.devices import CPU
from regard.errors import SettingError
from regard.files import new_file
from regard.inference.evaluation.evaluate import Member
from regard.inference.evaluation.report import AnswerReport
from regard.inference.predictor import Predictor
from regard.models import KernelRegression, KernelRegressionConfig
from regard.tasks.batches import Batch
from regard.tasks.labels.regression import Regression
from regard.tasks.tables import Table
from regard.text.reading.points import Point

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Fonts with Chinese, of which the first that is installed is used. Some are known by the first
# name of their file alone, which is of another region.
CHINESE_FONTS = (
    *("Noto Sans CJK SC", "Noto Sans SC", "Noto Sans CJK JP"),
    *("Source Han Sans SC", "Source Han Sans CN", "Source Han Sans"),
    *("PingFang SC", "PingFang HK", "Hiragino Sans GB", "Heiti SC", "Heiti TC", "STHeiti"),
    *("Microsoft YaHei", "SimHei", "DengXian", "SimSun"),
    *("WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Droid Sans Fallback"),
    *("Noto Serif CJK SC", "Noto Serif CJK JP", "Source Han Serif SC", "Arial Unicode MS"),
)
_BOX = r"Glyph \d+ .* missing from"

T = TypeVar("T")
PlotLanguage = Literal["en", "zh"]

# Titles, names of axes and legends in Chinese; a number keeps its place.
_CHINESE = {
    "Predicted label": "预测标签",
    "True label": "真实标签",
    "Confusion matrix": "混淆矩阵",
    "Fraction of the row": "占本行的比例",
    "update": "更新次数",
    "loss": "损失",
    "Training": "训练过程",
    "training": "训练",
    "validation": "验证",
    "predicted": "预测",
    "Predicted value": "预测值",
    "True value": "真实值",
    "training points, in order": "训练点，按顺序",
    "predictions, in order": "预测点，按顺序",
    "Average pooling": "平均汇聚",
    "Bandwidth (.+), not learned": r"带宽 \1，未学习",
    "Learned bandwidth (.+)": r"学到的带宽 \1",
    "Weights, bandwidth (.+), not learned": r"权重，带宽 \1，未学习",
    "Weights, learned bandwidth (.+)": r"权重，学到的带宽 \1",
}

_ENDINGS = (".svg", ".png", ".pdf")

# Okabe and Ito's colours, which readers with colour blindness tell apart.
_TRAIN, _VALID = "#0072b2", "#d55e00"
# Labels beyond these would be too small to read, and of more points none is marked.
_MOST_FIGURES = _MOST_MARKED = 12
# Rows and columns of a heat map, and points, of which some are drawn; and points of a curve.
_MOST, _MOST_POINTS, _PLACES = 200, 2000, 500


def check_picture(name: str, path: Path) -> None:
    """Raise SettingError unless a plot can be drawn into a file with this ending."""
    if path.suffix.lower() not in _ENDINGS:
        raise SettingError(f"{name} must end in .svg, .png or .pdf; got {path}.")


def plot_report(
    predictor: Member,
    report: AnswerReport,
    examples: Sequence[object],
    history: Sequence[Mapping[str, JsonValue]],
    path: Path,
    *,
    language: PlotLanguage = "en",
) -> None:
    """Draw the confusion matrix and the loss; of a regression, its fits and weights."""
    check_choice("language", language, PlotLanguage)
    check_picture("path", path)
    with new_figure() as figure:
        _draw_answers(predictor.task, figure, predictor, report, examples, history)
        if language == "zh":
            _translate(figure)
        with new_file(path) as temporary:  # to which matplotlib would add an ending of its own
            figure.savefig(temporary, format=path.suffix[1:].lower())


@singledispatch
def _draw_answers(
    task: object,
    figure: "Figure",
    predictor: Member,
    report: AnswerReport,
    examples: Sequence[object],
    history: Sequence[Mapping[str, JsonValue]],
) -> None:
    _draw(figure, [table for table in report.tables if table.is_matrix][:1], history)


@_draw_answers.register(Regression)
def _draw_fits(
    task: Regression,
    figure: "Figure",
    predictor: Predictor,
    report: object,
    examples: Sequence[object],
    history: Sequence[Mapping[str, JsonValue]],
) -> None:
    model = deepcopy(predictor.model).to(CPU)  # drawing needs it there
    _draw_regression(figure, model, task, cast("Sequence[Point]", examples), history)


def _translate(figure: "Figure") -> None:
    """Set titles, names of axes and legends in Chinese; names of labels stay."""
    for axes in figure.axes:
        legend = axes.get_legend()
        for text in (
            axes.title,
            axes.xaxis.label,
            axes.yaxis.label,
            *(legend.get_texts() if legend else ()),
        ):
            for english, chinese in _CHINESE.items():
                if match := re.fullmatch(english, text.get_text()):
                    text.set_text(match.expand(chinese))
                    break


def _draw(
    figure: "Figure", tables: Sequence[Table], history: Sequence[Mapping[str, JsonValue]]
) -> None:
    size = 2.5 + 0.5 * max([4, *(len(table.rows) for table in tables)])
    figure.set_size_inches((size + 1) * len(tables) + 5, size)
    every = figure.subplots(1, len(tables) + 1, squeeze=False)[0]
    for axes, table in zip(every, tables, strict=False):
        _draw_matrix(figure, axes, table)
    _draw_loss(every[-1], history)


def _draw_matrix(figure: "Figure", axes: "Axes", table: Table) -> None:
    """Draw true labels as rows, predicted ones as columns, shaded by fractions of the row."""
    counts = [[float(cell) for cell in row[1:]] for row in table.rows]
    shares = [[cell / max(1.0, sum(row)) for cell in row] for row in counts]
    image = axes.imshow(shares, vmin=0, vmax=1, cmap="cividis")
    names = [str(row[0]) for row in table.rows]
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("Predicted label")
    axes.set_ylabel("True label")
    axes.set_title("Confusion matrix")
    if len(names) <= _MOST_FIGURES:
        for y, row in enumerate(counts):
            for x, count in enumerate(row):
                shade = "black" if shares[y][x] > 0.5 else "white"
                axes.text(x, y, f"{count:,.0f}", ha="center", va="center", color=shade)
    figure.colorbar(image, label="Fraction of the row")


def _draw_loss(axes: "Axes", history: Sequence[Mapping[str, JsonValue]]) -> None:
    """Loss against updates, in training and on the validation examples."""
    for split, colour in (("train", _TRAIN), ("valid", _VALID)):
        records = [record for record in history if record["split"] == split]
        updates, losses = (
            [cast("float", record[name]) for record in records] for name in ("update", "loss")
        )
        name = {"train": "training", "valid": "validation"}[split]
        marker = "o" if len(records) <= _MOST_MARKED else None
        axes.plot(updates, losses, color=colour, marker=marker, label=name)
    axes.set_xlabel("update")
    axes.set_ylabel("loss")
    axes.set_title("Training")
    axes.legend()


@torch.no_grad()
def _draw_regression(
    figure: "Figure",
    model: nn.Module,
    task: Regression,
    examples: Sequence[Point],
    history: Sequence[Mapping[str, JsonValue]],
) -> None:
    """Average pooling, the first and the learned bandwidth; two weight maps; the loss."""
    # With one input the fits are curves over the whole range, with the points; with more,
    # predictions against true values.
    models = _models(model, task)
    chosen = _spread(sorted(examples, key=lambda point: point.inputs), _MOST)
    batch = task.collate(task.encode(chosen))
    has_curve = len(task.names) == 1
    queries = batch
    if has_curve:
        every = torch.cat([task.places[:, 0], batch["inputs"][:, 0]])
        points = torch.linspace(float(every.min()), float(every.max()), _PLACES)[:, None]
        queries = {"inputs": points, "own": torch.full((_PLACES,), -1)}
    figure.set_size_inches(13, 8)
    above, below = figure.subplots(2, 3)
    guesses = [task.guesses(regression, queries)[:, 0].numpy() for regression in models.values()]
    numbers = [task.seen[:, 0].numpy(), batch["target"][:, 0].numpy(), *guesses]
    low, high = (pick(float(pick(values)) for values in numbers) for pick in (min, max))
    for axes, name, predicted in zip(above, models, guesses, strict=True):
        if has_curve:
            _draw_curve(axes, task, batch, queries, predicted)
        else:
            _draw_against(axes, batch, predicted)
        axes.set_title(name)
        margin = 0.05 * (high - low)
        axes.set_ylim(low - margin, high + margin)
    for axes, (name, regression) in zip(below, list(models.items())[1:], strict=False):
        image = axes.imshow(
            _weights(regression, task, batch), aspect="auto", cmap="cividis", vmin=0
        )
        axes.set_title(f"Weights, {name[0].lower()}{name[1:]}")
        axes.set_xlabel("training points, in order")
        axes.set_ylabel("predictions, in order")
        figure.colorbar(image)
    _draw_loss(below[2], history)


def _models(model: nn.Module, task: Regression) -> dict[str, KernelRegression]:
    config, dim = task.recipe.settings(KernelRegressionConfig), len(task.names)
    assert isinstance(model, KernelRegression)
    is_one = task.data.scale == "none" and len(model.bandwidth) == 1
    steps = torch.ones(1) if is_one else task.step  # every input has a unit of its own
    began = ", ".join(f"{width:.3g}" for width in (steps * config.bandwidth).tolist()[:3])
    learned = ", ".join(f"{width:.3g}" for width in (steps * model.bandwidth).tolist()[:3])
    more = " …" if len(steps) > 3 else ""
    pooling = replace(config, bandwidth=float("inf"), is_learned=False)
    return {
        "Average pooling": KernelRegression(pooling, dim=dim),
        f"Bandwidth {began}{more}, not learned": KernelRegression(config, dim=dim),
        f"Learned bandwidth {learned}{more}": model,
    }


def _draw_curve(
    axes: "Axes", task: Regression, batch: Batch, curve: Batch, predicted: Float[np.ndarray, " N"]
) -> None:
    learned, queries, line = (
        (places * task.step + task.origin)[:, 0].tolist()
        for places in (task.places, batch["inputs"], curve["inputs"])
    )
    training = list(zip(learned, task.seen[:, 0].tolist(), strict=True))
    points = zip(*_spread(training, _MOST_POINTS), strict=True)
    axes.plot(*points, "o", color="#999999", ms=4, label="training")
    is_curve = task.data.example != "none" and not task.recipe.named("train")
    right = batch["target"][:, 0].tolist()
    axes.plot(queries, right, "--" if is_curve else "o", color=_VALID, ms=4, label="True value")
    axes.plot(line, predicted, color=_TRAIN, label="predicted")
    axes.set_xlabel(task.names[0])
    axes.legend()


def _draw_against(axes: "Axes", batch: Batch, predicted: Float[np.ndarray, " N"]) -> None:
    right = batch["target"][:, 0].tolist()
    axes.axline((right[0], right[0]), slope=1, color="#999999", ls="--")
    axes.plot(right, predicted, "o", color=_TRAIN, ms=4)
    axes.set_xlabel("True value")
    axes.set_ylabel("Predicted value")


def _weights(model: KernelRegression, task: Regression, batch: Batch) -> Float[np.ndarray, "N M"]:
    order = task.places[:, 0].argsort()
    weights = model.weights(batch["inputs"], task.places[order])
    return weights[:, _spread(range(len(order)), _MOST)].numpy()


def _spread(items: Sequence[T], most: int) -> list[T]:
    """At most so many, evenly."""
    return [items[index] for index in range(0, len(items), -(-len(items) // most))]


@contextmanager
def new_figure(**options: object) -> "Iterator[Figure]":
    """A figure of matplotlib whose labels may be in Chinese; no setting is changed for others."""
    try:
        from matplotlib import rc_context, rcParams
        from matplotlib.figure import Figure
    except ImportError:
        raise SettingError(
            "matplotlib must be installed to draw; it is not. "
            "Install it: pip install 'regard[plots]'."
        ) from None
    family = [*rcParams["font.family"], *_chinese_font()]
    with warnings.catch_warnings(record=True) as caught, rc_context({"font.family": family}):
        warnings.filterwarnings("always", _BOX)
        yield Figure(layout="constrained", **options)  # type: ignore[arg-type]
    unrelated = [warning for warning in caught if not re.match(_BOX, str(warning.message))]
    for warning in unrelated:
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    if len(unrelated) < len(caught):
        warnings.warn(
            "some characters are drawn as boxes: no installed font has them. "
            "Install one, such as Noto Sans CJK.",
            stacklevel=3,
        )


def _chinese_font() -> list[str]:
    """The first of ``CHINESE_FONTS`` that is installed, if one is."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    def installed() -> list[str]:
        names = {entry.name for entry in fontManager.ttflist}
        return [name for name in CHINESE_FONTS if name in names][:1]

    if not installed():  # matplotlib keeps a list, of fonts that were there when it first looked
        for path in sorted({*findSystemFonts()} - {entry.fname for entry in fontManager.ttflist}):
            with suppress(OSError, RuntimeError):
                fontManager.addfont(path)
    return installed()
