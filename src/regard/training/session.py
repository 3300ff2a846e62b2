"""One training of a resolved recipe: opens the run, reads the text, builds the model, trains it."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from regard.choices import choose
from regard.config import as_table, build
from regard.devices import CPU, device_of, find_device, find_own_device, told_device
from regard.devices.kinds import AUTO
from regard.inference import Predictor
from regard.progress import displaying
from regard.runs import Run, is_run
from regard.runs.card import format_changes
from regard.tasks import TASKS, AnyTask, Recipe
from regard.tasks.recipe import with_training
from regard.text import Tokenizer
from regard.text.reading.encodings import encoded_as
from regard.training.callbacks import Callback, Callbacks, OngoingTraining, TrainedSummary
from regard.training.continuing import (
    find_changes,
    note_changes,
    saved_recipe,
    with_saved_defaults,
)
from regard.training.corpora.training_text import TrainingText, is_on_disk
from regard.training.distributed.synchronizing import check_agreement, check_folder, check_shared
from regard.training.distributed.world import World, process_group
from regard.training.fitting import describe_end, settle_batch
from regard.training.pretrained import Pretrained, begin_with
from regard.training.reporters import ConsoleReporter, TensorBoardReporter, has_tensorboard
from regard.training.settings import TrainingConfig
from regard.training.task_training import TaskTraining
from regard.training.trainer import Trainer


@dataclass(frozen=True)
class Trained:
    """Result of a training.

    Attributes:
        path: The run folder.
        predictor: The trained model in use.
        summary: Updates, tokens, seconds, validation figures.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> settings = {"data": {"example": "sine"}, "model": {"is_learned": True}}
        >>> recipe = recipe_from_table({"task": "regression", **settings})
        >>> kind = TASKS["regression"].task
        >>> task = kind.learn(recipe, kind.read(recipe, "train"))
        >>> figures = {"loss": 0.49, "rmse": 0.7}
        >>> counts = {"updates": 40, "epochs": 2, "target_tokens": 100, "seconds": 1.5}
        >>> chosen = {"weights": "last", "validation": figures, "candidates": {"last": figures}}
        >>> predictor = Predictor(task.build_model(), task)
        >>> trained = Trained(Path("run"), predictor, TrainedSummary(**counts, **chosen))
        >>> trained.summary["validation"]["rmse"], round(trained.model.predict("1.5")[0].value, 1)
        (0.7, 2.9)
    """

    path: Path
    predictor: Predictor
    summary: TrainedSummary

    @property
    def model(self) -> Predictor:
        """Return the model as ``regard.load`` does: to predict, and to look into."""
        return self.predictor


def fit(
    recipe: Recipe,
    path: str | Path,
    *,
    reporter: Callback | None = None,
    callbacks: Sequence[Callback] = (),
    may_change: bool = False,
) -> Trained:
    """Train into a run folder, or resume it; ``may_change`` allows other training settings."""
    path = Path(path)
    with process_group() as world, ExitStack() as stack, encoded_as(recipe.encoding):
        check_agreement(world, recipe)
        if not world.is_first:
            stack.enter_context(displaying(None))
        watching = _watch(path, reporter) if world.is_first else Callbacks(Callback())
        session = _Session(path, world, watching, tuple(callbacks), may_change, stack)
        # Rank 0 makes the run; the others read what it has written.
        prepared = session.prepare(recipe) if world.is_first else None
        check_folder(world, path)
        predictor, trainer = prepared or session.prepare(recipe)
        summary = trainer.fit()
        (trainer.run if world.is_first else Run.open(path)).fill(trainer.model)
        trainer.model.eval()
    return Trained(path, predictor, summary)


@dataclass(frozen=True)
class _Resolved:
    """A complete recipe, its device (a run is tied to none) and what training begins with."""

    recipe: Recipe
    device: str
    config: TrainingConfig
    pretrained: Pretrained | None


@dataclass(frozen=True)
class _Session:
    """The circumstances of a training; the run stays open as long as ``stack``."""

    path: Path
    world: World
    watching: Callbacks
    callbacks: Sequence[Callback]
    may_change: bool
    stack: ExitStack

    def prepare(self, recipe: Recipe) -> tuple[Predictor, Trainer[Any]]:
        """Read the text, build the model, and open the run."""
        run = self._open() if is_run(self.path) else None
        resolved = _resolve(recipe, run)
        config, pretrained = resolved.config, resolved.pretrained
        device = _device(resolved.device, self.world)
        changes = (
            {} if run is None else find_changes(run, resolved.recipe, may_change=self.may_change)
        )
        text = TrainingText.read(resolved.recipe, config)
        text.check_same_as(run)
        tokenizer = run.tokenizer_folder if run is not None and run.has_tokenizer else None
        vocabularies = tokenizer
        if tokenizer is None and pretrained is not None:
            vocabularies = pretrained.vocabularies(resolved.recipe)
        task = text.learn_task(resolved.recipe, vocabularies, is_new=run is None)
        training = TaskTraining(
            task, text.train, text.valid, config, text.too_long, text.encoded(task)
        )
        choose("training.metric", config.metric, dict(training.metrics))
        model = self._build(training, resolved, run, device)
        config = settle_batch(training, model, config, device)
        if run is None:
            # Last, so that unusable text or settings leave nothing behind.
            run = self._create(task.recipe, config, text)
        if self.world.is_first:
            if tokenizer is None:
                with run.new_tokenizer_folder() as folder:
                    task.save(folder)
            note_changes(run, changes, processes=self.world.size)
        predictor = Predictor(model, task)
        ongoing = OngoingTraining(self.path, predictor)
        if self.world.is_first:
            self.watching.add(self.callbacks)
        self.watching.on_start(
            self._facts(training, model, text, run, config),
            loss_unit=task.counted,
            valid=training.valid_size,
        )
        return predictor, Trainer(
            run,
            model,
            training,
            config,
            self.watching,
            ongoing,
            world=self.world,
            valid=training.valid_size,
        )

    def _open(self) -> Run:
        """The run that is there, which rank 0 alone may write."""
        open_run = Run.open_for_training if self.world.is_first else Run.open
        return self.stack.enter_context(open_run(self.path))

    def _create(self, recipe: Recipe, config: TrainingConfig, text: TrainingText) -> Run:
        settings = {**recipe.training, "batch_tokens": config.batch_tokens}
        run = Run.create(
            self.path,
            with_training(recipe, settings).table(),
            recipe.task,
            name=recipe.name,
            text=text.fingerprint,
            processes=self.world.size,
        )
        return self.stack.enter_context(run)

    def _build(
        self,
        training: TaskTraining[Any, Any, Any, Any],
        resolved: _Resolved,
        run: Run | None,
        device: torch.device,
    ) -> nn.Module:
        """The model with its first weights, on its device."""
        torch.manual_seed(resolved.config.seed)
        model = training.build_model()
        check_shared(self.world, model, resolved.config, training.examples_a_batch)
        if resolved.pretrained is not None:
            resolved.pretrained.fill(model, resolved.recipe, run)
        return model.to(device)

    def _facts(
        self,
        training: TaskTraining[Any, Any, Any, Any],
        model: nn.Module,
        text: TrainingText,
        run: Run,
        config: TrainingConfig,
    ) -> list[str]:
        """Describe the training that is about to begin, in lines."""
        task = training.task
        parameters = sum(p.numel() for p in model.parameters())
        facts = [
            training.size_line,
            *task.facts(),
            *_smaller_vocabulary(task),
            f"{task.recipe.model_type} with {parameters:,} parameters",
        ]
        if not self.world.is_single:
            facts.append(f"by {self.world.size} processes, the same batches as by one")
        if (device := device_of(model)) != CPU:
            facts.append(f"on {told_device(device)}, {training.batch_tokens:,} tokens a batch")
        is_timed = self.world.is_single and not config.compile and run.newest_checkpoint() is None
        return [
            *facts,
            *text.facts(),
            *training.describe_perplexity(),
            describe_end(training, model, config, is_timed=is_timed),
            *format_changes(run.changes),
        ]


def _resolve(recipe: Recipe, run: Run | None) -> _Resolved:
    """The recipe with all that it leaves open as the run keeps it, or else by the defaults."""
    given = recipe if run is None else with_saved_defaults(recipe, run)
    given_config = build(TrainingConfig, given.training, where="training")
    config = replace(
        given_config,
        device=AUTO,
        batch_tokens=_batch_tokens(given_config, run),
        corpus=_corpus(given, given_config, run),
    )
    complete = with_training(given, as_table(config))
    if run is not None:
        task = TASKS[recipe.task].task
        complete = task.settled(complete, {"data": {}, **run.recipe}, ())
    initialised, pretrained = begin_with(complete, run)
    return _Resolved(initialised, given_config.device, config, pretrained)


def _batch_tokens(config: TrainingConfig, run: Run | None) -> int | Literal["auto"]:
    if config.batch_tokens != "auto" or run is None:
        return config.batch_tokens
    return build(TrainingConfig, saved_recipe(run).training, where="training").batch_tokens


def _corpus(recipe: Recipe, config: TrainingConfig, run: Run | None) -> Literal["memory", "disk"]:
    """Whether the text is in memory or on disk; a run stays as it began."""
    place = config.corpus
    if place == "auto" and run is not None:
        place = build(TrainingConfig, saved_recipe(run).training, where="training").corpus
    return "disk" if is_on_disk(recipe, place) else "memory"


def _device(name: str, world: World) -> torch.device:
    setting = "training.device"
    if world.is_single:
        return find_device(name, setting=setting)
    return find_own_device(name, number=world.local_rank, count=world.local_size, setting=setting)


def _watch(path: Path, reporter: Callback | None) -> Callbacks:
    """The callbacks of the process that prints."""
    watchers = [TensorBoardReporter(path)] if has_tensorboard() else []
    return Callbacks(reporter or ConsoleReporter(), *watchers)


def _smaller_vocabulary(task: AnyTask) -> list[str]:
    """A line where the text allows no vocabulary as large as the recipe's."""
    wanted = getattr(task.recipe.tokenizer, "vocab_size", None)
    tokenizer = getattr(task, "tokenizer", None)
    sides = [tokenizer, *(getattr(tokenizer, name, None) for name in ("source", "target"))]
    sizes = [side.vocab_size for side in sides if isinstance(side, Tokenizer)]
    if wanted is None or not sizes or min(sizes) >= wanted:
        return []
    return [f"tokenizer.vocab_size: {min(sizes):,}, not {wanted:,}, since the text allows no more"]
