"""Where a device's memory does not do: smaller parts, and what is said."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import torch

from regard.devices.finding import told_device
from regard.errors import OutOfMemory

T = TypeVar("T")

# What torch's allocators say on devices that have no error of their own for it.
_SAID = ("out of memory", "can't allocate memory", "not enough memory")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory did not do.

    Example:
        >>> is_out_of_memory(RuntimeError("MPS backend out of memory (…)"))
        True
        >>> is_out_of_memory(RuntimeError("shapes do not fit"))
        False
    """
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(said in text for said in _SAID)


@contextmanager
def out_of_memory_told(told: Callable[[], str]) -> Iterator[None]:
    """Where memory does not do inside the block, that is said, and what would help.

    Args:
        told: The message: what must fit, what did not, and the cure.

    Raises:
        OutOfMemory: Memory did not do.

    Example:
        >>> said = "batch must fit into memory; got 4096 tokens. Take fewer."
        >>> with out_of_memory_told(lambda: said):
        ...     raise MemoryError
        Traceback (most recent call last):
        regard.errors.OutOfMemory: batch must fit into memory; got 4096 tokens. Take fewer.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if isinstance(error, OutOfMemory) or not is_out_of_memory(error):
            raise
        # The frames that hold the batch and its states are let go with the error.
        raise OutOfMemory(told()) from error.with_traceback(None)


def in_halves(
    work: Callable[[Sequence[T]], None], things: Sequence[T], device: torch.device
) -> None:
    """Work on things together; where memory does not do, on their halves, down to single ones.

    Args:
        work: What is done with some of them; it leaves nothing behind if memory does not do.
        things: One or more.
        device: Where it is done.

    Raises:
        OutOfMemory: Memory does not do for one alone.

    Example:
        >>> def work(numbers):
        ...     if len(numbers) > 2:
        ...         raise MemoryError
        ...     print(*numbers)
        >>> in_halves(work, [1, 2, 3, 4, 5], torch.device("cpu"))
        1 2
        3
        4 5
    """
    if _fits(work, things):
        return
    if len(things) == 1:
        raise OutOfMemory(
            f"a text must fit into the memory of {told_device(device)} to be answered; got one "
            "that does not, by itself. Take a device with more: --device cpu."
        )
    free_memory(device)
    half = -(-len(things) // 2)
    for part in (things[:half], things[half:]):
        in_halves(work, part, device)


def _fits(work: Callable[[Sequence[T]], None], things: Sequence[T]) -> bool:
    """Whether the work was done; what it held on to is let go if not."""
    try:
        work(things)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        return False
    return True


def free_memory(device: torch.device) -> None:
    """Give back to a GPU what its allocator keeps for later.

    Example:
        What is in use stays:

        >>> kept, left = torch.ones(2), torch.ones(2**10)
        >>> del left
        >>> free_memory(kept.device)
        >>> kept
        tensor([1., 1.])
    """
    if device.type in ("cuda", "mps"):
        torch.get_device_module(device).empty_cache()
