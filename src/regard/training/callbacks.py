"""Callbacks of a training, which watch it and may end it."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NotRequired, TypedDict

from regard.devices import preserved_randomness
from regard.inference import Predictor
from regard.runs import RunWarning

# Prefix of the figures that give the fraction of its time that a process waits: its rank follows.
WAITING = "waiting_"


class TrainingSummary(TypedDict):
    """Summary of a finished training, the key ``summary`` of its run.

    The figures of ``candidates`` are those before logits are divided by ``temperature``.
    """

    updates: int
    epochs: int
    target_tokens: int
    weights: str
    validation: dict[str, float]
    candidates: dict[str, dict[str, float]]
    valid: NotRequired[str]
    temperature: NotRequired[float]
    scales: NotRequired[dict[str, float]]
    beside: NotRequired[str]


class TrainedSummary(TrainingSummary):
    """Result of a training, with its time, which differs from run to run."""

    seconds: float


class OngoingTraining:
    """A training while it goes on.

    Attributes:
        path: The run folder.
        predictor: The model as it is now, in use: for questions of one's own in between.
        is_stopped: Whether somebody has called ``stop``.
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
        tokens: Target tokens that it learned from, or the task's own unit of the loss.
        figures: ``loss``, the mean over those; ``learning_rate``; ``gradient_norm``.
        training: The training, to ask the model or to stop.
    """

    number: int
    epoch: int
    tokens: int
    figures: Mapping[str, float]
    training: OngoingTraining


@dataclass(frozen=True, kw_only=True, slots=True)
class Validation:
    """Arguments of a callback after a validation; the best so far has been saved.

    Attributes:
        update: Updates made so far.
        figures: ``loss`` and the task's own.
        is_best: Whether it is the best so far, by ``training.metric``.
        samples: A few outputs, a line each, ten times in a training.
        training: The training, to ask the model or to stop.
    """

    update: int
    figures: Mapping[str, float]
    is_best: bool
    samples: Sequence[str]
    training: OngoingTraining


class Callback:
    """Base of callbacks; a subclass overrides the methods that it needs.

    A callback leaves no mark on the training: random numbers are given back, and the model is put
    into training mode anyway. An error in it ends the training, which is saved first; the same call
    resumes.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> from regard.tasks.labels.regression import Regression
        >>> class Enough(Callback):
        ...     def on_update(self, update: Update) -> None:
        ...         if update.figures["loss"] < 0.5:
        ...             (prediction,) = update.training.predictor.predict(["1.5"])
        ...             print(update.number, round(prediction.value, 1))
        ...             update.training.stop()
        >>> settings = {"data": {"example": "sine"}, "model": {"is_learned": True}}
        >>> recipe = recipe_from_table({"task": "regression", **settings})
        >>> task = Regression.learn(recipe, Regression.read(recipe, "train"))
        >>> training = OngoingTraining(Path("run"), Predictor(task.build_model(), task))
        >>> figures = {"loss": 0.4, "learning_rate": 0.01, "gradient_norm": 1.0}
        >>> Enough().on_update(
        ...     Update(number=40, epoch=2, tokens=50, figures=figures, training=training)
        ... )
        40 2.9
        >>> training.is_stopped
        True
    """

    def on_start(self, lines: Sequence[str], *, loss_unit: str = "tokens", valid: str = "") -> None:
        """Called when text and model are ready.

        Args:
            lines: A description of the training, in lines.
            loss_unit: The unit of ``Update.tokens``, in the plural.
            valid: Number and unit of the validation examples: ``48 texts``.
        """

    def training(self, share: Callable[[], float]) -> AbstractContextManager[object]:
        """A context around the updates; ``share`` gives the fraction of them that is done."""
        return nullcontext()

    def on_update(self, update: Update, /) -> None:
        """Called after each update."""

    def on_validation(self, validation: Validation, /) -> None:
        """Called after each validation."""

    def on_resume(self, update: int) -> None:
        """Called when training resumes after an update."""

    def on_interrupt(self, path: Path, update: int) -> None:
        """Called when training ends early, after it has saved."""

    def on_finish(self, path: Path, summary: TrainingSummary, seconds: float) -> None:
        """Called when the final weights are written."""


class Callbacks(Callback):
    """Calls other callbacks: the reporter, the watchers and the users' own."""

    # One that the system refuses to let write is called no more, with a RunWarning: the reporter
    # where that raises OSError, a watcher of our own whatever it raises. Errors of the users' are
    # all raised.

    def __init__(self, reporter: Callback, *watchers: Callback) -> None:
        self._tolerated: list[tuple[Callback, type[Exception]]] = [(reporter, OSError)]
        self._tolerated += [(watcher, Exception) for watcher in watchers]
        self._users: list[Callback] = []

    def add(self, callbacks: Sequence[Callback]) -> None:
        """Call further ones from now on, whose errors are all raised."""
        self._users += callbacks

    def on_start(self, lines: Sequence[str], *, loss_unit: str = "tokens", valid: str = "") -> None:
        self._call(lambda callback: callback.on_start(lines, loss_unit=loss_unit, valid=valid))

    @contextmanager
    def training(self, share: Callable[[], float]) -> Iterator[None]:
        with ExitStack() as stack:
            for callback in (*(tolerated for tolerated, _ in self._tolerated), *self._users):
                stack.enter_context(callback.training(share))
            yield

    def on_update(self, update: Update, /) -> None:
        self._call(lambda callback: callback.on_update(update), update.training)

    def on_validation(self, validation: Validation, /) -> None:
        self._call(lambda callback: callback.on_validation(validation), validation.training)

    def on_resume(self, update: int) -> None:
        self._call(lambda callback: callback.on_resume(update))

    def on_interrupt(self, path: Path, update: int) -> None:
        self._call(lambda callback: callback.on_interrupt(path, update))

    def on_finish(self, path: Path, summary: TrainingSummary, seconds: float) -> None:
        self._call(lambda callback: callback.on_finish(path, summary, seconds))

    def _call(
        self, call: Callable[[Callback], None], training: OngoingTraining | None = None
    ) -> None:
        for callback, tolerated in list(self._tolerated):
            try:
                call(callback)
            except tolerated as error:
                self._tolerated.remove((callback, tolerated))
                with suppress(OSError):  # the warning may go where that went
                    warnings.warn(
                        f"{type(callback).__name__} must be able to write; got: {error}. "
                        "Training goes on without it.",
                        RunWarning,
                        stacklevel=2,
                    )
        if not self._users:
            return
        with nullcontext() if training is None else preserved_randomness(training.predictor.device):
            for callback in self._users:
                call(callback)
