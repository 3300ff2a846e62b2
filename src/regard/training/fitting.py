"""Trials of some batches: how many tokens fit into a GPU's memory, how long a training takes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice

import torch
from torch import nn

from regard.checks import counted
from regard.devices import describe_device, device_of, moved, preserved_randomness
from regard.devices.memory import free_memory, is_out_of_memory
from regard.errors import OutOfMemory
from regard.training.precision import compute_dtype, mixed_precision
from regard.training.settings import TrainingConfig
from regard.training.task_training import DEFAULT_BATCH, AnyTraining

# Never more, however much memory there is, nor a larger share of the text: an update learns little
# more from more. Nor less, which is no batch any more.
_MOST, _LEAST, _SHARE = 2**16, 64, 1 / 30
# Batches that are timed, and seconds after which no further one is.
_TIMED, _PATIENT = 3, 2.0
# Fraction of the tokens that fitted: some memory lies idle between large tensors of other sizes.
_MARGIN = 0.9


def resolve_batch(
    training: AnyTraining, model: nn.Module, config: TrainingConfig, device: torch.device
) -> TrainingConfig:
    """The settings with a number for ``training.batch_tokens``, which the training takes, too."""
    if config.batch_tokens == "auto":
        training.batch_tokens = fitting_batch(training, model, config, device)
    return replace(config, batch_tokens=training.batch_tokens)


def fitting_batch(
    training: AnyTraining, model: nn.Module, config: TrainingConfig, device: torch.device
) -> int:
    """Tokens of the largest batch that fits into a device's memory; 4096 on a CPU."""
    # Twice as many tokens as long as that fits, beside the optimizer's memory; then half of the
    # last step. Nothing of the model is changed, and no random number used up.
    if device.type == "cpu":
        return DEFAULT_BATCH
    most = int(min(_MOST, max(DEFAULT_BATCH, _SHARE * training.num_tokens)))

    def fits(tokens: int) -> bool:
        return _fits(training, model, config, tokens)

    tokens = DEFAULT_BATCH
    if fits(tokens):
        while tokens < most and fits(min(most, 2 * tokens)):
            tokens = min(most, 2 * tokens)
        if tokens == most:
            return tokens
    else:
        while not fits(tokens := tokens // 2):
            if tokens < _LEAST:
                raise OutOfMemory(
                    f"the model must fit into the memory of {describe_device(device)} with a batch "
                    f"of {_LEAST} tokens; got one that does not. Make it smaller, or train it on a "
                    "device with more."
                )
    more = 3 * tokens // 2
    return int(_MARGIN * (more if fits(more) else tokens))


def describe_end(
    training: AnyTraining, model: nn.Module, config: TrainingConfig, *, is_timed: bool
) -> str:
    """Line that says when a training ends; timing batches changes no weight or random state."""
    an_epoch = max(1, round(training.num_samples / training.examples_a_batch / config.accumulate))
    limits: list[tuple[int, str]] = []
    if config.updates is not None:
        epochs = f"{max(0.1, config.updates / an_epoch):,.3g}"
        limits.append((config.updates, f"{counted(config.updates, 'updates')} ({epochs} epochs)"))
    if config.epochs is not None:
        updates = config.epochs * an_epoch
        text = f"{counted(config.epochs, 'epochs')} of {counted(an_epoch, 'updates')}"
        if updates < config.least_updates:
            more = f"{config.least_updates / an_epoch:,.3g}"
            text = f"{config.least_updates:,} updates ({more} epochs, as the text is small)"
        limits.append((max(updates, config.least_updates), text))
    times = [] if config.minutes is None else [counted(config.minutes, "minutes")]
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
        for number, (batch, _) in enumerate(islice(training.batches(0, 0), _TIMED)):
            start = time.perf_counter()
            _add_gradients(training, model, config, batch)
            seconds = time.perf_counter() - start
            if number and time.perf_counter() - started_at > _PATIENT:
                break  # never the first, in which passes are compiled and memory is taken
    return seconds * config.accumulate


def _fits(training: AnyTraining, model: nn.Module, config: TrainingConfig, tokens: int) -> bool:
    """Whether the largest batches of so many tokens can be learned from."""
    try:
        _try(training, model, config, tokens)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        return False
    finally:  # where the trial's own tensors are gone
        free_memory(device_of(model))
    return True


def _try(training: AnyTraining, model: nn.Module, config: TrainingConfig, tokens: int) -> None:
    learned = [p for p in model.parameters() if p.requires_grad]
    copies = {"adamw": 2, "muon": 2, "sgd": 1}[config.optimizer] + (config.ema is not None)
    with _undisturbed(model, device_of(model)):
        optimizer = [torch.zeros_like(p) for p in learned for _ in range(copies)]
        for batch in training.largest(tokens):
            _add_gradients(training, model, config, batch)
        del optimizer  # it took its room until now


def _add_gradients(
    training: AnyTraining, model: nn.Module, config: TrainingConfig, batch: object
) -> None:
    device = device_of(model)
    dtype = compute_dtype(config, device, training.model_dim)
    with mixed_precision(dtype, device):
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
