"""Answers computed in one pass, their loss, and the model made ready for use once."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MethodType
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn

from regard.attention.observing import current_editor, current_observer
from regard.devices import device_of, moved
from regard.devices.memory import in_halves
from regard.layers.block import TransformerBlock
from regard.runtime.preparing import prepared
from regard.tasks import OnePassTask
from regard.tasks.task import AnswerT, ExampleT
from regard.text import batched

ModelT = TypeVar("ModelT", bound=nn.Module)
# Tokens of a batch, padding included; and numbers that a layer of a Transformer may put out on a
# CPU, which gains nothing from more: they would take memory beside a training.
_BATCH_TOKENS, _OUTPUTS = 8192, 2**22
# A function and its arguments.
_Call = tuple[Callable[..., object], tuple[object, ...], Mapping[str, object]]


class Preparation:
    """Cached runtime of a model, valid as long as its weights are the same."""

    def __init__(self) -> None:
        self._cached: tuple[nn.Module, list[object]] | None = None

    def __reduce__(self) -> "tuple[type[Preparation], tuple[()]]":
        """Leave the cache out of copies: compiled loops belong to their process."""
        return Preparation, ()

    def of(self, model: ModelT) -> ModelT:
        """The model ready for use, in evaluation mode; see :func:`regard.runtime.prepared`."""
        if current_editor() is not None or current_observer() is not None:
            return prepared(model.eval())
        cached = self._cached
        if cached is None or cached[1] != _fingerprint(model):
            made = prepared(model.eval())
            self._cached = cached = made, _fingerprint(model)
        return cast(ModelT, cached[0])


def batch_tokens(model: nn.Module, most: int) -> int:
    """How many tokens a batch may have: one, or one text, of a model in bfloat16 on a CPU."""
    # Products in bfloat16 round a row by how many rows there are, and by enough to change words.
    first = next(model.parameters(), None)
    is_half = first is not None and first.dtype in (torch.bfloat16, torch.float16)
    return 1 if is_half and device_of(model).type == "cpu" else most


def _most_tokens(model: nn.Module) -> int:
    """How many tokens a batch of answers in one pass may have: fewer of wide layers on a CPU."""
    if device_of(model).type != "cpu":
        return _BATCH_TOKENS
    blocks = (module for module in model.modules() if isinstance(module, TransformerBlock))
    layers = (
        layer for block in blocks for layer in block.modules() if isinstance(layer, nn.Linear)
    )
    widest = max((layer.out_features for layer in layers), default=1)
    return max(1, min(_BATCH_TOKENS, _OUTPUTS // widest))


def _fingerprint(model: nn.Module) -> list[object]:
    """Fingerprint of a model's weights and mode."""
    # ``model.parameters()`` would take as long as a step of a small model.
    fingerprint: list[object] = []
    modules = [model]
    while modules:
        module = modules.pop()
        fingerprint += (id(module), module.training)
        for tensors in (module._parameters, module._buffers):
            for tensor in tensors.values():
                if tensor is not None:
                    # A tensor made in inference mode counts no versions: it cannot learn.
                    version = 0 if tensor.is_inference() else tensor._version
                    fingerprint += (tensor.data_ptr(), version)
        modules += [child for child in module._modules.values() if child is not None]
    return fingerprint


@torch.no_grad()
def answer_in_one_pass(
    task: OnePassTask[ExampleT, AnswerT],
    model: nn.Module,
    ready: nn.Module,
    encoded: Sequence[object],
    *,
    with_loss: bool = False,
    progress: Callable[[int], None] | None = None,
) -> tuple[list[AnswerT], float]:
    """The answer to each sample, and the mean loss over all that is predicted, where wanted."""
    device = device_of(model)
    answers: dict[int, AnswerT] = {}
    losses: list[tuple[float, int]] = []

    def answer(indices: Sequence[int]) -> None:
        batch = moved(task.collate([encoded[index] for index in indices]), device)
        cached = CachedForward(ready) if with_loss else ready
        answers.update(zip(indices, task.predict(cached, batch), strict=True))
        if with_loss:
            summed, count = task.loss(cached, batch)
            losses.append((float(summed), count))

    tokens = batch_tokens(model, _most_tokens(model) if len(encoded) > 1 else _BATCH_TOKENS)
    for indices in batched(task.lengths(encoded).tolist(), tokens):
        in_halves(answer, indices, device)
        if progress is not None:
            progress(len(indices))
    total, terms = 0.0, 0
    for loss, count in losses:
        total, terms = total + loss, terms + count
    return [answers[index] for index in range(len(encoded))], total / max(1, terms)


class CachedForward(nn.Module):
    """A model for one batch, whose outputs are cached by their inputs."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self._answered: list[tuple[_Call, object]] = []
        self.__dict__["model"] = model  # not a part of this one

    def forward(self, *args: object, **kwargs: object) -> object:
        """The model's output."""
        return self._answer(self.__dict__["model"], *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.__dict__["model"], name)
        is_method = callable(attribute) and not isinstance(attribute, nn.Module)
        return partial(self._answer, attribute) if is_method else attribute

    def _answer(self, function: Callable[..., object], *args: object, **kwargs: object) -> object:
        call: _Call = (function, args, kwargs)
        for before, answer in self._answered:
            if _is_same(before, call):
                return answer
        answer = function(*args, **kwargs)
        self._answered.append((call, answer))
        return answer


def _is_same(first: object, second: object) -> bool:
    if first is second:
        return True
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return first.dtype == second.dtype and torch.equal(first, second)
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(_is_same(first[k], second[k]) for k in first)
    if isinstance(first, list | tuple) and isinstance(second, Sequence):
        return len(first) == len(second) and all(map(_is_same, first, second))
    return isinstance(first, int | float | str | MethodType) and bool(first == second)
