"""Speed of the answers of an evaluation, and the memory that they take."""

import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

import torch

from regard.config import JsonValue

# Examples that are also answered by themselves, unless that takes longer than all together.
_ALONE = 20

AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, kw_only=True, slots=True)
class Speed:
    """Speed of answers on this machine."""

    per_second: float
    alone_ms: float
    peak_mib: float
    threads: int

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        return {name: round(value, 3) for name, value in asdict(self).items()}

    def __str__(self) -> str:
        return (
            f"speed: {self.per_second:,.1f} a second, {self.alone_ms:,.1f} ms for one alone, "
            f"{self.peak_mib:,.0f} MiB at most, {self.threads} thread{'s' * (self.threads > 1)}"
        )


def answer_timed(
    answer: Callable[..., Sequence[AnswerT]],
    examples: Sequence[object],
    *,
    device: torch.device,
    progress: Callable[[int], None] | None = None,
) -> tuple[Sequence[AnswerT], Speed]:
    """Answers to the examples, and how fast they came."""
    if len(examples) > 1:
        answer(examples[:1])  # loads what is needed
    started = time.perf_counter()
    answers = answer(examples, progress=progress)
    seconds, alone = time.perf_counter() - started, list[float]()
    for example in examples[:_ALONE]:
        if sum(alone) > seconds:
            break
        before = time.perf_counter()
        answer([example])
        alone.append(time.perf_counter() - before)
    return answers, Speed(
        per_second=len(examples) / seconds,
        alone_ms=1000 * statistics.median(alone),
        peak_mib=_peak(device) / 2**20,
        threads=torch.get_num_threads(),
    )


def _peak(device: torch.device) -> int:
    """Bytes: on a GPU of torch's tensors, else of the process since it began."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
