"""Regression: a number predicted from numbers, by those seen nearby."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save_file
from torch import Generator, Tensor, nn

from regard.attention import documents
from regard.config import JsonValue, check_header
from regard.devices import moved
from regard.devices.memory import is_finite
from regard.errors import DataError, RunError, SettingError
from regard.fields import several
from regard.models import KernelRegression, KernelRegressionConfig
from regard.models.kernel_regression import SineExample
from regard.tasks.batches import Batch, Sample
from regard.tasks.drawing import Drawing, words_text
from regard.tasks.oddities import CheckedExample
from regard.tasks.one_pass_task import Loss, OnePassTask
from regard.tasks.settings.data import RegressionConfig, RegressionData
from regard.tasks.settings.recipe import Recipe
from regard.tasks.tables import Table
from regard.text import BadLines, Line
from regard.text.files import read_plain
from regard.text.reading.points import Point, cells_of, number_of, read_points
from regard.text.reading.records import Handling
from regard.viewer import Prediction

__all__ = ["Guess", "Regression", "RegressionConfig", "RegressionData"]

_POINTS_FILE = "points.safetensors"
# Inputs that are named, and parts of equal size that errors are listed by.
_MOST_NAMED = 10
_PARTS = 5
# Training points that a page shows, those of the largest weights; and the caption of the weight.
_MOST_DRAWN = 20
_GRAIN = 1e-6  # standard deviations to which their inputs are exact
WEIGHT = "the more this training point weighs in the prediction"


@dataclass(frozen=True, slots=True)
class Guess:
    """A predicted number, in the unit of the targets.

    Example:
        >>> Guess(2 / 3).text(), Guess(0.5).to_dict()
        ('0.666667', {'value': 0.5})
    """

    value: float

    def text(self) -> str:
        """Six digits of it."""
        return f"{self.value:.6g}"

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        return {"value": self.value}


class Regression(OnePassTask[Point, Guess]):
    """Points to numbers.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> points = [Point((x,), 2 * x, ("x",), "") for x in (1.0, 2.0, 3.0)]
        >>> recipe = recipe_from_table({"task": "regression", "model": {"is_learned": True}})
        >>> task = Regression.learn(recipe, points)
        >>> asked = [task.request("2.0", "line 1"), task.request({"x": 3.0}, "line 2")]
        >>> guesses = task.predict(task.build_model(), task.collate(task.encode(asked)))
        >>> [round(guess.value, 3) for guess in guesses]  # of 2, 4 and 6, the nearer counts more
        [4.0, 4.993]
        >>> batch = task.collate(task.encode(points, training=True))
        >>> batch["inputs"].tolist(), batch["target"].tolist(), batch["own"].tolist()
        ([[1.0], [2.0], [3.0]], [[2.0], [4.0], [6.0]], [0, 1, 2])
    """

    unit: ClassVar[str] = "points"
    are_texts: ClassVar[bool] = False
    request_name: ClassVar[str] = "NUMBERS"
    metrics: ClassVar[Mapping[str, int]] = {"rmse": -1, "r2": 1}
    learned = ("inputs",)
    file = "columns.json"
    data: RegressionData
    inputs: Annotated[list[str], several(1)]

    def __init__(
        self,
        recipe: Recipe,
        tokenizer: None = None,
        *,
        inputs: Sequence[str],
        origin: Float[Tensor, " D"],
        step: Float[Tensor, " D"],
        places: Float[Tensor, "M D"],
        seen: Float[Tensor, "M 1"],
    ) -> None:
        super().__init__(recipe, inputs=list(inputs))
        self.names = tuple(inputs)
        self.origin, self.step = origin, step
        self.places, self.seen = places, seen

    @classmethod
    def read(cls, recipe: Recipe, split: str, *, bad_lines: BadLines | None = None) -> list[Point]:
        """The points of a split; none if the recipe names no file and no example."""
        data = recipe.settings(RegressionData)
        if not recipe.named("train") and not recipe.named(split) and data.example == "sine":
            return _sine(data, split)
        return super().read(recipe, split, bad_lines=bad_lines)

    @classmethod
    def read_file(cls, file: Path, data: Any, handling: Handling) -> Iterable[Point]:
        return read_points(file, inputs=data.inputs, target=data.target, **handling)

    @staticmethod
    def subject(example: Point) -> str:
        return repr(example.inputs)

    @staticmethod
    def checked(example: Point) -> CheckedExample:
        text = ", ".join(f"{number:g}" for number in example.inputs)
        return CheckedExample((text,), (), example.where)

    @staticmethod
    def named_texts(example: Point) -> dict[str, str]:
        inputs = zip(example.names, example.inputs, strict=True)
        target = {} if example.target is None else {"target": f"{example.target:g}"}
        return {**{name: f"{value:g}" for name, value in inputs}, **target}

    @classmethod
    def learn(cls, recipe: Recipe, examples: Sequence[Point]) -> "Regression":
        """The task with the training points.

        Raises:
            DataError: There are fewer than two, an input is the same in all, or files differ in
                their columns.
        """
        if len(examples) < 2:
            raise DataError(
                f"data.train must hold at least two points; got {len(examples)}. Each is guessed "
                "from the others."
            )
        names = examples[0].names
        for example in examples:
            _check_names(example, names)
        inputs = torch.tensor([example.inputs for example in examples], dtype=torch.float64)
        for name, column in zip(names, inputs.T, strict=True):
            if column.eq(column[0]).all():
                raise DataError(
                    f"{name} must vary to guess from it; it is {column[0].item():g} in all points. "
                    "Leave it out of data.inputs."
                )
        origin, step = torch.zeros(len(names)).double(), torch.ones(len(names)).double()
        if recipe.settings(RegressionData).scale == "deviation":
            origin, step = inputs.mean(0), inputs.std(0)
        targets = torch.tensor([[_target(example)] for example in examples])
        scaled = {"origin": origin, "step": step, "places": ((inputs - origin) / step).float()}
        return cls(recipe, None, inputs=names, **scaled, seen=targets)

    @classmethod
    def load_learned(cls, folder: Path) -> dict[str, Any]:
        """The points that ``save`` wrote; RunError if they are missing or damaged."""
        learned, path = super().load_learned(folder), folder / _POINTS_FILE
        try:
            content = read_plain(path)
            check_header(content)
            saved = load_tensors(content)
        except (SafetensorError, ValueError) as error:
            raise RunError(f"{path} must be a safetensors file; it is damaged: {error}.") from error
        count, points = len(learned["inputs"]), len(saved.get("seen", ()))
        shapes = {"origin": (count,), "step": (count,), "seen": (points, 1)}
        shapes["places"] = (points, count)
        for name, shape in shapes.items():
            tensor = saved.get(name)
            is_usable = tensor is not None and tensor.is_floating_point() and is_finite(tensor)
            if not (points and is_usable and saved[name].shape == shape):
                raise RunError(
                    f"{path} must hold finite numbers of points with {count} inputs; "
                    f"{name} does not. It is damaged."
                )
        if not saved["step"].gt(0).all():
            raise RunError(f"{path} must hold a step above 0 for each input. It is damaged.")
        return {**learned, **{name: saved[name] for name in shapes}}

    def save(self, folder: Path) -> None:
        super().save(folder)
        scale = {"origin": self.origin, "step": self.step}
        save_file({**scale, "places": self.places, "seen": self.seen}, folder / _POINTS_FILE)

    @property
    def settings(self) -> KernelRegressionConfig:
        """The settings of the model."""
        return self.recipe.settings(KernelRegressionConfig)

    def build_model(self) -> nn.Module:
        """The recipe's kernel regression; SettingError if it has nothing to train."""
        config = self.settings
        if not config.is_learned or config.kernel == "box" or config.bandwidth == float("inf"):
            raise SettingError(
                "model must have a bandwidth to learn: is_learned, finite, of another kernel than "
                f"box, which has no gradient; got is_learned={config.is_learned}, kernel="
                f"{config.kernel!r}, bandwidth={config.bandwidth:g}. A fixed one needs no "
                "training: regard.models.KernelRegression."
            )
        return KernelRegression(config, dim=len(self.names))

    def describe(self) -> list[str]:
        return [f"guessed from {', '.join(self.names[:10])}{' …' if len(self.names) > 10 else ''}"]

    def describe_learned(self, model: nn.Module) -> list[str]:
        """The bandwidth of each input, in its own unit."""
        assert isinstance(model, KernelRegression)
        began = self.settings.bandwidth
        widths = (model.bandwidth.detach().cpu() * self.step).tolist()
        if self.data.scale == "none" and len(model.bandwidth) == 1:
            return [f"bandwidth {widths[0]:.4g} ({began:.4g} before training)"]
        steps = zip(self.names, widths, self.step.tolist(), strict=True)
        described = [f"{name} {width:.4g} ({began * step:.4g})" for name, width, step in steps]
        more = " …" if len(described) > _MOST_NAMED else ""
        return [f"bandwidths (before training): {', '.join(described[:_MOST_NAMED])}{more}"]

    def request(self, record: str | Mapping[str, JsonValue], where: str) -> Point:
        """The inputs in a JSON record, or in a line between tabs or commas; else a DataError."""
        names = ", ".join(self.names)
        if isinstance(record, str):
            cells = cells_of(Line(record, where), "\t" if "\t" in record else ",")
            if tuple(cells) == self.names:
                raise DataError(f"{where}: expected numbers, found the header. Leave it out.")
            if len(cells) != len(self.names):
                raise DataError(
                    f"{where}: expected {len(self.names)} numbers ({names}), found {len(cells)}."
                )
            values = dict(zip(self.names, cells, strict=True))
        else:
            missing = [name for name in self.names if name not in record]
            if missing:
                raise DataError(
                    f"{where}: {missing[0]} must be given; got {', '.join(record) or 'nothing'}."
                )
            values = {name: _written(record[name], name, where) for name in self.names}
        inputs = tuple(number_of(values[name], name, where) for name in self.names)
        return Point(inputs, None, self.names, where)

    def samples(
        self, examples: Sequence[Point], too_long: BadLines, *, training: bool
    ) -> Iterator[Sample]:
        """Numbers of each point; in training, its index among the training points as ``own``."""
        for index, example in enumerate(examples):
            _check_names(example, self.names)
            excluded = index if training else -1
            yield {"inputs": example.inputs, "target": [_target(example)], "own": excluded}

    def collate(self, encoded: Sequence[Sample], *, generator: Generator | None = None) -> Batch:
        batch = super().collate(encoded)
        inputs = torch.tensor(batch["inputs"], dtype=torch.float64)
        return {**batch, "inputs": ((inputs - self.origin) / self.step).float()}

    @property
    def loss_unit(self) -> str:
        return "points" if self._is_mean else "batches"

    @property
    def _is_mean(self) -> bool:
        return self.recipe.settings(RegressionConfig).loss == "mean"

    def batch_loss(self, model: nn.Module, batch: Batch, smoothing: float) -> Loss:
        """The summed squared error, and its divisor: the number of points, or one."""
        loss = (self.guesses(model, batch) - batch["target"]).square().sum()
        return loss, len(batch["own"]) if self._is_mean else 1

    def guesses(self, model: nn.Module, batch: Batch) -> Float[Tensor, "B 1"]:
        """The number at each point: of a training point, made from the others."""
        indices, mask = batch["own"], None
        if indices.ge(0).any():
            mask = ~documents(indices, torch.arange(len(self.places), device=indices.device))
        keys, values = moved((self.places, self.seen), indices.device)
        numbers: Tensor = model(batch["inputs"], keys, values, mask=mask)
        return numbers

    def predict(self, model: nn.Module, batch: Batch) -> list[Guess]:
        return [Guess(value) for value in self.guesses(model, batch)[:, 0].tolist()]

    def score(self, answers: Sequence[Guess], examples: Sequence[Point]) -> dict[str, float]:
        """Root of the mean squared error; share of the variance that is explained."""
        predicted, true = _columns(answers, examples)
        errors = (predicted - true) ** 2
        spread = ((true - true.mean()) ** 2).sum()
        r2 = 1 - errors.sum() / spread if spread else 0.0
        return {"rmse": float(errors.mean() ** 0.5), "r2": float(r2)}

    def example_score(self, answer: Guess, example: Point) -> float:
        """1 without error, less the larger it is."""
        return 1 / (1 + abs(answer.value - _target(example)))

    @torch.no_grad()
    def baselines(
        self, train: Sequence[Point], examples: Sequence[Point]
    ) -> dict[str, list[Guess]]:
        """The mean, which is average pooling; and the bandwidth as it was before training."""
        mean = float(np.mean([_target(point) for point in train]))
        untrained = KernelRegression(replace(self.settings, is_learned=False), dim=len(self.names))
        unit = " standard deviations" if self.data.scale == "deviation" else ""
        return {
            "the mean of the training points": [Guess(mean)] * len(examples),
            f"bandwidth {self.settings.bandwidth:g}{unit}": self.predict(
                untrained, self.collate(self.encode(examples))
            ),
        }

    def tables(self, answers: Sequence[Guess], examples: Sequence[Point]) -> list[Table]:
        """Errors by the size of the target."""
        predicted, true = _columns(answers, examples)
        rows = []
        for part in np.array_split(np.argsort(true, kind="stable"), _PARTS):
            if len(part):
                errors = predicted[part] - true[part]
                figures = (true[part[0]], true[part[-1]], errors.mean(), (errors**2).mean() ** 0.5)
                low, high, bias, rmse = (f"{figure:.4g}" for figure in figures)
                rows.append((f"{low} to {high}", bias, rmse, len(part)))
        columns = ("right", "mean error", "rmse", "count")
        return [Table("by what is right", columns, tuple(rows))]

    @torch.no_grad()
    def draw(self, model: nn.Module, example: Point, encoded: Sample, answer: Guess) -> Drawing:
        """The prediction, and the training points it is the mean of, by their weights in it."""
        assert isinstance(model, KernelRegression)
        batch = moved(self.collate([encoded]), model.w.device)
        weights = model.weights(batch["inputs"], self.places.to(model.w.device))[0].cpu()
        shown = weights.topk(min(_MOST_DRAWN, len(weights)))
        grain = _GRAIN * self.step
        places = self.places[shown.indices].double() * self.step + self.origin
        places = (places / grain).round() * grain + 0.0  # float32 keeps no exact 0, and none is -0
        points = [
            f"{self._point(place)}: {seen:.4g}"
            for place, seen in zip(
                places.tolist(), self.seen[shown.indices, 0].tolist(), strict=True
            )
        ]
        asked = f"{self._point(example.inputs)} → {answer.text()}"
        values = (0.0, *shown.values.tolist())
        return Drawing(
            text=words_text([asked, *points], "\n"),
            prediction=Prediction(values=values, measure=WEIGHT),
        )

    def _point(self, inputs: Sequence[float]) -> str:
        named = zip(self.names, inputs, strict=True)
        return ", ".join(f"{name} {value:.4g}" for name, value in named)

    def show(self, example: Point, answer: Guess) -> str:
        right = f" (right: {_target(example):.4g})"
        return f"{self._point(example.inputs)} → {answer.value:.4g}{right}"


def _sine(data: RegressionData, split: str) -> list[Point]:
    """The example: drawn points to train on, the curve itself to validate and test on."""
    drawn = SineExample.draw(data.seed, count=data.points, noise=data.noise)
    x, y = (drawn.places, drawn.targets) if split == "train" else (drawn.queries, drawn.truth)
    pairs = zip(x[:, 0].tolist(), y[:, 0].tolist(), strict=True)
    return [
        Point((x_value,), target, ("x",), f"the example's point {number}")
        for number, (x_value, target) in enumerate(pairs, 1)
    ]


def _check_names(example: Point, names: tuple[str, ...]) -> None:
    if example.names != names:
        raise DataError(
            f"{example.where}: inputs must be those of training ({', '.join(names)}); got "
            f"{', '.join(example.names)}. Set data.inputs and data.target."
        )


def _target(example: Point) -> float:
    """The right number; NaN where it is asked for."""
    return float("nan") if example.target is None else example.target


def _written(value: object, name: str, where: str) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise DataError(f"{where}: {name} must be a number; got {value!r}.")
    return str(value)


def _columns(
    answers: Sequence[Guess], examples: Sequence[Point]
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    predicted = np.array([answer.value for answer in answers])
    return predicted, np.array([_target(example) for example in examples])
