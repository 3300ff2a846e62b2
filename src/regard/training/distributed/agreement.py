"""Agreement of a training's processes, checked before it begins."""

import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import cast

import torch
from torch import nn

from regard.config import JsonValue
from regard.errors import RunError, SettingError
from regard.layers.norms import BatchNorm
from regard.runs.card import CARD_FILE
from regard.runs.files import checksum
from regard.tasks import Recipe
from regard.training.distributed.strategies import check_shardable
from regard.training.distributed.world import World
from regard.training.settings import TrainingConfig
from regard.version import __version__

# Seconds until what one machine has written is seen from another: NFS looks as seldom as that.
_SEEN_WITHIN, _LOOK_EVERY = 60.0, 0.5


def check_agreement(world: World, recipe: Recipe) -> None:
    """Raise unless all processes train by the same recipe and the same program."""
    if world.is_single:
        return
    mine: dict[str, JsonValue] = {
        **_flat(cast(Mapping[str, JsonValue], recipe.table())),
        "the version of regard": __version__,
        "the version of torch": torch.__version__,
        "the program of regard": _program(),
    }
    first, *others = world.gather(mine)
    for rank, other in enumerate(others, 1):
        for name in [*first, *(other.keys() - first.keys())]:
            if first.get(name) != other.get(name):
                raise SettingError(
                    f"{name} must be the same in all processes; got {first.get(name)!r} in process "
                    f"0 and {other.get(name)!r} in process {rank}. Start all by the same command."
                )


def check_folder(world: World, path: Path) -> None:
    """Wait for the first process to have made the run, and for the others to see it."""
    if world.is_single:
        return
    card = path / CARD_FILE
    made = world.broadcast(lambda: checksum(card.read_bytes()))
    until = time.monotonic() + _SEEN_WITHIN
    while not (card.exists() and checksum(card.read_bytes()) == made):
        if time.monotonic() > until:
            raise RunError(
                f"{path} must be a folder that all processes see; process {world.rank} does not "
                "see what process 0 has written there. Put it on a disk that the machines share."
            )
        time.sleep(_LOOK_EVERY)


def check_shared(
    world: World, model: nn.Module, config: TrainingConfig, examples_a_batch: float
) -> None:
    """Raise unless so many processes can learn from a batch together."""
    if world.is_single:
        return
    if config.shard:
        check_shardable(config)
    examples = examples_a_batch * config.accumulate
    if examples < world.size:
        raise SettingError(
            f"training.batch_tokens must give each of {world.size} processes an example; got "
            f"batches of {config.batch_tokens} tokens, {examples_a_batch:.1f} examples in the mean."
            " Take fewer processes, or larger batches."
        )
    if any(
        isinstance(part, BatchNorm | nn.modules.batchnorm._BatchNorm) for part in model.modules()
    ):
        raise SettingError(
            f"model.norm_kind must be layer or rms where {world.size} processes train, each of "
            "which sees a part of a batch; got 'batch'."
        )


def _flat(table: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Settings by their dotted names."""
    flat: dict[str, JsonValue] = {}
    for section, settings in table.items():
        if isinstance(settings, dict):
            flat |= {f"{section}.{name}": value for name, value in settings.items()}
        else:
            flat[section] = settings
    return flat


@cache
def _program() -> str:
    """Fingerprint of this program."""
    folder = Path(__file__).parents[1]
    files = sorted(folder.rglob("*.py"))
    listed = "".join(f"{file.relative_to(folder)} {checksum(file.read_bytes())}" for file in files)
    return checksum(listed.encode())[:12]
