"""The training loop: one for every task, on plain torch."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from regard.errors import TrainingError
from regard.inference import Run, average
from regard.inference.checkpoints import fill_model
from regard.training.averaging import MovingAverage
from regard.training.interruption import Interruption
from regard.training.optimizers import make_optimizer
from regard.training.precision import compute_dtype, keep_freed_memory, mixed_precision
from regard.training.progress import Reporter
from regard.training.schedule import peak_rate, rate_at
from regard.training.settings import TrainingConfig


@runtime_checkable
class Task(Protocol):
    """What the loop asks of a task."""

    @property
    def model_dim(self) -> int:
        """The width that the paper's learning rate depends on."""

    @property
    def num_samples(self) -> int:
        """Samples in an epoch."""

    @property
    def metrics(self) -> Mapping[str, int]:
        """What ``training.metric`` may name: 1 where more is better, -1 where less is."""

    def begin_epoch(self, epoch: int) -> None:
        """Called before the first batch of an epoch."""

    def batches(self, epoch: int, cursor: int) -> Iterator[tuple[Any, int]]:
        """The rest of an epoch's batches after ``cursor`` samples, each with the next cursor."""

    def backward(self, model: nn.Module, batch: Any, *, smoothing: float) -> tuple[Tensor, int]:
        """Add the gradient of the summed loss to the parameters; that loss, and its terms."""

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Figures on the validation set; ``loss`` is always among them."""

    def samples(self, model: nn.Module) -> list[str]:
        """A few outputs for people to read."""


@dataclass
class Position:
    """How far training has come; with the weights and the optimizer, all that a later run needs.

    Attributes:
        update: Optimizer steps made.
        epoch: Which epoch is under way, from 0.
        cursor: Samples of it that are used up.
        seconds: Time spent in updates.
        tokens: Terms of the loss so far: target tokens, or whatever a task predicts.
        best: The best validation figure, by the metric chosen; None before the first.
        best_update: When it was reached.
        stale: Validations since then.
        validated: The update of the last validation.
        loss: The loss summed since the last line of figures.
        terms: And what it is summed over.
    """

    update: int = 0
    epoch: int = 0
    cursor: int = 0
    seconds: float = 0.0
    tokens: int = 0
    best: float | None = None
    best_update: int = 0
    stale: int = 0
    validated: int = 0
    loss: float = 0.0
    terms: int = 0


class Trainer:
    """Trains a model into a run folder, from wherever the folder left off.

    Args:
        run: Open for training.
        model: With new weights; a checkpoint's replace them.
        task: Where batches come from and what validation is.
        config: How to train.
        reporter: Who is told.
    """

    def __init__(
        self, run: Run, model: nn.Module, task: Task, config: TrainingConfig, reporter: Reporter
    ) -> None:
        self.run, self.model, self.task = run, model, task
        self.config, self.reporter = config, reporter
        self.sign = task.metrics[config.metric]
        self.position = Position()
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.device = self.parameters[0].device
        self.dtype = compute_dtype(config.precision, self.device)
        self.peak = peak_rate(config, task.model_dim)
        self.optimizer = make_optimizer(model, config, self.peak, dtype=self.dtype)
        self.ema = None if config.ema is None else MovingAverage(model, config.ema)

    def fit(self) -> dict[str, Any]:
        """Train to the end and write the final weights.

        Returns:
            What the run is remembered by: updates, tokens, seconds, validation figures.

        Raises:
            TrainingError: A loss or gradient was not finite; the last good checkpoint is kept.
            KeyboardInterrupt: Asked to stop; a checkpoint was written first.
        """
        keep_freed_memory()
        torch.manual_seed(self.config.seed)
        self._resume()
        with Interruption() as interruption, self.reporter.training(self._share):
            if self._owes_validation():
                self._validate()
            for batches, epoch_done in self._batches():
                self._update(batches)
                if epoch_done:
                    self.position.epoch += 1
                    self.position.cursor = 0
                is_last = self._is_done()
                if interruption.requested and not is_last:
                    self._save()
                    self.reporter.interrupted(self.run.path, self.position.update)
                    interruption.leave()
                if is_last or self._owes_validation():
                    self._validate()
                if is_last or self._is_stale():
                    break
        return self._finish()

    def _batches(self) -> Iterator[tuple[list[Any], bool]]:
        """The batches of each update, for ever; and whether the epoch ends with them."""
        position = self.position
        while not (self._is_done() or self._is_stale()):
            self.task.begin_epoch(position.epoch)
            group: list[Any] = []
            for batch, cursor in self.task.batches(position.epoch, position.cursor):
                group.append(batch)
                is_end = cursor == self.task.num_samples
                if len(group) == self.config.accumulate or is_end:
                    position.cursor = cursor
                    yield group, is_end
                    group = []

    def _update(self, batches: list[Any]) -> None:
        """One optimizer step on the mean loss per real token of all ``batches``."""
        started = time.perf_counter()
        self.model.train()
        position, config = self.position, self.config
        loss = torch.zeros((), device=self.device)
        tokens = 0
        with mixed_precision(self.dtype, self.device):
            for batch in batches:
                part, terms = self.task.backward(
                    self.model, batch, smoothing=config.label_smoothing
                )
                loss += part
                tokens += terms
        position.update += 1
        rate = rate_at(position.update, self._share(), peak=self.peak, config=config)
        norm = self._scale_gradients(tokens)
        self._check_finite(loss.item() / tokens, norm)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.ema is not None:
            self.ema.update(self.model, position.update)
        position.tokens += tokens
        position.loss, position.terms = position.loss + loss.item(), position.terms + tokens
        position.seconds += time.perf_counter() - started
        figures = {"loss": loss.item() / tokens, "learning_rate": rate, "gradient_norm": norm}
        self.reporter.updated(position.update, position.epoch, tokens, figures)
        # The first ones too: a short training has no others.
        if position.update < REPORT_EVERY or position.update % REPORT_EVERY == 0:
            figures = {**figures, "loss": position.loss / position.terms}  # since the last line
            self.run.append_metrics({"update": position.update, "split": "train", **figures})
            position.loss, position.terms = 0.0, 0

    def _scale_gradients(self, tokens: int) -> float:
        """Sums over tokens become means, and are clipped; the norm before clipping."""
        grads = [p.grad for p in self.parameters if p.grad is not None]
        norm = float(torch.nn.utils.get_total_norm(grads)) / tokens
        limit = self.config.clip_norm
        factor = 1.0 if limit is None or norm <= limit else limit / norm
        torch._foreach_mul_(grads, factor / tokens)
        return norm

    def _check_finite(self, loss: float, norm: float) -> None:
        if math.isfinite(loss) and math.isfinite(norm):
            return
        kept = self.run.newest_checkpoint()
        where = f"The checkpoint of update {kept.step} is kept. " if kept else ""
        raise TrainingError(
            f"the loss and gradient must be finite; got loss {loss:.4g}, gradient norm {norm:.4g} "
            f"at update {self.position.update}. {where}"
            "Lower training.learning_rate, or set training.clip_norm = 1."
        )

    def _owes_validation(self) -> bool:
        """Whether one is due: it may have been put off by an interruption."""
        position = self.position
        is_due = position.update % self.config.validate_every == 0
        return is_due and position.validated < position.update

    def _validate(self) -> None:
        """Measure, tell, and save a checkpoint."""
        position = self.position
        figures = self._measure()
        score = -self.sign * figures[self.config.metric]
        position.validated = position.update
        position.stale += 1
        if score < (math.inf if position.best is None else position.best):
            position.best, position.best_update, position.stale = score, position.update, 0
        self.run.append_metrics({"update": position.update, "split": "valid", **figures})
        self.reporter.validated(
            position.update,
            figures,
            is_best=position.stale == 0,
            samples=self.task.samples(self.model),
        )
        self._save()
        self._prune()

    def _measure(self) -> dict[str, float]:
        self.model.eval()
        if self.ema is None:
            return self.task.validate(self.model)
        with self.ema.installed(self.model):
            return self.task.validate(self.model)

    def _save(self) -> None:
        state = {
            "position": asdict(self.position),
            "optimizer": self.optimizer.state_dict(),
            "random": torch.get_rng_state(),
            "ema": None if self.ema is None else self.ema.weights,
        }
        self.run.save_checkpoint(self.position.update, self.model.state_dict(), state)

    def _prune(self) -> None:
        """Keep the newest checkpoints and the best, and none that only an interruption made.

        Those would otherwise take part in the average, and push out one that should.
        """
        position = self.position
        for saved in self.run.checkpoints():
            if saved.step % self.config.validate_every and saved.step < position.update:
                saved.delete()
        best = position.best_update or None
        self.run.prune(keep_last=self.config.keep, best=best)

    def _resume(self) -> None:
        checkpoint = self.run.resume()
        if checkpoint is None:
            return
        fill_model(self.model, checkpoint.load_model(), checkpoint.folder)
        state = checkpoint.load_trainer()
        self.position = Position(**state["position"])
        self.optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])
        if self.ema is not None:
            self.ema.load(state["ema"])
        self.reporter.resumed(self.position.update)

    def _finish(self) -> dict[str, Any]:
        """Choose the weights by validation, and write them."""
        self._prune()
        candidates = self._candidates()
        measured = {}
        for name, weights in candidates.items():
            self.model.load_state_dict(weights())
            self.model.eval()
            measured[name] = self.task.validate(self.model)
        metric = self.config.metric
        chosen = max(measured, key=lambda name: self.sign * measured[name][metric])
        summary = {
            "updates": self.position.update,
            "epochs": self.position.epoch,
            "target_tokens": self.position.tokens,
            "weights": chosen,
            "validation": measured[chosen],
            "candidates": measured,
        }
        self.run.finish(candidates[chosen](), summary)
        self.reporter.finished(self.run.path, summary, self.position.seconds)
        return {**summary, "seconds": self.position.seconds}

    def _candidates(self) -> dict[str, Callable[[], dict[str, Tensor]]]:
        """Where final weights may come from: last, best, an average of the last, the EMA."""
        saved = self.run.checkpoints()
        by_step = {checkpoint.step: checkpoint for checkpoint in saved}
        last = saved[-1]
        found: dict[str, Callable[[], dict[str, Tensor]]] = {"last": last.load_model}
        best = by_step.get(self.position.best_update)
        if best is not None and best.step != last.step:
            found["best"] = best.load_model
        newest = self.run.newest_checkpoints(self.config.keep)
        if len(newest) > 1:
            found[f"average of {len(newest)}"] = lambda: average(newest)
        if self.ema is not None:
            with self.ema.installed(self.model):
                smooth = deepcopy(self.model.state_dict())  # tied weights stay tied
            found["moving average"] = lambda: smooth
        return found

    def _share(self) -> float:
        """How much of training is behind us, 0 to 1, by the limit that is nearest."""
        config, position = self.config, self.position
        shares = [0.0]
        if config.updates is not None:
            shares.append(position.update / config.updates)
        if config.epochs is not None:
            done = position.epoch + position.cursor / self.task.num_samples
            shares.append(done / config.epochs)
        if config.minutes is not None:
            shares.append(position.seconds / (60 * config.minutes))
        return min(1.0, max(shares))

    def _is_done(self) -> bool:
        return self._share() >= 1

    def _is_stale(self) -> bool:
        return self.config.patience is not None and self.position.stale >= self.config.patience


# Updates between two lines of figures in metrics.jsonl.
REPORT_EVERY = 50
