"""A call of a module, as an audit repeats it with changed inputs."""

import copy
import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention.testing.inputs import (
    OTHER_SEQUENCE,
    PADDING,
    CallFailed,
    Key,
    Outcome,
    Slot,
    along,
    copied_function,
    flat,
    is_square,
    modules_of,
    names_of,
    role_of,
    tensors_of,
)
from regard.errors import SettingError

# How far numbers of one experiment may differ by rounding, as a part of the largest output.
_ROUNDING = {torch.float64: 1e-9, torch.float32: 2e-5, torch.float16: 2e-2, torch.bfloat16: 6e-2}


def _same(tensor: Tensor) -> Tensor:
    return tensor


class Call:
    """A call that can be repeated with other inputs, on a copy of the module.

    Args:
        module: The module or function that is called.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
        padding: The argument of lengths, a mask of padding, or token ids with padding among them;
            None takes one of lengths or a mask by its name.
        batch_axis: The axis of the rows of the batch.
    """

    def __init__(
        self,
        module: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        padding: Key | None,
        batch_axis: int,
    ) -> None:
        self.given, self.args, self.kwargs = module, args, kwargs
        self.batch_axis = batch_axis
        self.names = names_of(module, args, kwargs)
        padding_key = next((k for k, name in self.names.items() if PADDING.match(name)), None)
        self.padding = self._key_of(padding) if padding is not None else padding_key
        if self.padding is not None and not isinstance(self._value(self.padding), Tensor):
            self.padding = None
        self.slots = tuple(self._slots())
        self.pads_by_id = False  # whether padding is marked by the token ids themselves
        if self.padding is not None and not self.content:
            self.slots = tuple(
                replace(slot, role=role_of("", slot.tensor)) if slot.key == self.padding else slot
                for slot in self.slots
            )
            self.pads_by_id = bool(self.content) and self.content[0].role == "ids"
        self.modules = modules_of(module)
        self.module = self.copy()
        self.keeps = False  # whether each run needs a module that has not run before
        self.generator = torch.Generator().manual_seed(0)
        self.touched: tuple[str, ...] = ()  # inputs that the call itself changes
        try:
            self.base = self.run()
        except CallFailed as failed:
            raise SettingError(
                f"module must run on the inputs of one right call; got {failed}"
            ) from failed.error

    def _key_of(self, padding: Key) -> Key:
        keys = {*range(len(self.args)), *self.kwargs}
        if padding not in keys:
            by_name = [key for key, name in self.names.items() if name == padding]
            if not by_name:
                raise SettingError(
                    "padding must be the position or the name of an argument of the call; "
                    f"got {padding!r}, where there are {', '.join(sorted(map(str, keys)))}."
                )
            return by_name[0]
        return padding

    def _value(self, key: Key) -> Any:
        return self.args[key] if isinstance(key, int) else self.kwargs[key]

    def _slots(self) -> Iterator[Slot]:
        for key, name in self.names.items():
            value = self._value(key)
            if isinstance(value, Tensor):
                role = "other" if key == self.padding else role_of(name, value)
                yield Slot(key, name, value, role)

    @property
    def content(self) -> tuple[Slot, ...]:
        """The inputs that carry tokens or their states."""
        return tuple(slot for slot in self.slots if slot.role != "other")

    @property
    def output_slots(self) -> tuple[Slot, ...]:
        """The content of the sequence that the output belongs to."""
        axis = self.out_axis
        if axis is None:
            return ()
        length = self.base.out.shape[axis]
        return tuple(slot for slot in self._leading if self.length(slot.tensor) == length)

    @property
    def _leading(self) -> tuple[Slot, ...]:
        """The content that an output may have the positions of: no memory, no encoder's input."""
        decoder = [slot for slot in self.content if slot.name.startswith("decoder_")]
        first = [slot for slot in self.content if not OTHER_SEQUENCE.match(slot.name)]
        return tuple(decoder or first or self.content)

    def axis(self, tensor: Tensor) -> int | None:
        """The axis of positions of an input; None if it has none."""
        if not tensor.is_floating_point():
            return {1: 0, 2: 1 - self.batch_axis}.get(tensor.dim())
        if tensor.dim() == 4:
            is_heads = self.base.out.dim() == 4 if hasattr(self, "base") else True
            return -2 % 4 if is_heads else None
        if tensor.dim() == 2 and self.is_unbatched:
            return 0
        return 1 - self.batch_axis if tensor.dim() == 3 else None

    @property
    def is_unbatched(self) -> bool:
        """Whether there is but one sequence: no input of content has an axis for a batch."""
        return all(
            slot.tensor.dim() < (3 if slot.tensor.is_floating_point() else 2)
            for slot in self.content
        )

    def length(self, tensor: Tensor) -> int | None:
        """The number of positions of an input."""
        axis = self.axis(tensor)
        return None if axis is None else tensor.shape[axis]

    @property
    def out_axis(self) -> int | None:
        """The axis of the output that has an entry for each position of an input, if any has."""
        out = self.base.out
        for slot in self._leading:
            axis, length = self.axis(slot.tensor), self.length(slot.tensor)
            enough = 2 if self.is_unbatched else 3
            has_axis = axis is not None and out.dim() >= enough and axis < out.dim() - 1
            if axis is not None and has_axis and out.shape[axis] == length:
                return axis
        return None

    @property
    def batch(self) -> int:
        """The number of rows of the batch; 1 of a single sequence."""
        if self.is_unbatched:
            return 1
        sizes = [s.tensor.shape[self.batch_axis] for s in self.content if s.tensor.dim() > 1]
        return sizes[0] if sizes else 1

    @property
    def out_batch_axis(self) -> int:
        """The axis of the rows of the batch in the output."""
        return self.batch_axis if self.base.out.dim() > 2 else 0

    def copy(self, source: Callable[..., Any] | None = None) -> Callable[..., Any]:
        """A copy of a module; unless said, of the one that was given."""
        source = self.given if source is None else source
        if inspect.isfunction(source):
            return copied_function(source)
        if inspect.isbuiltin(source):
            return source
        held = [tensor for module in modules_of(source) for tensor in tensors_of(module)]
        memo = {id(tensor): tensor.detach() for tensor in held if not tensor.is_leaf}
        try:
            made = copy.deepcopy(source, memo)
        except Exception:
            return source
        return made

    def run(
        self,
        changes: Mapping[int, Tensor] | None = None,
        *,
        module: Callable[..., Any] | None = None,
        seed: int = 0,
        mode: AbstractContextManager[Any] | None = None,
        convert: Callable[[Tensor], Tensor] = _same,
        leaves: dict[int, Tensor] | None = None,
    ) -> Outcome:
        """Call a module, the copy unless said, with some tensors replaced, by their ``id``.

        ``leaves`` takes the inputs of floats, each of which then asks for a gradient.
        """
        made: dict[int, Tensor] = {}

        def replaced(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            if id(value) not in made:
                tensor = (changes or {}).get(id(value), value)
                made[id(value)] = convert(tensor.detach().clone())
                if leaves is not None and tensor.is_floating_point():
                    leaves[id(value)] = made[id(value)].requires_grad_()
                    made[id(value)] = leaves[id(value)].clone()
            return made[id(value)]

        args = [replaced(value) for value in self.args]
        kwargs = {name: replaced(value) for name, value in self.kwargs.items()}
        if hasattr(mode, "begin"):
            mode.begin([made[id(slot.tensor)] for slot in self.content])  # type: ignore[union-attr]
        target = self._target(module)
        with quiet(seed), evaluating(modules_of(target)), mode or nullcontext():
            try:
                returned = target(*args, **kwargs)
            except Exception as error:
                raise CallFailed(error) from error
        if not changes and convert is _same:
            kept = [
                slot for slot in self.slots if not torch.equal(made[id(slot.tensor)], slot.tensor)
            ]
            self.touched = tuple(slot.name for slot in kept)
        tensors = tuple(flat(returned))
        floats = [tensor for tensor in tensors if tensor.is_floating_point()]
        if not floats:
            raise CallFailed(TypeError(f"returned no tensor of floats but {type(returned)}"))
        return Outcome(floats[0], tensors)

    @property
    def owns_modules(self) -> bool:
        """Whether the modules that are called are copies, which may be changed."""
        given = {id(module) for module in self.modules}
        return not any(id(module) in given for module in modules_of(self.module))

    def _target(self, module: Callable[..., Any] | None) -> Callable[..., Any]:
        if module is not None:
            return module
        return self.copy(self.module) if self.keeps else self.module

    def replacement(self, tensor: Tensor) -> Tensor:
        """Different content of the same kind: noise as wide, or ids that occur."""
        if tensor.is_floating_point():
            spread = float(tensor.float().std()) if tensor.numel() > 1 else 1.0
            noise = torch.randn(tensor.shape, generator=self.generator) * 2 * (spread or 1.0)
            return noise.to(tensor.device, tensor.dtype)
        pool = sorted({*tensor.flatten().tolist()} - self.padding_ids)
        pool = pool if len(pool) > 1 else list(range(max(2, int(tensor.max()) + 1)))
        ids = torch.tensor(pool)
        ranks = torch.searchsorted(ids, tensor.cpu().clamp(max=pool[-1]))
        shift = torch.randint(1, len(pool), tensor.shape, generator=self.generator)
        return ids[(ranks + shift) % len(pool)].to(tensor.device, tensor.dtype)

    @property
    def padding_ids(self) -> set[int]:
        """Ids that embeddings keep for padding."""
        tables = [part for module in self.modules for part in module.modules()]
        held = [table.padding_idx for table in tables if isinstance(table, nn.Embedding)]
        return {index for index in held if index is not None}

    def changed(
        self, slots: tuple[Slot, ...], where: Callable[[Tensor], Tensor]
    ) -> dict[int, Tensor]:
        """Different content in some inputs where a boolean mask, made for each, is true."""
        return {
            id(slot.tensor): torch.where(
                where(slot.tensor), self.replacement(slot.tensor), slot.tensor
            )
            for slot in {id(slot.tensor): slot for slot in slots}.values()
        }

    def cut(self, length: int, row: int | None = None) -> dict[int, Tensor]:
        """The inputs with so many of the first positions, of all rows of the batch or of one."""
        whole = {self.length(slot.tensor) for slot in self.content} - {None}
        longest = max((size for size in whole if size is not None), default=0)
        changes = dict[int, Tensor]()
        for slot in self.slots:
            tensor = slot.tensor
            axis = self.batch_axis if slot.role != "other" else 0
            has_rows = tensor.dim() > axis and tensor.shape[axis] == self.batch
            if row is not None and has_rows and not is_square(slot):
                tensor = tensor.narrow(axis, row, 1)
            axes = [axis for axis in range(tensor.dim()) if axis or tensor.shape[0] != self.batch]
            content_axis = self.axis(slot.tensor)
            axes = axes if slot.role == "other" else [] if content_axis is None else [content_axis]
            for axis_of_positions in axes:
                if tensor.shape[axis_of_positions] == longest:
                    tensor = tensor.narrow(axis_of_positions, 0, length)
            if slot.key == self.padding and tensor.dim() == 1 and not tensor.is_floating_point():
                tensor = tensor.clamp(max=length)
            changes[id(slot.tensor)] = tensor
        return changes

    def at(self, position: int) -> Callable[[Tensor], Tensor]:
        """A mask of one position of an input, in all rows."""
        return lambda tensor: along(tensor, self.axis(tensor), [position])

    def moved(self, before: Tensor, after: Tensor, *, loose: float = 1.0) -> Tensor:
        """Change of each entry of an output, as a part of the largest; within rounding it is 0."""
        if before.shape != after.shape:
            return torch.full(before.shape, torch.inf)
        old, new = before.detach().double().cpu(), after.detach().double().cpu()
        finite = old[old.isfinite()]
        scale = float(finite.abs().max()) if finite.numel() else 1.0
        distance = (old - new).abs() / (scale or 1.0)
        distance = torch.where(old.isnan() & new.isnan(), 0.0, distance.nan_to_num(torch.inf))
        distance = torch.where(old == new, 0.0, distance)
        return torch.where(distance > self.rounding * loose, distance, 0.0)

    def distance(self, before: Tensor, after: Tensor) -> float:
        """The largest difference of two outputs, rounding included."""
        return float((before.detach().double() - after.detach().double()).abs().max())

    @property
    def rounding(self) -> float:
        """The most that outputs may move by rounding."""
        return _ROUNDING.get(self.base.out.dtype, 2e-5)


@contextmanager
def quiet(seed: int) -> Iterator[None]:
    """Draw random numbers from a seed, restore the generators after, and warn of nothing."""
    with warnings.catch_warnings(), torch.enable_grad(), _seeded(seed):
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    if torch.cuda.is_available():
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            yield
        return
    state = torch.get_rng_state()  # torch.manual_seed would ask for every kind of device
    torch.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(state)


@contextmanager
def evaluating(modules: list[nn.Module]) -> Iterator[None]:
    """Put modules in evaluation, and those of training back into it."""
    training = [part for module in modules for part in module.modules() if part.training]
    for module in modules:
        module.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True
