"""Callbacks of a training, which may watch it and end it."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from regard.devices import kept_randomness
from regard.inference import Predictor
from regard.training.progress import TrainingSummary


class OngoingTraining:
    """A training while it goes on.

    Attributes:
        path: The run folder.
        predictor: The model as it is now, in use: for questions of one's own in between.
        is_stopped: Whether somebody has called ``stop``.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> from regard.tasks.regression import Regression
        >>> settings = {"data": {"example": "sine"}, "model": {"is_learned": True}}
        >>> recipe = recipe_from_table({"task": "regression", **settings})
        >>> task = Regression.learn(recipe, Regression.read(recipe, "train"))
        >>> training = OngoingTraining(Path("run"), Predictor(task.build_model(), task))
        >>> [round(guess.value, 1) for guess in training.predictor.predict(["1.5", "4.5"])]
        [2.9, 1.8]
        >>> training.stop()
        >>> training.is_stopped
        True
    """

    def __init__(self, path: Path, predictor: Predictor) -> None:
        self.path, self.predictor = path, predictor
        self.is_stopped = False

    def stop(self) -> None:
        """End the training after this update, as if its limit were reached.

        It is validated, its weights are chosen, and the run is done. To train on, call ``train``
        again.
        """
        self.is_stopped = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Update:
    """Arguments of a callback after an update.

    Attributes:
        number: Updates made so far, with this one.
        epoch: In which epoch, from 0.
        tokens: What it learned from: target tokens, or whatever the task counts.
        figures: ``loss``, the mean over those; ``learning_rate``; ``gradient_norm``.
        training: The training, to ask the model or to stop.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> from regard.tasks.regression import Regression
        >>> class Enough(Callback):
        ...     def on_update(self, update: Update) -> None:
        ...         if update.figures["loss"] < 0.5:
        ...             update.training.stop()
        >>> settings = {"data": {"example": "sine"}, "model": {"is_learned": True}}
        >>> recipe = recipe_from_table({"task": "regression", **settings})
        >>> task = Regression.learn(recipe, Regression.read(recipe, "train"))
        >>> training = OngoingTraining(Path("run"), Predictor(task.build_model(), task))
        >>> figures = {"loss": 0.4, "learning_rate": 0.01, "gradient_norm": 1.0}
        >>> Enough().on_update(
        ...     Update(number=40, epoch=2, tokens=50, figures=figures, training=training)
        ... )
        >>> training.is_stopped
        True
    """

    number: int
    epoch: int
    tokens: int
    figures: Mapping[str, float]
    training: OngoingTraining


@dataclass(frozen=True, kw_only=True, slots=True)
class Validation:
    """Arguments of a callback after a validation; a checkpoint has been saved.

    Attributes:
        update: Updates made so far.
        figures: ``loss`` and the task's own.
        is_best: Whether it is the best so far, by ``training.metric``.
        samples: A few outputs, a line each.
        training: The training, to ask the model or to stop.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> from regard.tasks.regression import Regression
        >>> class Told(Callback):
        ...     def on_validation(self, validation: Validation) -> None:
        ...         asked = validation.training.predictor.predict(["1.5"])
        ...         print(validation.update, validation.figures["rmse"], round(asked[0].value, 1))
        >>> settings = {"data": {"example": "sine"}, "model": {"is_learned": True}}
        >>> recipe = recipe_from_table({"task": "regression", **settings})
        >>> task = Regression.learn(recipe, Regression.read(recipe, "train"))
        >>> training = OngoingTraining(Path("run"), Predictor(task.build_model(), task))
        >>> figures = {"loss": 0.49, "rmse": 0.7}
        >>> Told().on_validation(
        ...     Validation(update=40, figures=figures, is_best=True, samples=(), training=training)
        ... )
        40 0.7 2.9
    """

    update: int
    figures: Mapping[str, float]
    is_best: bool
    samples: Sequence[str]
    training: OngoingTraining


@runtime_checkable
class Callback(Protocol):
    """Interface of callbacks; a subclass may override one method or both.

    What it does leaves no mark on the training: random numbers are given back, and the model is put
    into training mode anyway. What it raises ends the training, which is saved first, and which the
    same call goes on with.

    Example:
        >>> class Patience(Callback):
        ...     def on_update(self, update: Update) -> None:
        ...         if update.figures["loss"] < 0.5:
        ...             update.training.stop()
        >>> isinstance(Patience(), Callback)
        True
    """

    def on_update(self, update: Update, /) -> None:
        """After each update."""

    def on_validation(self, validation: Validation, /) -> None:
        """After each validation."""


class CallbackReporter:
    """A reporter that calls callbacks, in their order.

    Args:
        callbacks: Who is called.
        training: What they are told of.
    """

    def __init__(self, callbacks: Sequence[Callback], training: OngoingTraining) -> None:
        self._callbacks, self._training = tuple(callbacks), training

    def started(self, facts: Sequence[str], *, counted: str, valid: str) -> None:
        """Nothing to call."""

    def training(self, share: Callable[[], float]) -> AbstractContextManager[object]:
        """Nothing to call."""
        return nullcontext()

    def updated(self, update: int, epoch: int, tokens: int, figures: Mapping[str, float]) -> None:
        """Calls ``on_update``."""
        told = Update(
            number=update,
            epoch=epoch,
            tokens=tokens,
            figures=dict(figures),
            training=self._training,
        )
        with kept_randomness(self._training.predictor.device):
            for each in self._callbacks:
                each.on_update(told)

    def validated(
        self, update: int, figures: Mapping[str, float], *, is_best: bool, samples: Sequence[str]
    ) -> None:
        """Calls ``on_validation``."""
        told = Validation(
            update=update,
            figures=dict(figures),
            is_best=is_best,
            samples=tuple(samples),
            training=self._training,
        )
        with kept_randomness(self._training.predictor.device):
            for each in self._callbacks:
                each.on_validation(told)

    def resumed(self, update: int) -> None:
        """Nothing to call."""

    def interrupted(self, path: Path, update: int) -> None:
        """Nothing to call."""

    def finished(self, path: Path, summary: TrainingSummary, seconds: float) -> None:
        """Nothing to call."""
