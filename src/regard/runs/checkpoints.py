"""Checkpoints: weights and training state at one step, each a folder that is whole or not there.

A checkpoint is ``000001000/{model.safetensors, state.safetensors, state.json}``. ``state.json`` is
written last and holds the checksums of the other two and its own, so one flipped bit is found.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, TypeVar

import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from regard.config import JsonValue
from regard.devices.memory import build_within, is_finite
from regard.errors import RunError, excerpt
from regard.files import fill_file
from regard.runs.files import (
    DamageError,
    RunWarning,
    check_file,
    checksum,
    explain_path,
    make_folder,
    new_folder,
    read_checked,
    read_file,
    read_sealed,
    remove_folder,
    seal,
)
from regard.runs.state import State, join_state, pack_tensors, split_state, unpack_tensors

ModelT = TypeVar("ModelT", bound=nn.Module)

MODEL_FILE = "model.safetensors"
_TENSORS_FILE = "state.safetensors"
_STATE_FILE = "state.json"


class _Record(TypedDict):
    """Contents of ``state.json``."""

    step: int
    files: dict[str, str]
    metrics_length: int
    trainer: JsonValue


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One saved step of a run. Every reading is checked against the recorded checksums.

    Attributes:
        folder: Where it lies; the folder's name is the step.

    Raises:
        DamageError: By every reading: a file is missing or damaged; the message names it.

    Example:
        >>> import tempfile
        >>> home = Path(tempfile.mkdtemp())
        >>> saved = save_checkpoint(home, 400, {"w": torch.ones(2)}, {"seed": 1})
        >>> saved.folder.name, saved.step, saved.load_model(), saved.load_trainer()
        ('000000400', 400, {'w': tensor([1., 1.])}, {'seed': 1})
        >>> _ = (saved.folder / "model.safetensors").write_bytes(b"")
        >>> saved.check()
        Traceback (most recent call last):
        regard.runs.files.DamageError: ...
    """

    folder: Path

    @property
    def step(self) -> int:
        """The number of updates made before this was saved."""
        return int(self.folder.name)

    @property
    def identity(self) -> tuple[int, int] | None:
        """Identity of its folder, which a later save replaces; None if gone."""
        try:
            status = self.folder.stat()
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns

    def check(self) -> None:
        """Read everything once."""
        for name in (MODEL_FILE, _TENSORS_FILE):
            check_file(self.folder / name, self._expected(name))

    def load_model(self) -> dict[str, Shaped[Tensor, "..."]]:
        """The weights, on the CPU; tied weights share one tensor."""
        return self._tensors(MODEL_FILE)

    def load_trainer(self) -> State:
        """The trainer's state exactly as it was saved, its tensors on the CPU."""
        return self._joined(self._tensors(_TENSORS_FILE), self._record()["trainer"])

    def load_entry(self, name: str) -> State:
        """One entry of the trainer's state, which holds no tensors; None if it has none such."""
        saved = self._record()["trainer"]
        return self._joined({}, saved.get(name)) if isinstance(saved, Mapping) else None

    def delete(self) -> None:
        """Remove it from the disk; at no moment is it there in part."""
        remove_folder(self.folder)

    @property
    def metrics_length(self) -> int:
        """The bytes ``metrics.jsonl`` had when this was saved."""
        return self._record()["metrics_length"]

    def _record(self) -> "_Record":
        return read_sealed(self.folder / _STATE_FILE, _Record)

    def _expected(self, name: str) -> str:
        """The recorded checksum of a file."""
        expected = self._record()["files"].get(name)
        if expected is None:
            raise DamageError(
                f"{self.folder / _STATE_FILE} must hold the checksum of {name}; it does not. It is "
                "damaged."
            )
        return expected

    def _tensors(self, name: str) -> dict[str, Tensor]:
        path = self.folder / name
        return unpack_tensors(read_checked(path, self._expected(name)), where=path)

    def _joined(self, tensors: Mapping[str, Tensor], plain: JsonValue) -> State:
        try:
            return join_state(tensors, plain)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise DamageError(
                f"{self.folder / _STATE_FILE} must hold a state as it was saved; it does not: "
                f"damaged ({excerpt(error)})."
            ) from error


def save_checkpoint(
    home: Path,
    step: int,
    model_state: Mapping[str, Shaped[Tensor, "..."]],
    trainer_state: Mapping[str, object] | None,
    *,
    metrics_length: int = 0,
) -> Checkpoint:
    """Write a checkpoint into the folder ``home``, or replace it if anything in it changed."""
    if step < 0:
        raise RunError(f"step must be at least 0 to be saved; got {step}.")
    checkpoint = Checkpoint(home / f"{step:09d}")
    tensors, plain = split_state(trainer_state)
    files = {MODEL_FILE: pack_tensors(model_state), _TENSORS_FILE: pack_tensors(tensors)}
    record: _Record = {
        "step": step,
        "files": {name: checksum(*parts) for name, parts in files.items()},
        "metrics_length": metrics_length,
        "trainer": plain,
    }
    with suppress(RunError):
        checkpoint.check()
        if read_file(checkpoint.folder / _STATE_FILE) == seal(record):
            return checkpoint
    make_folder(home)
    with new_folder(checkpoint.folder) as folder:
        for name, parts in files.items():
            fill_file(folder / name, *parts)
        fill_file(folder / _STATE_FILE, seal(record))
    return checkpoint


def checkpoints(home: Path) -> list[Checkpoint]:
    """Every checkpoint in the folder ``home``, oldest first, damaged ones too."""
    with explain_path(home):
        if not home.is_dir():
            return []
        named = [path for path in home.iterdir() if path.name.isdecimal() and path.is_dir()]
    return [Checkpoint(path) for path in sorted(named, key=lambda path: int(path.name))]


def newest_checkpoints(home: Path, count: int = 1) -> list[Checkpoint]:
    """The last ``count`` undamaged checkpoints, oldest first; a RunWarning names damaged ones."""
    good: list[Checkpoint] = []
    damage: list[str] = []
    for checkpoint in reversed(checkpoints(home)):
        if len(good) == count:
            break
        identity_before = checkpoint.identity
        try:
            checkpoint.check()
        except DamageError as error:
            if identity_before is None or identity_before != checkpoint.identity:
                # A training has deleted it or saved it anew since: list them again.
                return newest_checkpoints(home, count)
            damage.append(str(error))
        else:
            good.insert(0, checkpoint)
    if damage and not good:
        raise RunError(
            f"{home} must hold an undamaged checkpoint; got {len(damage)}, all damaged"
            f" ({damage[0]}) Restore the folder from a copy, or delete it to train from the start."
        )
    for message in damage:
        warnings.warn(
            f"A checkpoint is damaged and not used: {message}"
            f" The one before it is used: step {good[-1].step}.",
            RunWarning,
            stacklevel=3,
        )
    return good


def load_newest_model(home: Path) -> dict[str, Shaped[Tensor, "..."]]:
    """Weights of a run's newest undamaged checkpoint, with a warning that they are not the last."""
    while latest := newest_checkpoints(home):
        try:
            weights = latest[0].load_model()
        except DamageError:
            continue  # it was whole a moment ago: it has been deleted, or is passed over now
        warnings.warn(
            f"{home.parent} has not finished training; the weights of step {latest[0].step} are "
            "used.",
            RunWarning,
            stacklevel=3,
        )
        return weights
    raise RunError(f"{home.parent} must hold weights; there are none yet. Train it first.")


def prune(home: Path, *, keep_last: int, best: int | None = None) -> None:
    """Delete all checkpoints but the newest ``keep_last`` and the one of step ``best``."""
    saved = checkpoints(home)
    for checkpoint in saved[: max(0, len(saved) - keep_last)]:
        if checkpoint.step != best:
            checkpoint.delete()


def average(saved: Sequence[Checkpoint]) -> dict[str, Shaped[Tensor, "..."]]:
    """The mean of the weights of several checkpoints, summed in float64 in the order given.

    Averaging equal weights, or one checkpoint, gives them back exactly. Whole numbers and flags
    are taken from the last. Tied weights stay tied.

    Raises:
        DamageError: One of them is damaged; ``newest_checkpoints`` gives undamaged ones.
        RunError: None is given, or they are not of the same model.

    Example:
        >>> import tempfile
        >>> home = Path(tempfile.mkdtemp())
        >>> first = save_checkpoint(home, 10, {"w": torch.tensor([1.0, 2.0])}, None)
        >>> second = save_checkpoint(home, 20, {"w": torch.tensor([3.0, 2.0])}, None)
        >>> average([first, second])
        {'w': tensor([2., 2.])}
    """
    if not saved:
        raise RunError("average must be given at least one checkpoint; got none.")
    last = saved[-1].load_model()
    # One name for each tensor that can be averaged, the first of tied ones.
    inexact = {
        id(tensor): name
        for name, tensor in sorted(last.items(), reverse=True)
        if tensor.is_floating_point() or tensor.is_complex()
    }
    sums: dict[str, Tensor] = {}
    for checkpoint in saved:
        tensors = checkpoint.load_model() if checkpoint is not saved[-1] else last
        if _shapes(tensors) != _shapes(last):
            raise RunError(
                f"{checkpoint.folder} and {saved[-1].folder} must be of one model to be averaged;"
                " their weights differ in name, shape or dtype."
            )
        for name in inexact.values():
            wide = torch.complex128 if tensors[name].is_complex() else torch.float64
            term = tensors[name].to(wide)
            sums[name] = sums[name] + term if name in sums else term
    means = {key: (sums[name] / len(saved)).to(last[name].dtype) for key, name in inexact.items()}
    return {name: means.get(id(tensor), tensor) for name, tensor in last.items()}


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, tuple[torch.Size, torch.dtype]]:
    return {name: (tensor.shape, tensor.dtype) for name, tensor in tensors.items()}


def fill_model(model: nn.Module, tensors: Mapping[str, Shaped[Tensor, "..."]], where: Path) -> None:
    """Put saved weights into a model; RunError if they are of another one, or not finite."""
    if (difference := _difference(model, tensors)) is not None:
        raise _mismatch(where, difference)
    for name, tensor in tensors.items():
        if not is_finite(tensor):
            raise RunError(
                f"{where} must hold finite weights; got NaN or infinity in {name}. Restore it from "
                "a copy, or train anew."
            )
    model.load_state_dict(dict(tensors))


def build_filled(
    build: Callable[[], ModelT], tensors: Mapping[str, Shaped[Tensor, "..."]], where: Path
) -> ModelT:
    """A model with saved weights, no tensor of which is made before they are known to fit."""
    # Of several names for one tensor, which costs nothing to claim, two count.
    several = {id(tensor): 0 for tensor in tensors.values()}
    numbers = 0
    for tensor in tensors.values():
        several[id(tensor)] += 1
        numbers += tensor.numel() if several[id(tensor)] <= 2 else 0
    refusal = _mismatch(where, f"no more than {len(tensors)} tensors of {numbers:,} numbers")
    model = build_within(build, tensors=len(tensors), numbers=numbers, refusal=refusal)
    fill_model(model, tensors, where)
    return model


def _mismatch(where: Path, got: str) -> RunError:
    return RunError(
        f"{where} must hold weights of the model that its recipe and tokenizer describe; got "
        f"{got}. They are of different trainings: restore the whole folder from a copy, or train "
        "anew into another one."
    )


def _difference(model: nn.Module, tensors: Mapping[str, Tensor]) -> str | None:
    """The first thing in which weights differ from those of a model."""
    expected = model.state_dict()
    for name in sorted(expected.keys() & tensors.keys()):
        tensor, expected_tensor = tensors[name], expected[name]
        if tensor.shape != expected_tensor.shape:
            return f"{name} of {list(tensor.shape)}, not {list(expected_tensor.shape)}"
        if tensor.dtype != expected_tensor.dtype and not (
            _is_float(tensor) and _is_float(expected_tensor)
        ):
            return f"{name} of {tensor.dtype}, not {expected_tensor.dtype}".replace("torch.", "")
    if missing := expected.keys() - tensors.keys():
        return f"no {min(missing)}"
    more = tensors.keys() - expected.keys()
    return f"{excerpt(min(more))}, which it has not" if more else None


def _is_float(tensor: Tensor) -> bool:
    """Whether it is of a kind that weights are saved in: of sixteen bits or more."""
    return tensor.is_floating_point() and tensor.dtype.itemsize >= 2
