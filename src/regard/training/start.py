"""From a recipe to a trained run: whatever the task, one path."""

import hashlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

import torch
from torch import nn

from regard.choices import choose
from regard.config import JsonValue, as_table, assign, build
from regard.devices import CPU, device_of, find_device, find_own_device, told_device
from regard.devices.kinds import AUTO
from regard.errors import RunError
from regard.inference import Predictor
from regard.runs import Run, is_run
from regard.runs.history import told
from regard.tasks import TASKS, AnyTask, Parts, Recipe, recipe_from_table
from regard.tasks.recipe import HELD_OUT, with_training
from regard.tasks.streaming import Stored
from regard.tasks.task import AnswerT, BatchT, EncodedT, ExampleT
from regard.text import BadLines, Tokenizer
from regard.training.agreement import check_agreement, check_folder, check_shared
from regard.training.callbacks import Callback, CallbackReporter, OngoingTraining
from regard.training.continuing import as_then, find_changes, kept_recipe, note_changes
from regard.training.corpora.place import is_on_disk
from regard.training.corpora.stored_text import StoredText
from regard.training.corpora.stored_text import Watch as Preparing
from regard.training.corpora.stored_text import unwatched as not_shown
from regard.training.encoded import RunCorpora
from regard.training.fitting import describe_end, settle_batch
from regard.training.listeners import Listeners, TensorBoardReporter, has_tensorboard
from regard.training.pretrained import begin_with
from regard.training.progress import SILENT, ConsoleReporter, Reporter
from regard.training.ranks import Ranks, joined
from regard.training.settings import TrainingConfig
from regard.training.task_training import TaskTraining
from regard.training.trainer import TrainedSummary, Trainer


@dataclass(frozen=True)
class Trained:
    """Result of a training.

    Attributes:
        path: The run folder.
        predictor: The trained model in use.
        summary: Updates, tokens, seconds, validation figures.

    Example:
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
        """The model as ``regard.load`` gives it: to predict, and to look into."""
        return self.predictor


def train(
    recipe: Recipe,
    path: str | Path,
    *,
    reporter: Reporter | None = None,
    callbacks: Sequence[Callback] = (),
    may_change: bool = False,
    preparing: Preparing = not_shown,
) -> Trained:
    """Train a model into a run folder, or go on with one that was interrupted.

    Args:
        recipe: What to train on and how. Where the folder holds a run already, it must be the
            recipe of that run.
        path: The run folder, made if it does not exist.
        reporter: Who is told; None prints to the console.
        callbacks: Who is called after updates and validations, and may end the training.
        may_change: Whether a run that is there may go on by other settings of training: its limits,
            rate, schedule, batches and so on. The run remembers what was changed at which update.
        preparing: Shows how a text that is kept on disk is read and encoded.

    Raises:
        DataError: The text cannot be used.
        SettingError: A setting is unknown or out of range, or the vocabulary does not fit.
        RunError: The folder holds another recipe's run, is damaged, or is in use.
        TrainingError: The loss was not finite.
        Interrupted: Asked to stop; the same call goes on.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "run"
        >>> train(recipe_from_table({"training": {"updats": 500}}), path)
        Traceback (most recent call last):
        regard.errors.SettingError: training.updats is not a setting. Did you mean training.updates?
        >>> train(recipe_from_table({"training": {"updates": 500}}), path)
        Traceback (most recent call last):
        regard.errors.DataError: data.train must name the training text; got nothing.
    """
    path = Path(path)
    with joined() as ranks, ExitStack() as stack:
        check_agreement(ranks, recipe)
        listeners = _listeners(reporter, path) if ranks.is_first else Listeners(SILENT)
        prepare = partial(
            _prepare,
            recipe,
            path,
            stack,
            ranks,
            listeners,
            callbacks,
            may_change,
            preparing if ranks.is_first else not_shown,
        )
        ready = prepare() if ranks.is_first else None
        check_folder(ranks, path)
        ready = ready or prepare()  # the others, from what the first has written
        model, ongoing = ready.predictor.model, ready.ongoing
        summary = Trainer(
            ready.run,
            model,
            ready.training,
            ready.config,
            listeners,
            is_stopped=lambda: ongoing.is_stopped,
            ranks=ranks,
            valid=ready.training.valid_size,
        ).fit()
        (ready.run if ranks.is_first else Run.open(path)).fill(model)
        model.eval()
    return Trained(path, ready.predictor, summary)


def with_test(recipe: Recipe, path: str | Path) -> Recipe:
    """The recipe with a part of its training text held out to test on, where it names no test.

    Args:
        recipe: What is to be trained.
        path: The run folder. A run that is there goes on with the text that it began with.

    Raises:
        RunError: The run that is there is damaged.
        SettingError: A setting of training is unknown or out of range.

    Example:
        >>> table = {"data": {"train": "pairs.tsv"}, "training": {"updates": 500}}
        >>> with_test(recipe_from_table(table), "no-run-yet").data.test
        'held out'
        >>> table["data"]["test"] = "test.tsv"
        >>> with_test(recipe_from_table(table), "no-run-yet").data.test
        'test.tsv'
    """
    run = Run.open(path) if is_run(path) else None
    place = build(TrainingConfig, recipe.training, where="training").corpus
    if recipe.named("train") and not recipe.data.test and is_on_disk(recipe, place):
        return recipe
    if recipe.uses_phrasebook or recipe.data.test or not recipe.named("train"):
        return recipe
    if run is not None and run.recipe["data"].get("test") != HELD_OUT:
        return recipe
    return replace(recipe, data=replace(recipe.data, test=HELD_OUT))


def resume(
    path: str | Path,
    *,
    settings: Sequence[str] = (),
    reporter: Reporter | None = None,
    preparing: Preparing = not_shown,
) -> Trained:
    """Go on with the training of a run folder, by the recipe that it keeps.

    Args:
        path: The run folder.
        settings: ``training.learning_rate=0.001`` and the like, to go on by instead. What a model
            is and what it reads cannot change.
        reporter: Who is told; None prints to the console.
        preparing: Shows how a text that is kept on disk is read and encoded.

    Raises:
        RunError: The folder holds no run, a damaged one, or one that is in use.
        SettingError: A setting is unknown, out of range, or cannot change.
        DataError: The text cannot be used any more.
        TrainingError: The loss was not finite.
        Interrupted: Asked to stop; the same call goes on.

    Example:
        >>> resume("no-run-yet")
        Traceback (most recent call last):
        regard.errors.RunError: no-run-yet must be a run folder; got nothing there. Make one with
        `regard train`.
    """
    table = cast(dict[str, JsonValue], kept_recipe(Run.open(path)).table())
    assign(table, settings)
    recipe = recipe_from_table(table)
    return train(recipe, path, reporter=reporter, may_change=True, preparing=preparing)


@dataclass(frozen=True)
class _Ready:
    """All that a training begins with."""

    run: Run
    predictor: Predictor
    training: TaskTraining[Any, Any, Any, Any]
    config: TrainingConfig
    ongoing: OngoingTraining


def _prepare(
    recipe: Recipe,
    path: Path,
    stack: ExitStack,
    ranks: Ranks,
    listeners: Listeners,
    callbacks: Sequence[Callback],
    may_change: bool,
    preparing: Preparing,
) -> _Ready:
    """Read the text, make the model, and open the run, which is held as long as ``stack``."""
    bad_lines, too_long = BadLines(), BadLines()
    task_class = choose("task", recipe.task, TASKS).task
    run: Run | None = None
    if is_run(path):
        run = stack.enter_context(_opened(path, ranks))
        recipe = as_then(recipe, run)
    config = build(TrainingConfig, recipe.training, where="training")
    device = _own_device(config.device, ranks)
    # A run is tied to no device; what was found to fit into one's memory stays.
    config = replace(config, device=AUTO, batch_tokens=_kept_batch(config, run))
    config = replace(config, corpus=_corpus(recipe, config, run))
    recipe = with_training(recipe, as_table(config))
    if run is not None:
        recipe = task_class.settled(recipe, {"data": {}, **run.recipe}, ())
    recipe, pretrained = begin_with(recipe, run)
    changes = {} if run is None else find_changes(run, recipe, may_change=may_change)
    stored = _stored(recipe, config, preparing)
    parts = _parts(recipe, stored, bad_lines)
    examples, valid = parts.train, parts.valid
    text = _fingerprint([*examples, *valid], task_class.fingerprint, stored)
    if run is None:
        recipe = task_class.settled(recipe, None, examples)
    elif run.text not in (None, text):
        raise RunError(
            f"{path} must go on with the text it began with; its {task_class.unit} have "
            "changed since. Restore them, or train the new ones into another folder: "
            "--run FOLDER."
        )
    is_learned = run is not None and run.has_tokenizer
    kept = run.tokenizer_folder if run is not None and is_learned else None
    if kept is None and pretrained is not None:
        kept = pretrained.vocabularies(recipe)
    task = _task(recipe, kept, examples, stored)
    encoded = RunCorpora(run if is_learned else None)
    samples = _samples(stored, task, bad_lines, too_long)
    training = TaskTraining(task, examples, valid, config, too_long, encoded, samples)
    choose("training.metric", config.metric, dict(training.metrics))
    torch.manual_seed(config.seed)
    model = training.build_model()
    check_shared(ranks, model, config, training.examples_a_batch)
    if pretrained is not None:
        pretrained.fill(model, recipe, run)
    model = model.to(device)
    config = settle_batch(training, model, config, device)
    recipe = with_training(recipe, {**recipe.training, "batch_tokens": config.batch_tokens})
    if run is None:
        # Last, so that nothing is left behind by text or settings that cannot be used.
        created = Run.create(
            path,
            recipe.table(),
            recipe.task,
            name=recipe.name,
            text=text,
            processes=ranks.size,
        )
        run = stack.enter_context(created)
    if ranks.is_first:
        _keep(run, None if is_learned else task, encoded)
        note_changes(run, changes, processes=ranks.size)
    facts = [*_facts(training, model, bad_lines, too_long, ranks)]
    is_timed = ranks.is_alone and not config.compile and run.newest_checkpoint() is None
    facts += [*_told_test(recipe, parts, task.unit), *training.describe_perplexity()]
    facts += [describe_end(training, model, config, is_timed=is_timed), *told(run.changes)]
    predictor = Predictor(model, task)
    ongoing = OngoingTraining(path, predictor)
    if callbacks and ranks.is_first:
        listeners.add(CallbackReporter(callbacks, ongoing))
    listeners.started(facts, counted=task.counted, valid=training.valid_size)
    return _Ready(run, predictor, training, config, ongoing)


def _keep(run: Run, task: AnyTask | None, encoded: RunCorpora) -> None:
    """Write what was learned from the text; None where the run has it."""
    if task is not None:
        with run.new_tokenizer_folder() as folder:
            task.save(folder)
    encoded.save(run)


def _opened(path: Path, ranks: Ranks) -> Run:
    """The run, which the first process alone may write."""
    return Run.open_for_training(path) if ranks.is_first else Run.open(path)


def _own_device(name: str, ranks: Ranks) -> torch.device:
    setting = "training.device"
    if ranks.is_alone:
        return find_device(name, setting=setting)
    return find_own_device(name, number=ranks.local_rank, count=ranks.local_size, setting=setting)


def _listeners(reporter: Reporter | None, path: Path) -> Listeners:
    """Whoever is told of a training by the process that prints."""
    watchers = [TensorBoardReporter(path)] if has_tensorboard() else []
    return Listeners(reporter or ConsoleReporter(), *watchers)


def _facts(
    training: TaskTraining[ExampleT, EncodedT, BatchT, AnswerT],
    model: nn.Module,
    bad_lines: BadLines,
    too_long: BadLines,
    ranks: Ranks,
) -> list[str]:
    """Describe the training that is about to begin, in lines."""
    task = training.task
    parameters = sum(p.numel() for p in model.parameters())
    facts = [
        training.told_size,
        *task.facts(),
        *_told_size(task),
        f"{task.recipe.model_type} with {parameters:,} parameters",
    ]
    if not ranks.is_alone:
        facts.append(f"by {ranks.size} processes, the same batches as by one")
    if (device := device_of(model)) != CPU:
        facts.append(f"on {told_device(device)}, {training.batch_tokens:,} tokens a batch")
    for counted, what in (
        (bad_lines, "left out {:,} lines that cannot be read"),
        (too_long, f"cut or left out {{:,}} {task.unit} too long"),
    ):
        if counted.total:
            facts.append(f"{what.format(counted.total)}: {counted}")
    return facts


def _told_test(recipe: Recipe, parts: Parts[ExampleT], unit: str) -> list[str]:
    """Held-out test examples."""
    if not recipe.holds_out_test:
        return []
    if not parts.test:
        return [f"no {unit} held out to test on: there are too few. data.test names some"]
    return [
        f"{len(parts.test):,} {unit} held out to test on, chosen by hash and not trained on; "
        "data.test names others"
    ]


def _told_size(task: AnyTask) -> list[str]:
    """Where the vocabulary is smaller than the recipe asks for."""
    asked = getattr(task.recipe.tokenizer, "vocab_size", None)
    tokenizer = getattr(task, "tokenizer", None)
    sides = [tokenizer, *(getattr(tokenizer, name, None) for name in ("source", "target"))]
    sizes = [side.vocab_size for side in sides if isinstance(side, Tokenizer)]
    if asked is None or not sizes or min(sizes) >= asked:
        return []
    return [f"tokenizer.vocab_size: {min(sizes):,}, not {asked:,}, since the text allows no more"]


def _kept_batch(config: TrainingConfig, run: Run | None) -> int | Literal["auto"]:
    """The size of batches: where it was found by trial, as the run has it."""
    if config.batch_tokens != "auto" or run is None:
        return config.batch_tokens
    return build(TrainingConfig, kept_recipe(run).training, where="training").batch_tokens


def _corpus(recipe: Recipe, config: TrainingConfig, run: Run | None) -> Literal["memory", "disk"]:
    """Where the text is; a run goes on as it began."""
    place = config.corpus
    if place == "auto" and run is not None:
        place = build(TrainingConfig, kept_recipe(run).training, where="training").corpus
    return "disk" if is_on_disk(recipe, place) else "memory"


def _stored(recipe: Recipe, config: TrainingConfig, watch: Preparing) -> StoredText | None:
    """The text, where it is on disk."""
    if config.corpus == "memory":
        return None
    return StoredText.of(recipe, cache=config.cache, watch=watch)


def _parts(recipe: Recipe, stored: StoredText | None, bad_lines: BadLines) -> Parts[object]:
    """The examples of the training; of a text on disk, some to learn from."""
    if stored is not None:
        return stored.parts(bad_lines)
    return TASKS[recipe.task].task.read_parts(recipe, bad_lines=bad_lines)


def _task(
    recipe: Recipe, kept: Path | None, examples: Sequence[object], stored: StoredText | None
) -> AnyTask:
    """The task with its vocabularies: as they are kept somewhere, or learned from the text."""
    task = TASKS[recipe.task].task
    if kept is not None:
        return task.load(recipe, kept)
    return task.learn(recipe, examples) if stored is None else stored.learned(recipe)


def _samples(
    stored: StoredText | None, task: AnyTask, bad_lines: BadLines, too_long: BadLines
) -> Stored[object] | None:
    """Training text, where it is on disk."""
    if stored is None:
        return None
    return stored.encoded(task, bad_lines=bad_lines, too_long=too_long)


def _fingerprint(
    examples: Sequence[ExampleT], of: Callable[[ExampleT], str], stored: StoredText | None
) -> str:
    """Fingerprint of a text: a checksum of its examples, in their order.

    Args:
        examples: Those that are in memory.
        of: What tells one from others.
        stored: The text, where it is on disk.
    """
    digest = hashlib.sha256(stored.key.encode() if stored else b"")
    for example in examples:
        digest.update(of(example).encode())
    return digest.hexdigest()
