"""When a training ends, and by a trial of some batches, how long it takes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

import torch
from torch import nn

from regard.devices import device_of, moved, preserved_randomness
from regard.training.precision import compute_dtype, mixed_precision
from regard.training.settings import TrainingConfig
from regard.training.task_training import AnyTraining

# Batches that are timed, and seconds after which no further one is.
_TIMED, _PATIENT = 3, 2.0


def describe_end(
    training: AnyTraining, model: nn.Module, config: TrainingConfig, *, is_timed: bool
) -> str:
    """Line that says when a training ends; timing batches changes no weight or random state."""
    an_epoch = max(1, round(training.num_samples / training.examples_a_batch / config.accumulate))
    limits: list[tuple[int, str]] = []
    if config.updates is not None:
        epochs = f"{max(0.1, config.updates / an_epoch):,.3g}"
        limits.append((config.updates, f"{config.updates:,} updates ({epochs} epochs)"))
    if config.epochs is not None:
        updates = config.epochs * an_epoch
        text = f"{config.epochs} epochs of {an_epoch:,} updates"
        text = text if config.epochs > 1 else f"1 epoch of {an_epoch:,} updates"
        if updates < config.least_updates:
            more = f"{config.least_updates / an_epoch:,.3g}"
            text = f"{config.least_updates:,} updates ({more} epochs, as the text is small)"
        limits.append((max(updates, config.least_updates), text))
    times = [] if config.minutes is None else [f"{config.minutes:g} minutes"]
    ends = [min(limits)[1]] if limits else []  # the others are never reached
    if limits and is_timed:
        seconds = _seconds_an_update(training, model, config) * min(limits)[0]
        ends[-1] += (
            f", about {seconds:.0f} s" if seconds < 100 else f", about {seconds / 60:.0f} min"
        )
    if config.patience is not None:
        times.append(f"{config.patience} validations without a better one")
    cure = "" if config.minutes is not None else "; --minutes sets a time instead"
    return f"training ends after {', or after '.join([*ends, *times])}{cure}"


def _seconds_an_update(training: AnyTraining, model: nn.Module, config: TrainingConfig) -> float:
    """Seconds of a forward and a backward pass, of the last of a few batches."""
    device = device_of(model)
    started_at, seconds = time.perf_counter(), 0.0
    with _undisturbed(model, device):
        for batch, _ in islice(training.batches(0, 0), _TIMED):
            start = time.perf_counter()
            _add_gradients(training, model, config, batch)
            seconds = time.perf_counter() - start
            if time.perf_counter() - started_at > _PATIENT:
                break
    return seconds * config.accumulate


def _add_gradients(
    training: AnyTraining, model: nn.Module, config: TrainingConfig, batch: object
) -> None:
    device = device_of(model)
    with mixed_precision(compute_dtype(config.precision, device), device):
        loss, _ = training.backward(
            model, moved(batch, device), smoothing=config.label_smoothing, scale=1.0
        )
    loss.item()  # a GPU is done only now


@contextmanager
def _undisturbed(model: nn.Module, device: torch.device) -> Iterator[None]:
    """Buffers and random numbers are as before after the block, and there are no gradients."""
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    model.train()
    try:
        with preserved_randomness(device):
            yield
    finally:
        model.zero_grad()
        with torch.no_grad():
            for name, buffer in model.named_buffers():
                buffer.copy_(buffers[name])
