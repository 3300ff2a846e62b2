"""One training of a resolved recipe: opens the run, reads the text, builds the model, trains it."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.checks import choose
from regard.config import as_table, build
from regard.devices import CPU, describe_device, device_of, find_device
from regard.devices.finding import find_process_device
from regard.devices.kinds import AUTO
from regard.inference import Predictor
from regard.progress import displaying
from regard.runs import Run, is_run
from regard.runs.card import Provenance, format_changes
from regard.tasks import TASKS, AnyTask, Recipe
from regard.text import Tokenizer
from regard.text.reading.encodings import encoded_as
from regard.training.callbacks import Callback, Callbacks, OngoingTraining, TrainedSummary
from regard.training.continuing import (
    find_changes,
    record_changes,
    saved_recipe,
    with_saved_defaults,
)
from regard.training.corpora.training_text import TrainingText, is_on_disk
from regard.training.distributed.synchronizing import check_agreement, check_folder, check_shared
from regard.training.distributed.world import World, process_group
from regard.training.fitting import describe_end, resolve_batch
from regard.training.precision import keep_few_primitives
from regard.training.pretrained import begin_with
from regard.training.reporters import ConsoleReporter, TensorBoardReporter, has_tensorboard
from regard.training.settings import TrainingConfig
from regard.training.task_training import AnyTraining, TaskTraining
from regard.training.trainer import Trainer


@dataclass(frozen=True)
class Trained:
    """Result of a training.

    Attributes:
        path: The run folder.
        predictor: The trained model in use.
        summary: Updates, tokens, seconds, validation figures.
        has_test: Whether there is a test text, of the recipe's or held out of the training text.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> settings = {"data": {"example": "sine"}, "model": {"is_learned": True}}
        >>> recipe = recipe_from_table({"task": "regression", **settings})
        >>> kind = TASKS["regression"].task
        >>> task = kind.learn(recipe, kind.read(recipe, "train"))
        >>> trained = Trained(Path("run"), Predictor(task.build_model(), task), {"updates": 40})
        >>> trained.summary["updates"], round(trained.model.predict("1.5")[0].value, 1)
        (40, 2.9)
    """

    path: Path
    predictor: Predictor
    summary: TrainedSummary
    has_test: bool = True

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
    keep_few_primitives()  # before the first product, which a check of pretrained weights may make
    with process_group() as world, ExitStack() as stack, encoded_as(recipe.encoding):
        check_agreement(world, recipe)
        if not world.is_first:
            stack.enter_context(displaying(None))
        watchers = [TensorBoardReporter(path)] if has_tensorboard() and world.is_first else []
        printing = reporter or ConsoleReporter()
        watching = Callbacks(printing if world.is_first else Callback(), *watchers)
        session = _Session(path, world, watching, tuple(callbacks), may_change, stack)
        # Rank 0 makes the run; the others read it.
        prepared = session.prepare(recipe) if world.is_first else None
        check_folder(world, path)
        predictor, trainer, has_test = prepared or session.prepare(recipe)
        summary = trainer.fit()
        (trainer.run if world.is_first else Run.open(path)).fill(trainer.model)
        trainer.model.eval()
    return Trained(path, predictor, summary, has_test)


@dataclass(frozen=True)
class _Session:
    """The circumstances of a training; the run stays open as long as ``stack``."""

    path: Path
    world: World
    watching: Callbacks
    callbacks: Sequence[Callback]
    may_change: bool
    stack: ExitStack

    def prepare(self, recipe: Recipe) -> tuple[Predictor, Trainer[Any], bool]:
        """Read the text, build the model, open the run, and see whether there is a test text."""
        run = None
        if is_run(self.path):
            open_run = Run.open_for_training if self.world.is_first else Run.open
            run = self.stack.enter_context(open_run(self.path))
        recipe, pretrained = begin_with(recipe, run)
        recipe, config, device = _resolve(recipe, run, self.world)
        changes = {} if run is None else find_changes(run, recipe, may_change=self.may_change)
        text = TrainingText.read(recipe, config)
        text.check_same_as(run)
        tokenizer = run.tokenizer_folder if run is not None and run.has_tokenizer else None
        vocabularies = tokenizer or (pretrained.vocabularies(recipe) if pretrained else None)
        task = text.learn_task(recipe, vocabularies, is_new=run is None)
        training, model = _build(task, text, config)
        check_shared(self.world, model, config, training.examples_a_batch)
        if pretrained is not None:
            pretrained.fill(model, recipe, run)
        model.to(device)
        config = resolve_batch(training, model, config, device)
        if run is None:
            # Last, so that unusable text or settings leave nothing behind.
            settings = {**task.recipe.training, "batch_tokens": config.batch_tokens}
            run = Run.create(
                self.path,
                replace(task.recipe, training=settings).table(),
                recipe.task,
                Provenance(
                    name=recipe.name,
                    text=text.fingerprint,
                    processes=self.world.size,
                    pretrained_commit=None if pretrained is None else pretrained.commit,
                ),
            )
            self.stack.enter_context(run)
        if self.world.is_first:
            if tokenizer is None:
                with run.new_tokenizer_folder() as folder:
                    task.save(folder)
            record_changes(run, changes, processes=self.world.size)
            self.watching.add(self.callbacks)
        predictor = Predictor(model, task)
        lines = self._describe(training, model, text, run, config)
        if pretrained is not None:
            lines.insert(-1, pretrained.describe(task.recipe, config))
        self.watching.on_start(lines, loss_unit=task.loss_unit, valid=training.sample_size)
        ongoing, world = OngoingTraining(self.path, predictor), self.world
        trainer = Trainer(run, model, training, config, self.watching, ongoing, world=world)
        has_test = bool(recipe.uses_phrasebook or recipe.named("test") or text.parts.test)
        return predictor, trainer, has_test

    def _describe(
        self,
        training: AnyTraining,
        model: nn.Module,
        text: TrainingText,
        run: Run,
        config: TrainingConfig,
    ) -> list[str]:
        """Describe the training that is about to begin, in lines."""
        task = training.task
        parameters = sum(p.numel() for p in model.parameters())
        lines = [
            training.size_line,
            *task.describe(),
            *_smaller_vocabulary(task),
            f"{task.recipe.model_type} with {parameters:,} parameters",
        ]
        if not self.world.is_single:
            lines.append(f"by {self.world.size} processes, the same batches as by one")
        if (device := device_of(model)) != CPU:
            lines.append(f"on {describe_device(device)}, {training.batch_tokens:,} tokens a batch")
        is_timed = self.world.is_single and not config.compile and run.newest_checkpoint() is None
        return [
            *lines,
            *text.describe(),
            *training.describe_perplexity(),
            describe_end(training, model, config, is_timed=is_timed),
            *format_changes(run.changes),
        ]


def try_out(recipe: Recipe) -> None:
    """Do all that comes before the updates of a training, and keep nothing of it."""
    with process_group() as world, encoded_as(recipe.encoding):
        recipe, pretrained = begin_with(recipe, None)
        recipe, config, _ = _resolve(recipe, None, world)
        text = TrainingText.read(recipe, config)
        vocabularies = pretrained.vocabularies(recipe) if pretrained else None
        task = text.learn_task(recipe, vocabularies, is_new=True)
        if text.stored is None:
            _, model = _build(task, text, config)
            if pretrained is not None:
                pretrained.fill(model, recipe, None)


def _build(
    task: AnyTask, text: TrainingText, config: TrainingConfig
) -> tuple[AnyTraining, nn.Module]:
    """The examples of a task encoded, and its new model."""
    train, valid = text.parts.train, text.parts.valid
    training = TaskTraining(task, train, valid, config, text.too_long, text.encoded(task))
    choose("training.metric", config.metric, dict(training.metrics))
    torch.manual_seed(config.seed)
    return training, training.build_model()


def _resolve(
    recipe: Recipe, run: Run | None, world: World
) -> tuple[Recipe, TrainingConfig, torch.device]:
    """The recipe with all that it leaves open as the run keeps it, or by the defaults; a device."""
    # A run is tied to no device, so that recipe and config name none.
    merged = recipe if run is None else with_saved_defaults(recipe, run)
    config = build(TrainingConfig, merged.training, where="training")
    device, where = config.device, {"setting": "training.device"}
    batch_tokens, corpus = config.batch_tokens, config.corpus
    if run is not None:
        saved = build(TrainingConfig, saved_recipe(run).training, where="training")
        batch_tokens = saved.batch_tokens if batch_tokens == "auto" else batch_tokens
        corpus = saved.corpus if corpus == "auto" else corpus
    corpus = "disk" if is_on_disk(merged, corpus) else "memory"
    metric, task = config.metric, TASKS[recipe.task].task
    if metric == "auto":  # the loss where no outputs are to be written
        is_unwritten = task.is_written and config.validation_pairs == 0
        metric = "loss" if is_unwritten else task.main_metric
    config = replace(config, device=AUTO, batch_tokens=batch_tokens, corpus=corpus, metric=metric)
    complete = replace(merged, training=as_table(config))
    if run is not None:
        complete = task.resolved(complete, {"data": {}, **run.recipe}, ())
    if world.is_single:
        return complete, config, find_device(device, **where)
    number, count = world.local_rank, world.local_size
    return complete, config, find_process_device(device, number=number, count=count, **where)


def _smaller_vocabulary(task: AnyTask) -> list[str]:
    """A line where the text allows no vocabulary as large as the recipe's."""
    requested = getattr(task.recipe.tokenizer, "vocab_size", None)
    tokenizer = getattr(task, "tokenizer", None)
    sides = [tokenizer, *(getattr(tokenizer, name, None) for name in ("source", "target"))]
    sizes = [side.vocab_size for side in sides if isinstance(side, Tokenizer)]
    if requested is None or not sizes or min(sizes) >= requested:
        return []
    return [
        f"tokenizer.vocab_size: {min(sizes):,}, not {requested:,}, since the text allows no more"
    ]
