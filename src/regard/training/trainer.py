"""The training loop: one for every task, on plain torch."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, replace
from typing import Any, Generic, cast

import torch
from torch import Tensor, nn

from regard.devices import device_of, moved, preserved_randomness
from regard.devices.memory import describing_out_of_memory
from regard.devices.moving import Ahead
from regard.devices.randomness import random_states, repeatable, set_random_states
from regard.errors import Interrupted, ProcessLost, ReportedElsewhere, RunError, TrainingError
from regard.runs import Checkpoint, DamageError, Run
from regard.runs.checkpoints import fill_model
from regard.tasks.task import BatchT
from regard.text.batches import WINDOW
from regard.training.callbacks import Callback, OngoingTraining, TrainedSummary, Update, Validation
from regard.training.continuing import check_finite, describe_memory, resume_command
from regard.training.distributed.synchronizing import StopFlags, Synchronizer, choose_strategy
from regard.training.distributed.world import SINGLE_PROCESS, BatchShard, World
from regard.training.final_weights import FinalWeights, candidate_weights
from regard.training.interruption import Interruption
from regard.training.optimization import MovingAverage, make_optimizer, peak_rate, rate_at
from regard.training.position import Position, TrainerState, drop_unvalidated, restored_position
from regard.training.precision import (
    LossScale,
    compiled,
    compute_dtype,
    keep_few_primitives,
    keep_freed_memory,
    mixed_precision,
    products_of,
)
from regard.training.settings import TrainingConfig
from regard.training.task_training import TaskTraining

# Updates between two lines of figures in metrics.jsonl.
REPORT_EVERY = 50
# Validations after an epoch that have samples, and that are saved though not the best.
_SAMPLES_IN_ALL, _SAVED_IN_ALL = 10, 20
# The batches of updates to come, with the cursor after them.
_Groups = Ahead[tuple[tuple[BatchT | None, ...], int]]


class Trainer(Generic[BatchT]):
    """Trains a model into a run folder, from wherever the folder left off."""

    # The run is open for training; of several processes the first alone writes it, and to the
    # others it may be open for reading. A checkpoint's weights replace those of ``model``. The
    # training may be stopped by ``ongoing`` after each update and validation; of several processes,
    # in the update after that.

    def __init__(
        self,
        run: Run,
        model: nn.Module,
        task: TaskTraining[Any, Any, BatchT, Any],
        config: TrainingConfig,
        callback: Callback,
        ongoing: OngoingTraining,
        *,
        world: World = SINGLE_PROCESS,
    ) -> None:
        self.run, self.model, self.task = run, model, task
        self.config, self.callback, self.ongoing = config, callback, ongoing
        self.sign = task.metrics[config.metric]
        self.position = Position()
        self.device = device_of(model)
        self.world = world.on_device(self.device)
        self.strategy = choose_strategy(model, config, self.world, self.device)
        learner = self.strategy.learner
        self.parameters = [p for p in learner.parameters() if p.requires_grad]
        self._synchronizer = Synchronizer(self.world, self.strategy.reduced, seed=config.seed)
        self._spare: BatchT | None = None
        self.dtype = compute_dtype(config, self.device, task.model_dim)
        self.loss_scale = LossScale.of(self.dtype)
        self.peak = peak_rate(config, task.model_dim)
        self.optimizer = make_optimizer(learner, config, self.peak, dtype=self.dtype)
        self.ema = None if config.ema is None else MovingAverage(model, config.ema)
        self._interruption, self._agreed = Interruption(), StopFlags()
        # Whether weights, optimizer, position and random state are of one moment; the last one.
        self._is_whole, self._random = True, random_states(self.device)
        self._saved_at = time.perf_counter()

    def fit(self) -> TrainedSummary:
        """Train to the end, write the final weights, and return the summary."""
        keep_freed_memory()
        keep_few_primitives()
        with repeatable(self.device), products_of(self.config.precision, self.device):
            torch.manual_seed(self.config.seed)
            self._resume()
            self.world.broadcast_weights(self.model)
            self.strategy.load_weights()
            self._random, self._saved_at = random_states(self.device), time.perf_counter()
            run, config = self.run, self.config
            cure = resume_command(run, "training.compile=false")
            compiling = compiled(self.model, cure=cure) if config.compile else nullcontext()
            with (
                describing_out_of_memory(
                    lambda: describe_memory(run, config, self.device, self.position.update)
                ),
                compiling,
                self._interruption,
                self._saved_on_leaving(),
                self.callback.training(self._share),
            ):
                self._train()
            return self.world.broadcast(self._finish)

    def _train(self) -> None:
        """Update, validate and save until a limit is reached."""
        if self._owes_validation():
            self._validate()
        for batches, cursor, ahead in self._batches():
            self._update(batches, cursor, ahead)
            # Of one process alone, its flags now; of several, those they have agreed on.
            agreed = self._flags() if self.world.is_single else self._agreed
            if agreed.must_leave and not self._is_done():
                self._interruption.leave()
            if self._owes_validation():
                self._validate()
            elif agreed.must_save:
                self._save()
            if self._is_done() or self.position.is_stale(self.config):
                break

    @contextmanager
    def _saved_on_leaving(self) -> Iterator[None]:
        """Save the weights first, where they are whole, whatever ends the block early."""
        try:
            yield
        except TrainingError:
            raise  # the weights that led to it are worth less than those of the last checkpoint
        except Interrupted:
            self._save_interrupted()
            raise
        except BaseException as error:
            if self._is_whole and not self.strategy.is_sharded:  # which would need the others
                with suppress(Exception):  # the first error counts
                    self._save_interrupted()
            if isinstance(error, ProcessLost) and self._interruption.requested:
                self._interruption.leave()  # the others were asked, too, and were faster
            raise

    def _save_interrupted(self) -> None:
        if self.position.update:
            self._save()
            self.callback.on_interrupt(self.run.path, self.position.update)

    def _batches(self) -> Iterator[tuple[tuple[BatchT | None, ...], int, _Groups[BatchT]]]:
        """The batches of each update, for ever; the cursor after them; where the next come from."""
        while not (self._is_done() or self.position.is_stale(self.config)):
            epoch = self.position.epoch
            self.task.begin_epoch(epoch)
            shard = BatchShard(self.world.rank, self.world.size, self.config.accumulate)
            groups = self.task.update_batches(
                epoch, self.position.cursor, shard, with_empty=self.strategy.is_sharded
            )
            ahead = Ahead(groups, self.device)
            for group, cursor in ahead:
                yield group, cursor, ahead

    def _update(
        self, batches: tuple[BatchT | None, ...], cursor: int, following: _Groups[BatchT]
    ) -> None:
        """One optimizer step on the mean loss per real token of all ``batches``."""
        ahead = replace(self.position, update=self.position.update + 1, cursor=cursor)
        self._synchronizer.begin(ahead.update)
        summed, terms = self._add_gradients(batches)
        following.reach()
        totals = self._synchronizer.add(summed.item(), terms, flags=self._flags())
        loss, tokens = totals.loss, totals.terms
        rate = rate_at(ahead.update, self._share(ahead), peak=self.peak, config=self.config)
        norm = self._scale_gradients(tokens)
        figures = {"loss": loss / tokens, "learning_rate": rate, "gradient_norm": norm}
        is_overflow = self.loss_scale.overflows(norm)
        if not is_overflow:
            check_finite(self.run, figures["loss"], norm, update=ahead.update, peak=self.peak)
        self._is_whole = False
        self._step(rate, ahead.update, is_skipped=is_overflow)
        ahead.tokens += tokens
        ahead.loss, ahead.terms = ahead.loss + loss, ahead.terms + tokens
        if cursor == self.task.num_samples:
            ahead.epoch, ahead.cursor = ahead.epoch + 1, 0
        ahead.seconds += self._synchronizer.end()
        self._record(ahead, figures)
        epoch = self.position.epoch
        self.position, self._random = ahead, random_states(self.device)
        self._is_whole, self._agreed = True, totals.flags
        self.callback.on_update(
            Update(
                number=ahead.update,
                epoch=epoch,
                tokens=tokens,
                figures={**figures, **totals.waiting},
                training=self.ongoing,
            )
        )

    def _flags(self) -> StopFlags:
        """Stop flags that this process raises."""
        minutes = (time.perf_counter() - self._saved_at) / 60
        must_save = minutes >= self.config.save_every_minutes
        return StopFlags(self._interruption.requested, must_save, self.ongoing.is_stopped)

    def _record(self, ahead: Position, figures: Mapping[str, float]) -> None:
        """Write down figures now and then; the first ones too: a short training has no others."""
        if ahead.update >= REPORT_EVERY and ahead.update % REPORT_EVERY != 0:
            return
        since_last_line = {**figures, "loss": ahead.loss / ahead.terms}
        record = {"update": ahead.update, "split": "train", **since_last_line}
        if self.world.is_first:
            self.run.append_metrics(record)
        ahead.loss, ahead.terms = 0.0, 0

    def _add_gradients(self, batches: tuple[BatchT | None, ...]) -> tuple[Tensor, int]:
        """The summed loss of all batches and its terms, the gradients added to the parameters."""
        self.strategy.learner.train()
        loss, tokens = torch.zeros((), device=self.device), 0
        with mixed_precision(self.dtype, self.device):
            for batch in batches:
                if batch is None:
                    self._pass_spare_batch()
                    continue
                self._spare = batch if self.strategy.is_sharded else None
                part, terms = self.task.backward(
                    self.strategy.learner,
                    batch,
                    smoothing=self.config.label_smoothing,
                    scale=self.loss_scale.factor,
                )
                loss += part
                tokens += terms
        return loss, tokens

    def _pass_spare_batch(self) -> None:
        """Pass a batch without gradients: gathering sharded weights takes all processes."""
        if self._spare is None:
            whole, _ = next(self.task.batches(self.position.epoch, 0))
            self._spare = moved(whole, self.device)
        assert self._spare is not None
        smoothing = self.config.label_smoothing
        self.task.backward(self.strategy.learner, self._spare, smoothing=smoothing, scale=0.0)

    def _step(self, rate: float, update: int, *, is_skipped: bool) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = rate * cast(float, group.get("share", 1.0))
        if not is_skipped:
            self.optimizer.step()
        self.loss_scale = self.loss_scale.after(is_overflow=is_skipped)
        self.optimizer.zero_grad()
        if self.ema is not None:
            self.ema.update(self.model, update)

    def _scale_gradients(self, tokens: int | float) -> float:
        """Sums over tokens become means, and are clipped; the norm before clipping."""
        grads = [p.grad for p in self.parameters if p.grad is not None]
        tokens *= self.loss_scale.factor
        norm = self.strategy.norm(grads) / tokens
        limit = self.config.clip_norm
        factor = 1.0 if limit is None or norm <= limit else limit / norm
        torch._foreach_mul_(grads, factor / tokens)
        return norm

    def _owes_validation(self) -> bool:
        """Whether one is due: it may have been put off by an interruption."""
        position = self.position
        is_due = position.is_due(self.config, self.task.num_samples) or self._is_done()
        return is_due and position.validated < position.update

    def _validate(self) -> None:
        """Measure, save a checkpoint, and report; no random number of training is used up."""
        position, share = self.position, self._share()
        has_samples = position.has_passed(_SAMPLES_IN_ALL, share) or share >= 1
        is_saved = self.config.validate_every != "auto" or position.has_passed(_SAVED_IN_ALL, share)
        with preserved_randomness(self.device):
            self.strategy.store_weights()
            figures = self.world.broadcast(self._measure)
            if self.world.is_first:
                self.run.append_metrics({"update": position.update, "split": "valid", **figures})
            score = -self.sign * figures[self.config.metric]
            position.add_validation(score, figures["loss"], share)
            if is_saved or position.stale == 0 or self._is_done():
                position.saved = position.update
                self._save()
                self._prune()
            has_samples = has_samples and self.world.is_first
            samples = self.task.samples(self.model) if has_samples else []
        self.callback.on_validation(
            Validation(
                update=position.update,
                figures=figures,
                is_best=position.stale == 0,
                samples=tuple(samples),
                training=self.ongoing,
            )
        )

    def _measure(self) -> dict[str, float]:
        self.model.eval()
        smooth = nullcontext() if self.ema is None else self.ema.installed(self.model)
        # A process with a shard of the weights may not leave without the others.
        leaving = nullcontext() if self.strategy.is_sharded else self._interruption.at_once()
        with smooth, leaving:
            return self.task.validate(self.model, by_sample=True)

    def _save(self) -> None:
        self._saved_at = time.perf_counter()
        if not self.world.is_first and not self.strategy.is_sharded:
            return
        weights, optimizer = self.strategy.state(self.optimizer)
        if not self.world.is_first:
            return
        state: TrainerState = {
            "position": asdict(self.position),
            "optimizer": optimizer,
            "random": self._random["cpu"],
            "ema": None if self.ema is None else self.ema.weights,
        }
        if self.device.type != "cpu":
            state["device"] = {"random": self._random, "loss_scale": asdict(self.loss_scale)}
        self.run.save_checkpoint(self.position.update, weights, state)
        self._saved_at = time.perf_counter()
        drop_unvalidated(self.run, self.position.update)

    def _prune(self) -> None:
        """Keep the newest checkpoints and the best, of those that were validated."""
        if not self.world.is_first:
            return
        drop_unvalidated(self.run, self.position.update)
        self.run.prune(keep_last=self.config.keep, best=self.position.best_update or None)

    def _resume(self) -> None:
        checkpoint = self.world.broadcast(self.run.resume)
        if checkpoint is None:
            return
        fill_model(self.model, checkpoint.load_model(), checkpoint.folder)
        try:
            self._restore(checkpoint, cast(TrainerState, checkpoint.load_trainer()))
        except (ValueError, LookupError, TypeError, AttributeError, RuntimeError) as error:
            if isinstance(error, RunError | ReportedElsewhere):
                raise
            raise DamageError(
                f"{checkpoint.folder} must hold the state of this training; it does not. Delete it "
                "to go on from the checkpoint before it."
            ) from error
        self.callback.on_resume(self.position.update)

    def _restore(self, checkpoint: Checkpoint, state: TrainerState) -> None:
        """Restore the state that a checkpoint holds beside the weights."""
        self.position = restored_position(checkpoint, state, self.task.num_samples)
        since = [change["is"] for change in self.run.changes if change["update"] >= checkpoint.step]
        if any("training.batch_tokens" in settings for settings in since):
            # No other batches end where that one did: some samples are seen twice.
            self.position.cursor -= self.position.cursor % WINDOW
        self.strategy.restore(self.optimizer, state["optimizer"])
        if (device := state.get("device")) is None:
            set_random_states({"cpu": state["random"]}, self.device)
        else:
            set_random_states(device["random"], self.device)
            self.loss_scale = self.loss_scale.restored(device["loss_scale"])
        if self.config.ema is not None:
            self.ema = MovingAverage(self.model, self.config.ema)
            if state["ema"] is not None:
                self.ema.load(state["ema"])

    def _finish(self) -> TrainedSummary:
        """Choose the weights by validation, and write them."""
        self._prune()
        best = self.position.best_update
        weights = candidate_weights(self.run, self.model, self.ema, self.config.keep, best)
        final = FinalWeights.choose(weights, self.model, self.task, self.config.metric)
        summary = final.summary(self.position, self.task.valid_size)
        self.run.finish(self.model.state_dict(), summary)
        self.callback.on_finish(self.run.path, summary, self.position.seconds)
        return {**summary, "seconds": self.position.seconds}

    def _share(self, position: Position | None = None) -> float:
        return (position or self.position).share(self.config, self.task.num_samples)

    def _is_done(self) -> bool:
        is_stopped = self.ongoing.is_stopped if self.world.is_single else self._agreed.is_over
        return self._share() >= 1 or is_stopped
