"""Searches of parts of a batch by threads side by side, which do not meet at each step."""

from collections.abc import Callable
from typing import TypeVar

import torch

from regard.decoding.options import BoundOptions
from regard.decoding.step import DivisibleStep, StateT, Step
from regard.kernels.threads import parallel_for

AnswerT = TypeVar("AnswerT")


def by_threads(
    search: Callable[[StateT, BoundOptions], list[AnswerT]],
    step: Step[StateT],
    state: StateT,
    bound: BoundOptions,
    width: int,
) -> list[AnswerT]:
    """The answers of ``search``, whose sentences torch's threads share where the step lets them.

    Answers to a sentence depend neither on the others nor on the number of threads.
    """
    count = min(torch.get_num_threads(), bound.batch_size)
    if count == 1 or bound.rules or not isinstance(step, DivisibleStep):
        return search(state, bound)
    # Batches are often sorted by length: every thread gets short sentences and long ones.
    parts = [torch.arange(first, bound.batch_size, count) for first in range(count)]
    states = step.divide(state, parts, width)
    if states is None:
        return search(state, bound)
    answers: list[list[AnswerT]] = [[] for _ in parts]
    is_inference = torch.is_inference_mode_enabled()  # which a thread does not inherit

    def work(part: int) -> None:
        with torch.inference_mode(is_inference), torch.no_grad():
            answers[part] = search(states[part], bound.select(parts[part]))

    parallel_for(count, work)
    return [answers[row % count][row // count] for row in range(bound.batch_size)]
