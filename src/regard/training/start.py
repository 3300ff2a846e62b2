"""From a recipe to a trained run: whatever the task, one path."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn

from regard.choices import choose
from regard.config import as_table, assign, build
from regard.errors import RunError
from regard.runs import Run, is_run
from regard.runs.history import told
from regard.tasks import TASKS, Recipe, recipe_from_table
from regard.tasks.parts import Parts, read_parts
from regard.tasks.recipe import HELD_OUT, with_training
from regard.text import BadLines, Tokenizer
from regard.training.continuing import as_then, find_changes, kept_recipe, note_changes
from regard.training.encoded import EncodedText
from regard.training.jobs import JobTraining
from regard.training.listeners import Listeners
from regard.training.pretrained import begin_with
from regard.training.progress import ConsoleReporter, Reporter
from regard.training.settings import TrainingConfig
from regard.training.tensorboard import TensorBoardReporter, is_installed
from regard.training.trainer import Trainable, Trainer
from regard.training.translation import TranslationTraining


class Work(Trainable, Protocol):
    """What training asks of a task besides the loop's questions: text in, a model to use out."""

    unit: str
    counted: str
    valid: Any

    @property
    def num_examples(self) -> int:
        """Examples to learn from."""

    @classmethod
    def fingerprint(cls, example: Any) -> str:
        """What tells an example from others."""

    @classmethod
    def settled(
        cls, recipe: Recipe, kept: Mapping[str, Any] | None, examples: Sequence[Any]
    ) -> Recipe:
        """The recipe with what it leaves open: as the run keeps it, or as the text says."""

    @classmethod
    def learn(cls, recipe: Recipe, examples: Sequence[Any]) -> Any:
        """Tokenizers and vocabularies, with ``save(folder)``."""

    @classmethod
    def load(cls, recipe: Recipe, folder: Path) -> Any:
        """The ones that a run keeps."""

    def build_model(self) -> nn.Module:
        """The recipe's model with new weights."""

    def predictor(self, model: nn.Module) -> Any:
        """The model in use."""

    def facts(self) -> list[str]:
        """What was learned from the text, in lines for people."""


# The work of each task, made from recipe, vocabularies, training and validation examples, the
# settings of training, where examples that are too long are counted, and what the run keeps of the
# text as ids.
WORKS: dict[str, Any] = {
    name: TranslationTraining if kind.task is None else JobTraining for name, kind in TASKS.items()
}


@dataclass(frozen=True)
class Trained:
    """What a training leaves.

    Attributes:
        path: The run folder.
        predictor: The trained model in use; a ``Predictor`` for translation.
        summary: Updates, tokens, seconds, validation figures.
    """

    path: Path
    predictor: Any
    summary: dict[str, Any]


def train(
    recipe: Recipe,
    path: str | Path,
    *,
    reporter: Reporter | None = None,
    may_change: bool = False,
) -> Trained:
    """Train a model into a run folder, or go on with one that was interrupted.

    Args:
        recipe: What to train on and how. Where the folder holds a run already, it must be the
            recipe of that run.
        path: The run folder, made if it does not exist.
        reporter: Who is told; None prints to the console.
        may_change: Whether a run that is there may go on by other settings of training: its limits,
            rate, schedule, batches and so on. The run remembers what was changed at which update.

    Raises:
        DataError: The text cannot be used.
        SettingError: A setting is unknown or out of range, or the vocabulary does not fit.
        RunError: The folder holds another recipe's run, is damaged, or is in use.
        TrainingError: The loss was not finite.
        Interrupted: Asked to stop; the same call goes on.
    """
    path = Path(path)
    watchers = [TensorBoardReporter(path)] if is_installed() else []
    reporter = Listeners(reporter or ConsoleReporter(), *watchers)
    bad_lines, too_long = BadLines(), BadLines()
    work_of = choose("task", recipe.task, WORKS)
    with ExitStack() as stack:
        run: Run | None = None
        if is_run(path):
            run = stack.enter_context(Run.open_for_training(path))
            recipe = as_then(recipe, run)
        config = build(TrainingConfig, recipe.training, where="training")
        recipe = with_training(recipe, as_table(config))
        if run is not None:
            recipe = work_of.settled(recipe, {"data": {}, **run.recipe}, ())
        recipe, pretrained = begin_with(recipe, run)
        changes = {} if run is None else find_changes(run, recipe, may_change=may_change)
        parts = read_parts(recipe, bad_lines=bad_lines)
        examples, valid = parts.train, parts.valid
        text = _fingerprint([*examples, *valid], work_of.fingerprint)
        if run is None:
            recipe = work_of.settled(recipe, None, examples)
        elif run.text not in (None, text):
            raise RunError(
                f"{path} must go on with the text it began with; its {work_of.unit} have changed "
                "since. Restore them, or train the new ones into another folder: --run FOLDER."
            )
        is_learned = run is not None and run.has_tokenizer
        kept = run.tokenizer_folder if run is not None and is_learned else None
        if kept is None and pretrained is not None:
            kept = pretrained.vocabularies(recipe)
        learned = work_of.learn(recipe, examples) if kept is None else work_of.load(recipe, kept)
        encoded = EncodedText(run if is_learned else None)
        work: Work = work_of(recipe, learned, examples, valid, config, too_long, encoded)
        choose("training.metric", config.metric, dict(work.metrics))
        torch.manual_seed(config.seed)
        model = work.build_model()
        if pretrained is not None:
            pretrained.fill(model, recipe, run)
        if run is None:
            # Last, so that nothing is left behind by text or settings that cannot be used.
            run = stack.enter_context(Run.create(path, recipe.table(), recipe.task, text=text))
        if not is_learned:
            with run.new_tokenizer_folder() as folder:
                learned.save(folder)
        encoded.save(run)
        note_changes(run, changes)
        facts = [*_facts(recipe, work, learned, model, bad_lines, too_long)]
        facts += [*_told_test(recipe, parts, work.unit), *told(run.changes)]
        reporter.started(facts, counted=work.counted)
        summary = Trainer(run, model, work, config, reporter).fit()
        run.fill(model)
        model.eval()
    return Trained(path, work.predictor(model), summary)


def with_test(recipe: Recipe, path: str | Path) -> Recipe:
    """The recipe with a part of its training text held out to test on, where it names no test.

    Args:
        recipe: What is to be trained.
        path: The run folder. A run that is there goes on with the text that it began with.
    """
    if recipe.uses_phrasebook or recipe.data.test or not recipe.files("train"):
        return recipe
    if is_run(path) and Run.open(path).recipe["data"].get("test") != HELD_OUT:
        return recipe
    return replace(recipe, data=replace(recipe.data, test=HELD_OUT))


def resume(
    path: str | Path, *, settings: Sequence[str] = (), reporter: Reporter | None = None
) -> Trained:
    """Go on with the training of a run folder, by the recipe that it keeps.

    Args:
        path: The run folder.
        settings: ``training.learning_rate=0.001`` and the like, to go on by instead. What a model
            is and what it reads cannot change.
        reporter: Who is told; None prints to the console.
    """
    table = kept_recipe(Run.open(path)).table()
    assign(table, settings)
    return train(recipe_from_table(table), path, reporter=reporter, may_change=True)


def _facts(
    recipe: Recipe,
    work: Work,
    learned: object,
    model: nn.Module,
    bad_lines: BadLines,
    too_long: BadLines,
) -> list[str]:
    """What is about to be trained, in lines for people."""
    parameters = sum(p.numel() for p in model.parameters())
    facts = [
        f"{work.num_examples:,} {work.unit} to train on, {len(work.valid):,} to validate on",
        *work.facts(),
        *_told_size(recipe, learned),
        f"{recipe.model_type} with {parameters:,} parameters",
    ]
    for counted, what in (
        (bad_lines, "left out {:,} lines that cannot be read"),
        (too_long, f"cut or left out {{:,}} {work.unit} too long"),
    ):
        if counted.total:
            facts.append(what.format(counted.total))
    return facts


def _told_test(recipe: Recipe, parts: Parts, unit: str) -> list[str]:
    """What is held out to test on."""
    if not recipe.holds_out_test:
        return []
    if not parts.test:
        return [f"no {unit} held out to test on: there are too few. data.test names some"]
    return [
        f"{len(parts.test):,} {unit} held out to test on, chosen by hash and not trained on; "
        "data.test names others"
    ]


def _told_size(recipe: Recipe, learned: object) -> list[str]:
    """Where the vocabulary is smaller than the recipe asks for."""
    asked = getattr(recipe.tokenizer, "vocab_size", None)
    sides = [getattr(learned, name, None) for name in ("tokenizer", "source", "target")]
    sizes = [side.vocab_size for side in sides if isinstance(side, Tokenizer)]
    if asked is None or not sizes or min(sizes) >= asked:
        return []
    return [f"tokenizer.vocab_size: {min(sizes):,}, not {asked:,}, since the text allows no more"]


def _fingerprint(examples: Sequence[Any], of: Callable[[Any], str]) -> str:
    """What tells these examples from others: a checksum of their texts, in their order."""
    digest = hashlib.sha256()
    for example in examples:
        digest.update(of(example).encode())
    return digest.hexdigest()
