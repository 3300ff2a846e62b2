"""The masks of Hugging Face models as masks of ours: rules, not tensors of B × 1 × N × M.

transformers describes a mask by a function of (batch, head, query, key), built of a few known ones,
and by a 2-D tensor that says which tokens are padding. A known function becomes the rule that the
engine has for it; any other is asked tile by tile.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_, or_
from typing import NoReturn, TypedDict, cast

import torch
from jaxtyping import Bool
from torch import Tensor

from regard.attention import Mask, causal, dense, documents, lengths, prefix, where, window
from regard.errors import SettingError

MaskFunction = Callable[..., Tensor]


class _MaskParts(TypedDict, total=False):
    """Arguments of transformers' mask functions, by its names."""

    mask_function: MaskFunction
    mask_functions: tuple[MaskFunction, ...]
    sliding_window: int
    chunk_size: int
    left_padding: Tensor
    padding_mask: Tensor
    packed_sequence_mask: Tensor
    block_sequence_ids: Tensor
    q_offset: int
    kv_offset: int


_HOME = "transformers.masking_utils"


@dataclass(frozen=True, slots=True)
class Frame:
    """Positions of one call's queries and keys in the model's sequence."""

    queries: int
    keys: int
    query_start: int  # position of the first query; in a graph perhaps a tensor
    key_start: int
    by_vmap: bool  # an unknown function takes numbers, not tensors of them
    device: torch.device

    @property
    def first(self) -> int:
        """Position of query 0 among the keys."""
        return self.query_start - self.key_start


class LazyMask:
    """A rule and a padding (True is real), in place of the mask tensor of a model."""

    def __init__(
        self,
        function: MaskFunction,
        padding: Bool[Tensor, "B L"] | None,
        frame: Frame,
        batch: int,
    ) -> None:
        self.function, self.padding, self.frame, self.batch = function, padding, frame, batch
        # None in a graph: a compiler cannot see the closure of a function.
        is_compiled = torch.compiler.is_compiling()
        self.is_causal = None if is_compiled else _mentions(function, "causal_mask_function")
        self._made: dict[object, Mask | None] = {}

    def mask(self, device: torch.device, keys: int | None = None) -> Mask | None:
        """Return the mask of the first ``keys`` keys; None if everything is visible."""
        key = (device, keys)
        if key not in self._made:
            M = self.frame.keys if keys is None else keys
            frame = replace(self.frame, device=device, keys=M)
            if torch.compiler.is_compiling():
                rule = _rule_in_graph(self.function, frame, self.batch)
            else:
                rule = _rule(self.function, frame)
            self._made[key] = _joined([rule, _of_padding(self.padding, frame)], and_)
        return self._made[key]

    def counted(self, device: torch.device) -> Bool[Tensor, "B N"] | None:
        """Mask of queries that are no padding, where keys and queries are of one sequence."""
        if self.padding is None:
            return None
        start = self.frame.query_start
        real = self.padding[:, start : start + self.frame.queries].to(device)
        return real if real.shape[1] == self.frame.queries else None

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Shape that the tensor would have."""
        return (self.batch, 1, self.frame.queries, self.frame.keys)

    @property
    def ndim(self) -> int:
        """Number of its axes."""
        return 4

    @property
    def dtype(self) -> torch.dtype:
        """The dtype that the tensor would have."""
        return torch.bool

    @property
    def device(self) -> torch.device:
        """Device of the model's inputs."""
        return self.frame.device

    def dim(self) -> int:
        """Return the number of its axes."""
        return 4

    def to(self, *args: object, **kwargs: object) -> "LazyMask":
        """Return the mask itself: it has no memory to move or lay out."""
        return self

    contiguous = to

    def __getitem__(self, index: object) -> "LazyMask":
        """Itself, where fewer keys are taken: the attention knows how many there are."""
        if isinstance(index, tuple) and all(
            part is Ellipsis or (isinstance(part, slice) and part.start is None) for part in index
        ):
            return self
        return _refuse("an index")

    def __torch_function__(
        self, function: object, types: object, args: object = (), kwargs: object = None
    ) -> NoReturn:
        """Raise SettingError: the model works with the tensor itself."""
        _refuse(f"torch.{getattr(function, '__name__', function)}")


def _refuse(use: str) -> NoReturn:
    raise SettingError(
        f"model must hand its mask to its attention as it is; got {use} on it. "
        "Its attention cannot be served; leave the model as it was."
    )


def _rule(function: MaskFunction, frame: Frame) -> Mask | None:
    """A mask function as a mask; None lets everything be seen."""
    name, parts = _name_of(function), _parts(function)
    first = frame.first
    if name == "causal_mask_function":
        return causal(first=first)
    if name == "bidirectional_mask_function":
        return None
    if name == "sliding_window_overlay":
        return window(before=int(parts["sliding_window"]) - 1, first=first)
    if name == "sliding_window_bidirectional_overlay":
        reach = int(parts["sliding_window"])
        return window(before=reach, after=reach, first=first)
    if name == "and_masks":
        return _joined([_rule(inner, frame) for inner in _without_positions(function)], and_)
    if name == "or_masks":
        rules = [_rule(inner, frame) for inner in parts["mask_functions"]]
        return None if None in rules else _joined(rules, or_)
    if name == "padding_mask_function":
        return _of_padding(parts["padding_mask"], frame)
    if name == "add_offsets_to_mask_function":
        moved = replace(
            frame,
            query_start=frame.query_start + int(parts["q_offset"]),
            key_start=frame.key_start + int(parts["kv_offset"]),
        )
        return _rule(parts["mask_function"], moved)
    of_numbers = _DOCUMENTS.get(name)
    if of_numbers is not None and (mask := of_numbers(parts, frame)) is not None:
        return mask
    return where(_visible(function, frame))


def _rule_in_graph(function: MaskFunction, frame: Frame, batch: int) -> Mask | None:
    """A mask function as a mask for a compiler, which sees its name but not its closure."""
    name = function.__name__ if function.__module__ == _HOME else ""
    if name == "bidirectional_mask_function":
        return None
    if name == "causal_mask_function" and not isinstance(frame.query_start, Tensor):
        return causal(first=frame.first)
    # Any other becomes a boolean tensor, as transformers makes it.
    positions = [
        torch.arange(size, device=frame.device).reshape([-1 if n == axis else 1 for n in range(4)])
        for axis, size in enumerate((batch, 1, frame.queries, frame.keys))
    ]
    return dense(_visible(function, frame)(*positions))


def _visible(function: MaskFunction, frame: Frame) -> MaskFunction:
    """A mask function of positions in the frame; as transformers does, of one head for all."""

    def visible(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        query, key, head = query + frame.query_start, key + frame.key_start, head[:, :1]
        if not frame.by_vmap:
            return function(batch, head, query, key)
        mapped = function
        for axis in reversed(range(4)):
            mapped = torch.vmap(mapped, in_dims=tuple(0 if n == axis else None for n in range(4)))
        # As in transformers: it lets a mapped function index a tensor by a number.
        from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

        # vmap puts the axis that was mapped last first.
        with TransformGetItemToIndex():
            flags: Tensor = mapped(*(t.flatten() for t in (batch, head, query, key)))
        return flags

    return visible


def _of_chunks(parts: _MaskParts, frame: Frame) -> Mask:
    size, start = int(parts["chunk_size"]), parts["left_padding"].to(frame.device).reshape(-1, 1)
    spans = ((frame.queries, frame.query_start), (frame.keys, frame.key_start))
    positions = (torch.arange(n, device=frame.device) + first for n, first in spans)
    return documents(
        *(torch.div(numbers - start, size, rounding_mode="floor") for numbers in positions)
    )


def _of_packed(parts: _MaskParts, frame: Frame) -> Mask | None:
    numbers = parts["packed_sequence_mask"].to(frame.device)
    return _of_document_numbers(numbers, numbers, frame)


def _of_blocks(parts: _MaskParts, frame: Frame) -> Mask | None:
    numbers = parts["block_sequence_ids"].to(device=frame.device, dtype=torch.long)
    # Below zero is in no block: not in one with keys that are in none either.
    key_numbers = numbers.masked_fill(numbers < 0, -2)
    return _of_document_numbers(numbers.clamp_min(-1), key_numbers, frame)


def _of_document_numbers(queries: Tensor, keys: Tensor, frame: Frame) -> Mask | None:
    """Documents by their numbers in the whole sequence, or None if that is too short."""
    queries = queries[:, frame.query_start : frame.query_start + frame.queries]
    keys = keys[:, frame.key_start : frame.key_start + frame.keys]
    if queries.shape[1] != frame.queries or keys.shape[1] != frame.keys:
        return None
    return documents(queries, keys)


_DOCUMENTS: dict[str, Callable[[_MaskParts, Frame], Mask | None]] = {
    "chunked_overlay": _of_chunks,
    "packed_sequence_mask_function": _of_packed,
    "blockwise_overlay": _of_blocks,
}

# Functions of the distance between a key and its query only.
_OF_DISTANCE = {
    "causal_mask_function",
    "bidirectional_mask_function",
    "sliding_window_overlay",
    "sliding_window_bidirectional_overlay",
}


def _without_positions(function: MaskFunction) -> list[MaskFunction]:
    """The parts of ``and_masks``, distances in a packed sequence being those in its documents."""
    parts = list(_parts(function)["mask_functions"])
    if not any(_name_of(part) == "packed_sequence_mask_function" for part in parts):
        return parts
    inner_parts = []
    for part in parts:
        is_moved = _name_of(part) == "remap_positions_for_packed_sequence"
        inner = _parts(part)["mask_function"] if is_moved else part
        inner_parts.append(inner if is_moved and _is_of_distance(inner) else part)
    return inner_parts


def _is_of_distance(function: MaskFunction) -> bool:
    name = _name_of(function)
    if name in ("and_masks", "or_masks"):
        return all(map(_is_of_distance, _parts(function)["mask_functions"]))
    return name in _OF_DISTANCE


def _of_padding(padding: Tensor | None, frame: Frame) -> Mask | None:
    """Mask of the real keys, by the shortest rule."""
    if padding is None:
        return None
    real = padding[:, frame.key_start : frame.key_start + frame.keys]
    real = real.to(device=frame.device, dtype=torch.bool)
    if (missing := frame.keys - real.shape[1]) > 0:
        real = torch.nn.functional.pad(real, (0, missing))
    if torch.compiler.is_compiling():  # a graph has no numbers to look at
        return dense(real[:, None, None, :])
    if bool(real.all()):
        return None
    positions, counts = torch.arange(frame.keys, device=frame.device), real.sum(dim=1)
    if bool((real == (positions < counts[:, None])).all()):
        return lengths(counts)
    hidden = frame.keys - counts
    if bool((real == (positions >= hidden[:, None])).all()):
        return prefix(hidden).__invert__()  # not ``~``, which compilers cannot trace
    return dense(real[:, None, None, :])


def _joined(masks: list[Mask | None], join: Callable[[Mask, Mask], Mask]) -> Mask | None:
    some = [mask for mask in masks if mask is not None]
    return reduce(join, some) if some else None


def _name_of(function: MaskFunction) -> str:
    """The name that transformers has for a mask function, or for its maker; else ""."""
    if getattr(function, "__module__", None) != _HOME:
        return ""
    return function.__qualname__.split(".")[0]


def _parts(function: MaskFunction) -> _MaskParts:
    """Arguments that a mask function was made with."""
    code = getattr(function, "__code__", None)
    names = () if code is None else code.co_freevars
    cells = getattr(function, "__closure__", None) or ()
    return cast(
        _MaskParts, {name: cell.cell_contents for name, cell in zip(names, cells, strict=True)}
    )


def _mentions(function: MaskFunction, name: str) -> bool:
    """Whether a mask function is the one of that name, or made with it."""
    if _name_of(function) == name:
        return True
    inner: list[object] = []
    for part in _parts(function).values():
        inner.extend(part if isinstance(part, tuple) else (part,))
    return any(_mentions(member, name) for member in inner if callable(member))
