"""Batches on their way to the device where the model is."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Generic, TypeVar, cast

import torch
from torch import Tensor

T = TypeVar("T")


def moved(value: T, device: torch.device) -> T:
    """Move the tensors of a tree to a device; returns the tree itself if they are there.

    Looks into tuples, mappings and dataclasses. Lists are left alone: they hold the samples of a
    batch.

    Copies to a GPU begin at once and are awaited by its next work, not by the program:
    the tensors go by way of pinned memory.

    Example:
        >>> batch = (torch.zeros(2), ["a", "b"])
        >>> moved(batch, torch.device("cpu")) is batch
        True
        >>> moved(batch, torch.device("meta"))[0].device
        device(type='meta')
    """
    if device.type == "cpu":
        return value
    return cast(T, _moved(value, device))


def _moved(value: object, device: torch.device) -> object:
    if isinstance(value, Tensor):
        if value.device.type == "cpu" and device.type == "cuda":
            value = value.pin_memory()
        return value.to(device, non_blocking=True)
    if isinstance(value, tuple):
        parts = tuple(_moved(part, device) for part in value)
        return type(value)._make(parts) if hasattr(value, "_make") else parts
    if isinstance(value, dict):
        return {name: _moved(part, device) for name, part in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        parts_of = {field.name: getattr(value, field.name) for field in fields(value)}
        changed = {name: _moved(part, device) for name, part in parts_of.items()}
        changed = {name: new for name, new in changed.items() if new is not parts_of[name]}
        return replace(value, **changed) if changed else value
    return value


class Ahead(Generic[T]):
    """Batches on a device, one of them made and sent while the device works on that before."""

    # A CPU that makes a batch cannot train meanwhile: there they come when they are asked for.

    def __init__(self, batches: Iterator[T], device: torch.device) -> None:
        self._batches, self._device = batches, device
        self._next: list[T] = []

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        return self._next.pop() if self._next else moved(next(self._batches), self._device)

    def reach(self) -> None:
        """Make the next batch, if there is one, and send it: to be called while there is work."""
        if self._device.type == "cpu" or self._next:
            return
        for batch in self._batches:
            self._next.append(moved(batch, self._device))
            return
