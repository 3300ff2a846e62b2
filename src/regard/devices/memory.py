"""Work within the memory of a device: smaller parts of a batch, and models of bounded size."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import torch
from jaxtyping import Shaped
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from regard.devices.finding import describe_device
from regard.errors import OutOfMemory, RegardError

T = TypeVar("T")

# Messages of torch's allocators on devices that have no error of their own for it.
_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory did not do."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(message in text for message in _OUT_OF_MEMORY)


@contextmanager
def describing_out_of_memory(message: Callable[[], str]) -> Iterator[None]:
    """Describe a lack of memory inside the block, and the cure."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if isinstance(error, OutOfMemory) or not is_out_of_memory(error):
            raise
        # The frames that hold the batch and its states are let go with the error.
        raise OutOfMemory(message()) from error.with_traceback(None)


def in_halves(
    work: Callable[[Sequence[T]], None], items: Sequence[T], device: torch.device
) -> None:
    """Work on things together; where memory does not do, on their halves, down to single ones."""
    if _fits(work, items):
        return
    if len(items) == 1:
        raise OutOfMemory(
            f"a text must fit into the memory of {describe_device(device)} to be answered; got one "
            "that does not, by itself. Take a device with more: --device cpu."
        )
    free_memory(device)
    half = -(-len(items) // 2)
    for part in (items[:half], items[half:]):
        in_halves(work, part, device)


def _fits(work: Callable[[Sequence[T]], None], items: Sequence[T]) -> bool:
    """Whether the work was done; its memory is let go if not."""
    try:
        work(items)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        return False
    return True


def free_memory(device: torch.device) -> None:
    """Give back to a GPU the memory that its allocator caches."""
    if device.type in ("cuda", "mps"):
        torch.get_device_module(device).empty_cache()


ModelT = TypeVar("ModelT", bound=nn.Module)

# Functions that make tensors of a given size: one sequence or several numbers.
_SIZED = {torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn, torch.randint}
_RANGES = {torch.arange}
# Besides its weights a model makes tables and masks: so many numbers and tensors at least.
_NUMBERS, _TENSORS = 2**24, 1000
# Of a model that is to learn: a Transformer of a thousand layers has as many.
_MOST_TENSORS = 20_000


def build_within(
    build: Callable[[], ModelT], *, tensors: int, numbers: int, refusal: RegardError
) -> ModelT:
    """Build a model unless it is far larger than it should be, which is known before it is made."""
    try:
        with _Bounded(2 * tensors + _TENSORS, 2 * numbers + _NUMBERS, refusal):
            return build()
    except (RuntimeError, MemoryError) as error:
        if isinstance(error, RegardError) or not is_out_of_memory(error):
            raise
        raise refusal from error


def build_in_memory(build: Callable[[], ModelT]) -> ModelT:
    """Build a model that is to learn, unless this machine's memory cannot hold its weights."""
    memory = _memory()
    refusal = OutOfMemory(
        "[model] must describe a model that fits into the memory of this machine, "
        f"{memory / 1e9:,.0f} GB; its weights alone do not. Lower its sizes."
    )
    numbers = memory // 8  # of four bytes; twice as many are allowed, for tables besides
    return build_within(build, tensors=_MOST_TENSORS // 2, numbers=numbers, refusal=refusal)


def is_finite(tensor: Shaped[Tensor, "..."]) -> bool:
    """Whether no number in it is NaN or infinite; of whole numbers none is."""
    if not tensor.is_floating_point() and not tensor.is_complex():
        return True
    # A sum is faster, and is not finite if a number is not; it may overflow, too.
    return bool(tensor.sum().isfinite()) or bool(tensor.isfinite().all())


class _Bounded(TorchFunctionMode):
    """Counts tensors inside the block before they are made, and raises where they are too large."""

    def __init__(self, tensors: int, numbers: int, refusal: RegardError) -> None:
        super().__init__()
        self._tensors, self._numbers, self._refusal = tensors, numbers, refusal

    def __torch_function__(
        self,
        function: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        kwargs = kwargs or {}
        if function in _SIZED:
            self._count(_product(kwargs.get("size", args[0] if _is_size(args) else args)))
        elif function in _RANGES:
            self._count(max((abs(size) for size in args if isinstance(size, int)), default=0))
        return function(*args, **kwargs)

    def _count(self, numbers: int) -> None:
        self._tensors -= 1
        self._numbers -= numbers
        if self._tensors < 0 or self._numbers < 0:
            raise self._refusal


def _is_size(args: Sequence[object]) -> bool:
    return bool(args) and isinstance(args[0], Sequence)


def _product(sizes: object) -> int:
    product = 1
    for size in sizes if isinstance(sizes, Sequence) else ():
        product *= size if isinstance(size, int) else 1
    return product


def _memory() -> int:
    """Bytes of memory of this machine; more than any has where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 2**50
