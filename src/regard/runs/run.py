"""The run folder: everything one training leaves, whole at every moment, and what reads it.

::

    run/recipe.toml          the resolved settings that it was begun with
    run/run.json             format, version of regard, task, summary, checksums of the rest,
                             and what was changed since, at which update
    run/tokenizer/           whatever the tokenizer saved, and checksums.json
    run/checkpoints/         000001000/ and so on, see ``checkpoints``
    run/model.safetensors    the weights to use, once training has finished
    run/metrics.jsonl        one line a record
    run/tensorboard/         the same figures for TensorBoard, where that is installed
    run/lock                 held by the process that trains, as is the folder itself
"""

import shutil
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import cast

import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from regard.checks import check_path
from regard.config import JsonValue, write_toml
from regard.errors import RunError
from regard.files import fill_file, new_file, sync_file, sync_folder, write_file
from regard.runs.bundle import README, is_bundle, naming, pack, shipped, unpack, without_folders
from regard.runs.card import (
    CARD_FILE,
    CHECKSUMS,
    RECIPE_FILE,
    Card,
    Change,
    Changes,
    check_tokenizer,
    current_recipe,
    new_card,
    read_card,
    recipe_after,
    tokenizer_files,
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
from regard.runs.state import converted, pack_tensors, unpack_tensors
from regard.tasks import TASKS, AnyTask, RecipeTable, recipe_from_table

_TOKENIZER = "tokenizer"
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

    Raises:
        RunError: By every method: there is no run, a newer version of regard made it, another
            process trains into it, it is damaged (the message names the file), or the disk is full
            or refuses; what was saved before is kept.

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
        self._card = card
        self._lock = lock
        self._tokenizer_checked = False

    @classmethod
    def create(
        cls,
        path: str | Path,
        recipe: Mapping[str, object],
        task: str,
        *,
        name: str | None = None,
        text: str | None = None,
        processes: int = 1,
        pretrained_commit: str | None = None,
    ) -> "Run":
        """A new run at ``path``, open for training.

        Args:
            path: A folder that does not exist or is empty, or that a killed ``create`` left.
            recipe: The resolved settings as a table; None in it is left out.
            task: The name of the task.
            name: What the recipe is called, for people.
            text: A fingerprint of the text that is trained on, to know it again.
            processes: How many train it together.
            pretrained_commit: The commit of the checkpoint of the Hugging Face Hub that it begins
                with; None if it begins with none.
        """
        check_path("run", path)
        path = Path(path)
        lock = lock_new(path)
        try:
            content = write_toml(recipe).encode()
            write_file(path / RECIPE_FILE, content)
            recipe_checksum = checksum(content)
            card = new_card(task, recipe=recipe_checksum, name=name, text=text, processes=processes)
            if pretrained_commit is not None:
                card["pretrained_commit"] = pretrained_commit
            write_file(path / CARD_FILE, seal(card))
            return cls(path, card=card, lock=lock)
        except BaseException:
            lock.release()
            raise

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
        if not self.is_finished or (model := self._card["model"]) is None:
            raise RunError(
                f"{self.path} must have finished training; it has not. "
                "Go on with it by the command that began it."
            )
        return model

    def pack(self, bundle: str | Path, *, readme: str, dtype: torch.dtype | None = None) -> None:
        """Write what it takes to use this run, and a README, into a file that ``open`` takes.

        Its recipe has the settings that training ended with, and files without their folders.

        Args:
            bundle: The file.
            readme: Its README, in Markdown.
            dtype: Of the weights in it; None leaves them as they are.
        """
        content = self._read_model(self.check_finished())
        if dtype is not None:
            weights = converted(unpack_tensors(content, where=self.path), dtype)
            content = b"".join(pack_tensors(weights))
        listed = tokenizer_files(self.tokenizer_folder, self._card.get("tokenizer"))
        names = sorted(f"{_TOKENIZER}/{name}" for name in (*listed, CHECKSUMS))
        recipe = write_toml(_of_no_machine(self.recipe)).encode()
        changed = {"recipe": checksum(recipe), "model": checksum(content), "changes": []}
        card = {**self._card, **changed}
        with new_file(Path(bundle)) as temporary:
            pack(
                temporary,
                written={
                    README: readme,
                    RECIPE_FILE: recipe,
                    CARD_FILE: seal(card),
                    MODEL_FILE: content,
                },
                files={name: self.folder / name for name in names},
            )

    @classmethod
    def open_for_training(cls, path: str | Path) -> "Run":
        """The run at ``path``, locked, to go on with; what a kill left half done is cleared."""
        path = Path(path)
        read_card(path)
        lock = Lock(path)
        try:
            for name in (CARD_FILE, MODEL_FILE, _METRICS):
                check_plain(path / name)
            tidy(path)
            if (path / _CHECKPOINTS).exists():
                tidy(path / _CHECKPOINTS)
            run = cls(path, card=read_card(path), lock=lock)
            run._drop_damaged_model()
            run._record_tokenizer()
            return run
        except BaseException:
            lock.release()
            raise

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
        return self._card["task"]

    @property
    def name(self) -> str | None:
        """Name of its recipe, as given to ``create``."""
        name = self._card.get("name")
        return name if isinstance(name, str) else None

    @property
    def text(self) -> str | None:
        """The fingerprint of the text that is trained on, as given to ``create``."""
        return self._card.get("text")

    @property
    def threads(self) -> int | None:
        """How many threads of the processor it is trained with; None of a run from before."""
        return self._card.get("threads")

    @property
    def processes(self) -> int:
        """How many processes train it together."""
        return self._card.get("processes", 1)

    @property
    def pretrained_commit(self) -> str | None:
        """The commit of the Hugging Face Hub that it began with, as given to ``create``."""
        return self._card.get("pretrained_commit")

    @property
    def changes(self) -> list[Change]:
        """Changes of settings during training, the oldest first."""
        return list(self._card.get("changes", ()))

    def change(self, update: int, changes: Changes) -> None:
        """Go on by other settings after an update; the recipe's file stays as it was begun with."""
        self._check_open_for_training()
        change: Change = {
            "update": update,
            "was": {name: before for name, (before, _) in changes.items()},
            "is": {name: now for name, (_, now) in changes.items()},
        }
        history = [*self.changes, change]
        counts = {name: changes[name][1] for name in ("threads", "processes") if name in changes}
        self._update_card(changes=history, **counts)
        self.recipe = recipe_after(self.recipe, history)

    @property
    def is_finished(self) -> bool:
        """Whether ``finish`` was called, and no checkpoint was saved since."""
        return self._card["finished"]

    @property
    def summary(self) -> JsonValue:
        """Summary given to ``finish``; None before."""
        return self._card["summary"]

    @property
    def model_checksum(self) -> str | None:
        """Fingerprint of the final weights; None before training has finished."""
        return self._card["model"]

    @property
    def has_tokenizer(self) -> bool:
        """Whether the tokenizer has been saved, whole or damaged."""
        return (self.folder / _TOKENIZER).is_dir()

    @property
    def tokenizer_folder(self) -> Path:
        """Where the tokenizer is, its files checked once."""
        folder = self.folder / _TOKENIZER
        if not self.has_tokenizer:
            raise RunError(
                f"{folder} must hold the tokenizer; there is none."
                " Training ended before it was saved: run it again."
            )
        if not self._tokenizer_checked:
            with naming(self.path, self.folder):
                check_tokenizer(folder, self._card.get("tokenizer"))
            self._tokenizer_checked = True
        return folder

    @property
    def tokenizer_checksum(self) -> str | None:
        """Fingerprint of the saved tokenizer; None before it is saved."""
        return self._card.get("tokenizer")

    @contextmanager
    def new_tokenizer_folder(self) -> Iterator[Path]:
        """A folder to save the tokenizer into, which counts when the block ends well."""
        self._check_open_for_training()
        if self._card.get("tokenizer") is not None:
            self._update_card(tokenizer=None)
        with new_folder(self.folder / _TOKENIZER) as folder:
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
        if newest is None:
            cut_records(self.folder / _METRICS, 0)
            return None
        for saved in self.checkpoints():
            if saved.step > newest.step:
                saved.delete()
        cut_records(self.folder / _METRICS, newest.metrics_length, step=newest.step)
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
        before = {saved.step for saved in self.checkpoints()}
        length = sync_file(self.folder / _METRICS)
        sync_folder(self.folder)  # where metrics.jsonl may be new
        if self.is_finished and step not in before:
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
            summary: What to remember of the training, as JSON can hold it.
        """
        self._check_open_for_training()
        parts = pack_tensors(model_state)
        if self._card["model"] is not None:
            self._update_card(finished=False, model=None, summary=None)
        write_file(self.folder / MODEL_FILE, *parts)
        self._update_card(finished=True, model=checksum(*parts), summary=finite(summary))

    def load_task(self) -> AnyTask:
        """The task, with what it learned from the text."""
        recipe = recipe_from_table(self.recipe)
        folder = self.tokenizer_folder
        with naming(self.path, self.folder):
            return TASKS[recipe.task].task.load(recipe, folder)

    def load_model(self) -> dict[str, Shaped[Tensor, "..."]]:
        """The weights to use, on the CPU; before the end those of the newest checkpoint."""
        with naming(self.path, self.folder):
            while (expected := self._card["model"]) is not None:
                content = self.folder / MODEL_FILE
                try:
                    return unpack_tensors(self._read_model(expected), where=content)
                except DamageError:
                    card = read_card(self.folder)
                    if card["model"] == expected:
                        raise
                    self._card = card  # a training has finished again since the card was read
            return load_newest_model(self.folder / _CHECKPOINTS)

    def fill(self, model: nn.Module) -> None:
        """Put the weights to use into a model; RunError if they are of another one."""
        fill_model(model, self.load_model(), self.path)

    def build(self, build: Callable[[], ModelT]) -> ModelT:
        """A model with the weights to use, by what makes one of the recipe and the tokenizer."""
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
        if self._card["model"] is None:
            return
        try:
            self._read_model(self._card["model"])
        except DamageError as error:
            warnings.warn(f"{error} It is being made now.", RunWarning, stacklevel=3)
            self._update_card(finished=False, model=None, summary=None)

    def _record_tokenizer(self) -> None:
        """Note which tokenizer it is, where a kill came before that."""
        listing = self.folder / _TOKENIZER / CHECKSUMS
        if self._card.get("tokenizer") is None and listing.exists():
            self._update_card(tokenizer=checksum(read_file(listing)))

    def _update_card(self, **entries: object) -> None:
        card = cast(Card, {**self._card, **entries})
        write_file(self.folder / CARD_FILE, seal(card))
        self._card = card

    def _check_open_for_training(self) -> None:
        if self._lock is None:
            raise RunError(
                f"{self.path} must be open for training to be written; it is open for reading."
                " Open it with Run.open_for_training."
            )


def _of_no_machine(recipe: RecipeTable) -> RecipeTable:
    """The recipe with the names of its files, and of the run it began from, without folders."""
    table = deepcopy(recipe)
    for section, names in (("data", ("train", "valid", "test")), ("training", ("pretrained",))):
        settings = cast(dict[str, JsonValue], table.get(section, {}))
        settings |= {name: without_folders(settings[name]) for name in names if name in settings}
    return table
