"""A run folder, opened to train into it or to read it."""

import shutil
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from jaxtyping import Shaped
from torch import Tensor, nn

from regard.checks import check_path
from regard.config import JsonValue, write_toml
from regard.errors import RunError
from regard.files import fill_file, sync_file, sync_folder, write_file
from regard.runs.bundle import is_bundle, naming, shipped, unpack
from regard.runs.card import (
    CARD_FILE,
    CHECKSUMS,
    RECIPE_FILE,
    Card,
    Change,
    Changes,
    Provenance,
    check_tokenizer,
    current_recipe,
    new_card,
    read_card,
    recipe_after,
)
from regard.runs.checkpoints import (
    MODEL_FILE,
    Checkpoint,
    ModelT,
    build_filled,
    checkpoints,
    fill_model,
    load_newest_model,
    newest_checkpoints,
    prune,
    save_checkpoint,
)
from regard.runs.files import (
    DamageError,
    RunWarning,
    check_plain,
    checksum,
    checksums,
    new_folder,
    read_checked,
    read_file,
    seal,
    tidy,
)
from regard.runs.lock import Lock, lock_new
from regard.runs.records import append_record, cut_records, finite, read_records
from regard.runs.state import pack_tensors, unpack_tensors
from regard.tasks import TASKS, AnyTask, recipe_from_table

TOKENIZER = "tokenizer"
_CHECKPOINTS = "checkpoints"
_METRICS = "metrics.jsonl"


class Run:
    """A run folder, opened to train into it (one process at a time) or to read it (any number).

    Training, the first time and again after a kill, is the same few lines::

        with Run.open_for_training(path) if is_run(path) else Run.create(path, recipe, task) as run:
            if not run.has_tokenizer:
                with run.new_tokenizer_folder() as folder:
                    tokenizer.save(folder)
            checkpoint = run.resume()                # None: from the start
            ...                                      # model, trainer from checkpoint.load_...()
            run.append_metrics({"step": step, "loss": loss})
            run.save_checkpoint(step, model.state_dict(), trainer_state)
            run.prune(keep_last=3, best=best_step)
            run.finish(average(run.newest_checkpoints(3)), {"steps": step})

    Attributes:
        path: The folder or bundle, as it was named.
        folder: Where its files are: the folder itself, or one for a bundle that ends with the Run.
        recipe: The settings as they are now.
        card: Contents of ``run.json``: checksums, threads, processes, and where it came from.

    Raises:
        RunError: By every method: there is no run, a newer version of regard made it, another
            process trains into it, it is damaged (the message names the file), or the disk is full
            or refuses; earlier saves are kept.

    Example:
        >>> import tempfile, torch
        >>> home = Path(tempfile.mkdtemp()) / "run"
        >>> with Run.create(home, {"task": "translation"}, "translation") as run:
        ...     _ = run.save_checkpoint(10, {"w": torch.ones(2)}, {"seed": 1})
        ...     run.finish({"w": torch.ones(2)}, {"steps": 10})
        >>> run = Run.open(home)
        >>> run.task, run.summary, run.load_model()
        ('translation', {'steps': 10}, {'w': tensor([1., 1.])})
    """

    def __init__(
        self, path: Path, *, card: Card, lock: Lock | None, folder: Path | None = None
    ) -> None:
        """Not for use: ``create``, ``open`` and ``open_for_training`` make a Run."""
        self.path = path
        self.folder = folder or path
        self.recipe = current_recipe(self.folder, card, name=path)
        self.card = card
        self._lock = lock
        self._tokenizer_checked = False

    @classmethod
    def create(
        cls,
        path: str | Path,
        recipe: Mapping[str, object],
        task: str,
        provenance: Provenance | None = None,
    ) -> "Run":
        """A new run at ``path``, open for training.

        Args:
            path: A folder that does not exist or is empty, or that a killed ``create`` left.
            recipe: The resolved settings as a table; None in it is left out.
            task: The name of the task.
            provenance: Its origin besides the recipe; None says nothing.
        """
        check_path("run", path)
        path = Path(path)
        with lock_new(path).released_on_error() as lock:
            content = write_toml(recipe).encode()
            write_file(path / RECIPE_FILE, content)
            card = new_card(task, checksum(content), provenance or Provenance())
            write_file(path / CARD_FILE, seal(card))
            return cls(path, card=card, lock=lock)

    @classmethod
    def open(cls, path: str | Path) -> "Run":
        """The run at ``path``, a folder or a bundle, to read; it may be in training meanwhile.

        Where nothing is there, the name of a bundle that comes with the package stands for it.
        """
        check_path("run", path)
        path = shipped(Path(path))
        if not is_bundle(path):
            return cls(path, card=read_card(path), lock=None)
        folder = unpack(path)
        try:
            with naming(path, folder):
                run = cls(path, card=read_card(folder), lock=None, folder=folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        weakref.finalize(run, shutil.rmtree, folder, ignore_errors=True)
        return run

    def check_finished(self) -> str:
        """The checksum of the final weights; RunError unless training has finished."""
        if not self.is_finished or (model := self.card["model"]) is None:
            raise RunError(
                f"{self.path} must have finished training; it has not. "
                "Go on with it by the command that began it."
            )
        return model

    @classmethod
    def open_for_training(cls, path: str | Path) -> "Run":
        """The run at ``path``, locked, to resume; half-done work of a kill is cleared."""
        path = Path(path)
        read_card(path)
        with Lock(path).released_on_error() as lock:
            for name in (CARD_FILE, MODEL_FILE, _METRICS):
                check_plain(path / name)
            tidy(path)
            tidy(path / _CHECKPOINTS)
            run = cls(path, card=read_card(path), lock=lock)
            run._drop_damaged_model()
            run._record_tokenizer()
            return run

    def close(self) -> None:
        """Give the folder free for others to train into; a second call does nothing."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def task(self) -> str:
        """The name of the task, as given to ``create``."""
        return self.card["task"]

    @property
    def changes(self) -> list[Change]:
        """Changes of settings during training, the oldest first."""
        return list(self.card.get("changes", ()))

    def change(self, update: int, changes: Changes) -> None:
        """Go on by other settings after an update; the recipe's file stays as it was begun with."""
        self._check_open_for_training()
        was, now = ({name: pair[n] for name, pair in changes.items()} for n in (0, 1))
        history: list[Change] = [*self.changes, {"update": update, "was": was, "is": now}]
        counts = {name: now[name] for name in ("threads", "processes") if name in now}
        self._update_card(changes=history, **counts)
        self.recipe = recipe_after(self.recipe, history)

    @property
    def is_finished(self) -> bool:
        """Whether ``finish`` was called, and no checkpoint was saved since."""
        return self.card["finished"]

    @property
    def summary(self) -> JsonValue:
        """Summary given to ``finish``; None before."""
        return self.card["summary"]

    @property
    def has_tokenizer(self) -> bool:
        """Whether the tokenizer has been saved, whole or damaged."""
        return (self.folder / TOKENIZER).is_dir()

    @property
    def tokenizer_folder(self) -> Path:
        """The folder of the tokenizer, its files checked once."""
        folder = self.folder / TOKENIZER
        if not self._tokenizer_checked:
            with naming(self.path, self.folder):
                check_tokenizer(folder, self.card.get("tokenizer"))
            self._tokenizer_checked = True
        return folder

    @contextmanager
    def new_tokenizer_folder(self) -> Iterator[Path]:
        """A folder to save the tokenizer into, which counts when the block ends well."""
        self._check_open_for_training()
        if self.card.get("tokenizer") is not None:
            self._update_card(tokenizer=None)
        with new_folder(self.folder / TOKENIZER) as folder:
            yield folder
            listing = seal({"files": checksums(folder)})
            fill_file(folder / CHECKSUMS, listing)
        self._update_card(tokenizer=checksum(listing))

    def checkpoints(self) -> list[Checkpoint]:
        """Every checkpoint, oldest first, unchecked."""
        return checkpoints(self.folder / _CHECKPOINTS)

    def newest_checkpoint(self) -> Checkpoint | None:
        """The newest undamaged checkpoint, or None if none was ever saved."""
        return next(iter(self.newest_checkpoints(1)), None)

    def newest_checkpoints(self, count: int) -> list[Checkpoint]:
        """The last ``count`` undamaged checkpoints, oldest first; a RunWarning names others."""
        return newest_checkpoints(self.folder / _CHECKPOINTS, count)

    def resume(self) -> Checkpoint | None:
        """The checkpoint to go on from, with the folder as it was when that was saved.

        ``metrics.jsonl`` is cut back to its length then, and damaged checkpoints after it are
        deleted, so that going on leaves the same files as a run that was never interrupted. None
        begins at the start.
        """
        self._check_open_for_training()
        newest = self.newest_checkpoint()
        step, length = (0, 0) if newest is None else (newest.step, newest.metrics_length)
        for saved in self.checkpoints():
            if saved.step > step:
                saved.delete()
        cut_records(self.folder / _METRICS, length, step=step)
        return newest

    def save_checkpoint(
        self,
        step: int,
        model_state: Mapping[str, Shaped[Tensor, "..."]],
        trainer_state: Mapping[str, object] | None,
    ) -> Checkpoint:
        """Save everything needed to go on from here; a kill at any moment leaves the one before.

        Args:
            step: Updates made so far; it names the checkpoint.
            model_state: The model's ``state_dict``. Tied weights are stored once.
            trainer_state: Optimizer, random generators, cursor: None, flags, numbers, text,
                tensors, and lists, tuples and mappings of those, as deep as you like.
        """
        self._check_open_for_training()
        home = self.folder / _CHECKPOINTS
        length = sync_file(self.folder / _METRICS)
        sync_folder(self.folder)  # where metrics.jsonl may be new
        if self.is_finished and step not in {saved.step for saved in self.checkpoints()}:
            self._update_card(finished=False)
        return save_checkpoint(home, step, model_state, trainer_state, metrics_length=length)

    def prune(self, *, keep_last: int, best: int | None = None) -> None:
        """Delete all checkpoints but the newest ``keep_last`` and the one of step ``best``."""
        self._check_open_for_training()
        prune(self.folder / _CHECKPOINTS, keep_last=keep_last, best=best)

    def append_metrics(self, record: Mapping[str, object]) -> None:
        """Add a line to ``metrics.jsonl``; infinities and NaN become null, as JSON has none."""
        self._check_open_for_training()
        append_record(self.folder / _METRICS, record)

    def metrics(self) -> list[dict[str, JsonValue]]:
        """The records of ``metrics.jsonl``; a last line that a kill tore is left out."""
        return read_records(self.folder / _METRICS)

    def finish(
        self, model_state: Mapping[str, Shaped[Tensor, "..."]], summary: object = None
    ) -> None:
        """Save the weights that everyone is to use from now on.

        Args:
            model_state: The final weights.
            summary: Summary of the training, as JSON can hold it.
        """
        self._check_open_for_training()
        parts = pack_tensors(model_state)
        if self.card["model"] is not None:
            self._update_card(finished=False, model=None, summary=None)
        write_file(self.folder / MODEL_FILE, *parts)
        self._update_card(finished=True, model=checksum(*parts), summary=finite(summary))

    def load_task(self) -> AnyTask:
        """The task, with its vocabulary and labels."""
        recipe = recipe_from_table(self.recipe)
        folder = self.tokenizer_folder
        with naming(self.path, self.folder):
            return TASKS[recipe.task].task.load(recipe, folder)

    def load_model(self) -> dict[str, Shaped[Tensor, "..."]]:
        """The weights to use, on the CPU; before the end those of the newest checkpoint."""
        with naming(self.path, self.folder):
            while (expected := self.card["model"]) is not None:
                try:
                    content = self._read_model(expected)
                    return unpack_tensors(content, where=self.folder / MODEL_FILE)
                except DamageError:
                    card = read_card(self.folder)
                    if card["model"] == expected:
                        raise
                    self.card = card  # a training has finished again since the card was read
            return load_newest_model(self.folder / _CHECKPOINTS)

    def fill(self, model: nn.Module) -> None:
        """Put the weights to use into a model; RunError if they are of another one."""
        fill_model(model, self.load_model(), self.path)

    def build(self, build: Callable[[], ModelT]) -> ModelT:
        """A model with the weights to use, by a function of the recipe and the tokenizer."""
        return build_filled(build, self.load_model(), self.path)

    def _read_model(self, expected: str) -> bytes:
        try:
            return read_checked(self.folder / MODEL_FILE, expected)
        except DamageError as error:
            cure = "Run its training again to make it anew."
            if self.folder != self.path:
                cure = "Fetch the bundle once more from where it came."
            raise DamageError(f"{error} {cure}") from error

    def _drop_damaged_model(self) -> None:
        """Training goes on from the checkpoints where the final weights are damaged."""
        try:
            if (model := self.card["model"]) is not None:
                self._read_model(model)
        except DamageError as error:
            warnings.warn(f"{error} It is being made now.", RunWarning, stacklevel=3)
            self._update_card(finished=False, model=None, summary=None)

    def _record_tokenizer(self) -> None:
        """Note which tokenizer it is, where a kill came before that."""
        listing = self.folder / TOKENIZER / CHECKSUMS
        if self.card.get("tokenizer") is None and listing.exists():
            self._update_card(tokenizer=checksum(read_file(listing)))

    def _update_card(self, **entries: object) -> None:
        card = cast(Card, {**self.card, **entries})
        write_file(self.folder / CARD_FILE, seal(card))
        self.card = card

    def _check_open_for_training(self) -> None:
        if self._lock is None:
            raise RunError(
                f"{self.path} must be open for training to be written; it is open for reading."
                " Open it with Run.open_for_training."
            )
