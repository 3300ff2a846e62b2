"""Changes of a call of attention: scaled heads, hidden links, fixed weights, replaced parts."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.attention import AttentionCall, Mask, where
from regard.errors import SettingError, ShapeError

# Positions, layers or heads: one, some, a span, or None for all.
Numbers = int | slice | range | Sequence[int] | None


@dataclass(frozen=True, slots=True)
class EditedCall:
    """Properties of a call that changes need."""

    num_heads: int
    queries: range  # their positions
    keys: range
    device: torch.device
    name: str  # in messages
    site: tuple[str, int] = ("", -1)  # kind and layer
    has_output: bool = True  # not weights alone, which were marked
    attention: AttentionCall | None = None  # the call itself, without changes


class AttentionChange:
    """A change of a call; by itself, none."""

    __slots__ = ()

    def mask(self, call: EditedCall) -> Mask | None:
        """Mask of the visible keys; None is all."""
        return None

    def changes_values(self) -> bool:
        """Whether values are changed."""
        return False

    def change(self, part: str, given: Tensor, call: EditedCall) -> Tensor:
        """Return other queries (B, H, N, D), keys (B, G, M, D) or values (B, G, M, E)."""
        return given

    def finish(self, out: Tensor, value: Tensor, call: EditedCall) -> Tensor:
        """Return another output (B, H, N, E), of the output and the values (B, G, M, E)."""
        return out


@dataclass(frozen=True, slots=True)
class Scale(AttentionChange):
    """Output of heads times a factor."""

    head: Numbers
    factor: float

    def finish(self, out: Tensor, value: Tensor, call: EditedCall) -> Tensor:
        flags = _flags(_heads(self.head, call), call.num_heads, out.device)[:, None, None]
        # Zeros, where a muted head mixed infinity too.
        scaled = out * self.factor if self.factor else torch.zeros_like(out)
        return torch.where(flags, scaled, out)


@dataclass(frozen=True, slots=True)
class Hide(AttentionChange):
    """Keys that some queries do not see, in some heads."""

    query: Numbers
    key: Numbers
    head: Numbers

    def mask(self, call: EditedCall) -> Mask | None:
        rows, columns = (
            _flags(numbers_of(name, positions, span.start, len(span)), len(span), call.device)
            for name, positions, span in (
                ("query", self.query, call.queries),
                ("key", self.key, call.keys),
            )
        )
        heads = _flags(_heads(self.head, call), call.num_heads, call.device)
        if not (bool(rows.any()) and bool(columns.any())):
            return None
        every = bool(heads.all())

        def visible(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            hidden = rows[query] & columns[key]
            return ~hidden if every else ~(hidden & heads[head])

        return where(visible)


@dataclass(frozen=True, slots=True, eq=False)
class Fix(AttentionChange):
    """A row of weights in place of those of some queries, in some heads."""

    query: Numbers
    weights: Tensor
    head: Numbers

    def finish(self, out: Tensor, value: Tensor, call: EditedCall) -> Tensor:
        queries = numbers_of("query", self.query, call.queries.start, len(call.queries))
        heads = _heads(self.head, call)
        if not queries:
            return out
        row = self._row(call, out)
        groups = [head * value.shape[-3] // call.num_heads for head in heads]
        mixed = torch.einsum("...m,...hme->...he", row, value[..., groups, :, :])
        out = out.clone()
        for position in queries:
            out[..., heads, position, :] = mixed
        return out

    def _row(self, call: EditedCall, like: Tensor) -> Tensor:
        """Return the weights of the keys that the call has."""
        row = self.weights.to(like)
        if row.dim() == 2 and row.shape[0] not in (1, len(like)):
            raise ShapeError(
                f"weights must be (K,) or (B, K) with B = {len(like)}; got {tuple(row.shape)}."
            )
        there = row[..., call.keys.start : call.keys.stop]
        lost = torch.cat([row[..., : call.keys.start], row[..., call.keys.stop :]], dim=-1)
        if bool(lost.any()):
            raise SettingError(
                f"weights must be of keys {call.keys.start} to {call.keys.stop - 1}, which "
                f"{call.name} attends to; got {row.shape[-1]} that are not all zero beyond."
            )
        return torch.nn.functional.pad(there, (0, len(call.keys) - there.shape[-1]))


@dataclass(frozen=True, slots=True, eq=False)
class Replace(AttentionChange):
    """Another tensor in place of one part of attention."""

    part: str
    put: Callable[[Tensor, EditedCall], Tensor]

    def changes_values(self) -> bool:
        return self.part == "values"

    def finish(self, out: Tensor, value: Tensor, call: EditedCall) -> Tensor:
        return self.change("heads", out, call)

    def change(self, part: str, given: Tensor, call: EditedCall) -> Tensor:
        if part != self.part:
            return given
        if not call.has_output:
            raise SettingError(
                f"attention must be computed by a function for its {part} to be replaced; got "
                f"weights that were marked at {call.name}. Call F.scaled_dot_product_attention."
            )
        return self.put(given, call)


def _heads(head: Numbers, call: EditedCall) -> list[int]:
    heads = numbers_of("head", head, 0, call.num_heads)
    if not heads:
        raise SettingError(
            f"head must be below {call.num_heads}, the heads of {call.name}; got {head!r}."
        )
    return heads


def numbers_of(name: str, numbers: Numbers, start: int, length: int) -> list[int]:
    """Select from the ``length`` numbers that begin with ``start``, counted from there."""
    if numbers is None:
        return list(range(length))
    if isinstance(numbers, slice):
        numbers = range(*numbers.indices(start + length))
    wanted: Iterable[int] = (numbers,) if isinstance(numbers, int) else numbers
    selected = []
    for number in wanted:
        if not isinstance(number, int) or number < 0:
            raise SettingError(f"{name} must be whole numbers from 0; got {numbers!r}.")
        if start <= number < start + length:
            selected.append(number - start)
    return selected


def _flags(numbers: list[int], length: int, device: torch.device) -> Tensor:
    flags = torch.zeros(length, dtype=torch.bool, device=device)
    flags[numbers] = True
    return flags
