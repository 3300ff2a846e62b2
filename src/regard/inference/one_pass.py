"""Answers that are computed in one pass, and the loss of the same pass."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn

from regard.devices import device_of, in_halves, moved
from regard.inference.preparation import batch_tokens
from regard.tasks import OnePassTask
from regard.tasks.task import AnswerT, ExampleT
from regard.text import batched

# Tokens of a batch, padding included.
_BATCH_TOKENS = 8192
# A function and its arguments.
_Call = tuple[Callable[..., object], tuple[object, ...], Mapping[str, object]]


@torch.no_grad()
def answer_in_one_pass(
    task: OnePassTask[ExampleT, AnswerT],
    model: nn.Module,
    ready: nn.Module,
    examples: Sequence[ExampleT],
    *,
    with_loss: bool = False,
    progress: Callable[[int], None] | None = None,
) -> tuple[list[AnswerT], float]:
    """The answer to each example, and the mean loss over all that is predicted, where wanted."""
    encoded, device = task.encode(examples), device_of(model)
    answers: dict[int, AnswerT] = {}
    losses: list[tuple[float, int]] = []

    def answer(places: Sequence[int]) -> None:
        batch = moved(task.collate([encoded[place] for place in places]), device)
        cached = CachedForward(ready) if with_loss else ready
        answers.update(zip(places, task.predict(cached, batch), strict=True))
        if with_loss:
            summed, count = task.loss(cached, batch)
            losses.append((float(summed), count))

    for places in batched(task.lengths(encoded).tolist(), batch_tokens(model, _BATCH_TOKENS)):
        in_halves(answer, places, device)
        if progress is not None:
            progress(len(places))
    total, terms = 0.0, 0
    for loss, count in losses:
        total, terms = total + loss, terms + count
    return [answers[place] for place in range(len(encoded))], total / max(1, terms)


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
        found = getattr(self.__dict__["model"], name)
        is_method = callable(found) and not isinstance(found, nn.Module)
        return partial(self._answer, found) if is_method else found

    def _answer(self, function: Callable[..., object], *args: object, **kwargs: object) -> object:
        call: _Call = (function, args, kwargs)
        for before, answer in self._answered:
            if _is_same(before, call):
                return answer
        answer = function(*args, **kwargs)
        self._answered.append((call, answer))
        return answer


def _is_same(one: object, other: object) -> bool:
    if one is other:
        return True
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_is_same(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple) and isinstance(other, Sequence):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return isinstance(one, int | float | str | MethodType) and bool(one == other)
