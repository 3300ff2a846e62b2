"""Everyone who is told of a training: none of them can stop it by failing to write."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from regard.runs import RunWarning
from regard.training.progress import Reporter, TrainingSummary


class Listeners:
    """A reporter that tells others.

    One that the system lets write no more is told no more, with a RunWarning.

    Args:
        reporter: The user's own; what else goes wrong in it is an error.
        watchers: Ours, which are let go whatever goes wrong in them.
    """

    def __init__(self, reporter: Reporter, *watchers: Reporter) -> None:
        self._listeners: list[tuple[Reporter, type[Exception]]] = [(reporter, OSError)]
        self._listeners += [(watcher, Exception) for watcher in watchers]

    def started(self, facts: Sequence[str], *, counted: str) -> None:
        """Text and model are ready."""
        self._tell(lambda each: each.started(facts, counted=counted))

    @contextmanager
    def training(self, share: Callable[[], float]) -> Iterator[None]:
        """A context around the loop."""
        with ExitStack() as stack:
            for listener, _ in self._listeners:
                stack.enter_context(listener.training(share))
            yield

    def updated(self, update: int, epoch: int, tokens: int, figures: Mapping[str, float]) -> None:
        """After each update."""
        self._tell(lambda each: each.updated(update, epoch, tokens, figures))

    def validated(
        self, update: int, figures: Mapping[str, float], *, is_best: bool, samples: Sequence[str]
    ) -> None:
        """After each validation."""
        self._tell(lambda each: each.validated(update, figures, is_best=is_best, samples=samples))

    def resumed(self, update: int) -> None:
        """Training goes on from a checkpoint."""
        self._tell(lambda each: each.resumed(update))

    def interrupted(self, path: Path, update: int) -> None:
        """Training ends early, and has saved."""
        self._tell(lambda each: each.interrupted(path, update))

    def finished(self, path: Path, summary: TrainingSummary, seconds: float) -> None:
        """The final weights are written."""
        self._tell(lambda each: each.finished(path, summary, seconds))

    def _tell(self, tell: Callable[[Reporter], None]) -> None:
        for each in list(self._listeners):
            listener, bearable = each
            try:
                tell(listener)
            except bearable as error:
                self._listeners.remove(each)
                with suppress(OSError):  # the warning may go where that went
                    warnings.warn(
                        f"{type(listener).__name__} must be able to write; got: {error}. "
                        "Training goes on without it.",
                        RunWarning,
                        stacklevel=2,
                    )
