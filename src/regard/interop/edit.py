"""Acting on a whole model's attention: mute a head, hide a link, fix a row of weights."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention import AttentionCall, Mask, where
from regard.attention.observing import Edit, current_editor, editing
from regard.choices import choose
from regard.errors import SettingError, ShapeError
from regard.interop.inside import ForwardTrace, Site, reached
from regard.interop.watch import KINDS, Attending, check_seen, module_of

AnswerT = TypeVar("AnswerT")
# Places or numbers: one, some, a span, or None for all.
Places = int | slice | range | Sequence[int] | None
Finish = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Ground:
    """One call that is edited, as changes need to know it.

    Attributes:
        heads: H.
        queries: The places of its queries.
        keys: The places of its keys.
        device: Where it is.
        name: What to call it in a message.
    """

    heads: int
    queries: range
    keys: range
    device: torch.device
    name: str


class AttentionChange:
    """One thing that is done to a call; by itself, nothing is."""

    __slots__ = ()

    def mask(self, ground: Ground) -> Mask | None:
        """Mask of the visible keys; None is all."""
        return None

    def finish(self, out: Tensor, value: Tensor, ground: Ground) -> Tensor:
        """Another answer (B, H, N, E), of the answer and the values (B, G, M, E)."""
        return out


class Edits:
    """Edits of a model's attention; ``edit`` returns it.

    Example:
        Attention whose heads are left out has nothing to say:

        >>> from regard.interop import use
        >>> layer = use(nn.MultiheadAttention(4, 2, bias=False, batch_first=True)).eval()
        >>> states = torch.ones(1, 3, 4)
        >>> with edit(layer) as edits:
        ...     edits.mute(layer=0)
        ...     before, after = edits.compare(lambda: layer(states, states, states)[0])
        >>> bool(before.any()), bool(after.any())
        (True, False)
    """

    def __init__(self) -> None:
        self._changes: list[_Planned] = []
        self._is_on = True
        self.passage = ForwardTrace()
        self._sites: set[tuple[str, int]] = set()

    def mute(self, layer: Places, head: Places = None, *, kind: str | None = None) -> None:
        """Leave heads out: what they mix becomes zeros.

        Args:
            layer: Which layers; None is all.
            head: Which heads; None is all.
            kind: "encoder", "decoder" or "cross"; None is every kind.
        """
        self.change(_Mute(head), layer, kind)

    def hide(
        self,
        query: Places,
        key: Places,
        *,
        layer: Places = None,
        head: Places = None,
        kind: str | None = None,
    ) -> None:
        """Hide keys from queries; their weight goes to the keys that are left.

        Args:
            query: Their places in the text, from 0; None is all.
            key: The places of the keys; None is all.
            layer: Which layers; None is all.
            head: Which heads; None is all.
            kind: "encoder", "decoder" or "cross"; None is every kind.
        """
        self.change(_Hide(query, key, head), layer, kind)

    def fix(
        self,
        query: Places,
        weights: Float[Tensor, "..."] | Sequence[float],
        *,
        layer: Places,
        head: Places = None,
        kind: str | None = None,
    ) -> None:
        """Give queries a row of weights instead of the model's own.

        Who watches is still shown the model's own.

        Args:
            query: Their places in the text, from 0; None is all.
            weights: One per key, (K,) or (B, K); keys beyond K get none.
            layer: Which layers; None is all.
            head: Which heads; None is all.
            kind: "encoder", "decoder" or "cross"; None is every kind.

        Raises:
            SettingError: A weight is negative or not finite.
        """
        row = torch.as_tensor(weights)
        if row.dim() not in (1, 2) or not bool((row.isfinite() & (row >= 0)).all()):
            raise SettingError(
                f"weights must be finite numbers from 0, (K,) or (B, K); got {weights!r}."
            )
        self.change(_Fix(query, row, head), layer, kind)

    def change(
        self, change: AttentionChange, layer: Places = None, kind: str | None = None
    ) -> None:
        """Add a change of any other sort."""
        if kind is not None:
            choose("kind", kind, dict.fromkeys(KINDS))
        self._changes.append(_Planned(change, layer, kind))

    def clear(self) -> None:
        """Undo all changes."""
        self._changes.clear()

    def compare(self, run: Callable[[], AnswerT]) -> tuple[AnswerT, AnswerT]:
        """Results of ``run`` without the edits, and with them."""
        self._is_on = False
        try:
            before = run()
        finally:
            self._is_on = True
        return before, run()

    def edit(self, seen: AttentionCall) -> Edit | None:
        """Apply the edits to one call of ``attend``."""
        if not self.passage.is_ours():
            return None
        site, start, _ = self.passage.located(seen)
        N, M = seen.query.shape[-2], seen.key.shape[-2]
        self._sites.add((site.kind, site.layer))
        changes = [planned.change for planned in self._changes if planned.is_for(site)]
        if not changes or not self._is_on:
            return None
        has_heads = seen.query.dim() > 3
        ground = Ground(
            seen.query.shape[-3] if has_heads else 1,
            range(start, start + N),
            range(site.gone, site.gone + M),
            seen.query.device,
            site.name or f"{site.kind} {site.layer}",
        )
        mask = seen.mask
        for rule in (change.mask(ground) for change in changes):
            if rule is not None:
                mask = rule if mask is None else mask & rule

        def finish(out: Tensor, value: Tensor) -> Tensor:
            if not has_heads:
                out, value = out.unsqueeze(-3), value.unsqueeze(-3)
            for change in changes:
                out = change.finish(out, value, ground)
            return out if has_heads else out.squeeze(-3)

        return Edit(mask, finish)

    def finish(self, model: nn.Module) -> None:
        """Raise SettingError if a change met nothing that it could have been for, or not all."""
        if self._changes and not self._sites:
            check_seen(model, self.passage)
        if self.passage.unseen and any(planned.is_for_all for planned in self._changes):
            name, kind = next(iter(self.passage.unseen.items()))
            raise SettingError(
                "changes must be of attention that the engine computes; got one for all layers of "
                f"{type(model).__name__}, whose {name} ({kind}) computes its own. Name a layer or "
                "a kind."
            )
        for planned in self._changes:
            if self._sites and not planned.meets(self._sites):
                there = ", ".join(f"{kind} {layer}" for kind, layer in sorted(self._sites))
                raise SettingError(
                    f"layer must be one that attended: {there}; "
                    f"got layer={planned.layer!r}, kind={planned.kind!r}."
                )


@contextmanager
def edit(model: Attending) -> Iterator[Edits]:
    """Change a model's attention inside the block, and nowhere else.

    Works on whatever ``watch`` works on; ``watch`` inside the block shows the attention that is
    left. Places count from the beginning of a text, through the steps of a cached generation too.

    Args:
        model: Any module that attends, or a run that ``regard.load`` opened; called inside the
            block, in this thread.

    Raises:
        SettingError: The attention of the model cannot be reached, or a change named a layer or a
            head that it does not have.

    Example:
        >>> from regard.interop import use
        >>> layer = use(nn.TransformerEncoderLayer(8, 2, batch_first=True)).eval()
        >>> states = torch.randn(1, 5, 8)
        >>> with edit(layer) as edits:
        ...     edits.hide(query=0, key=slice(2, 5))
        ...     before, after = edits.compare(lambda: layer(states))
        >>> (before != after).any(dim=-1)
        tensor([[ True, False, False, False, False]])
    """
    module = module_of(model)
    edits, outer = Edits(), current_editor()

    def ask(seen: AttentionCall) -> Edit | None:
        first = None if outer is None else outer(seen)
        if first is not None:
            seen = replace(seen, mask=first.mask)
        then = edits.edit(seen)
        return first if then is None else _one_after_the_other(first, then)

    with reached(module) as edits.passage, editing(ask):
        yield edits
    edits.finish(module)


@dataclass(frozen=True, slots=True)
class _Planned:
    """A change and what it is for."""

    change: AttentionChange
    layer: Places
    kind: str | None

    @property
    def is_for_all(self) -> bool:
        return self.layer is None and self.kind is None

    def is_for(self, site: Site) -> bool:
        return self.meets({(site.kind, site.layer)})

    def meets(self, sites: set[tuple[str, int]]) -> bool:
        return any(
            self.kind in (None, kind) and bool(_numbers("layer", self.layer, layer, 1))
            for kind, layer in sites
        )


@dataclass(frozen=True, slots=True)
class _Mute(AttentionChange):
    head: Places

    def finish(self, out: Tensor, value: Tensor, ground: Ground) -> Tensor:
        muted = _flags(_heads(self.head, ground), ground.heads, out.device)
        return out.masked_fill(muted[:, None, None], 0.0)


@dataclass(frozen=True, slots=True)
class _Hide(AttentionChange):
    query: Places
    key: Places
    head: Places

    def mask(self, ground: Ground) -> Mask | None:
        rows, columns = (
            _flags(_numbers(name, places, span.start, len(span)), len(span), ground.device)
            for name, places, span in (
                ("query", self.query, ground.queries),
                ("key", self.key, ground.keys),
            )
        )
        heads = _flags(_heads(self.head, ground), ground.heads, ground.device)
        if not (bool(rows.any()) and bool(columns.any())):
            return None
        every = bool(heads.all())

        def visible(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            hidden = rows[query] & columns[key]
            return ~hidden if every else ~(hidden & heads[head])

        return where(visible)


@dataclass(frozen=True, slots=True, eq=False)
class _Fix(AttentionChange):
    query: Places
    weights: Tensor
    head: Places

    def finish(self, out: Tensor, value: Tensor, ground: Ground) -> Tensor:
        queries = _numbers("query", self.query, ground.queries.start, len(ground.queries))
        heads = _heads(self.head, ground)
        if not queries:
            return out
        row = self._row(ground, out)
        groups = [head * value.shape[-3] // ground.heads for head in heads]
        mixed = torch.einsum("...m,...hme->...he", row, value[..., groups, :, :])
        out = out.clone()
        for place in queries:
            out[..., heads, place, :] = mixed
        return out

    def _row(self, ground: Ground, like: Tensor) -> Tensor:
        """The weights of the keys that are there."""
        row = self.weights.to(like)
        if row.dim() == 2 and row.shape[0] not in (1, len(like)):
            raise ShapeError(
                f"weights must be (K,) or (B, K) with B = {len(like)}; got {tuple(row.shape)}."
            )
        there = row[..., ground.keys.start : ground.keys.stop]
        lost = torch.cat([row[..., : ground.keys.start], row[..., ground.keys.stop :]], dim=-1)
        if bool(lost.any()):
            raise SettingError(
                f"weights must be of keys {ground.keys.start} to {ground.keys.stop - 1}, which "
                f"{ground.name} attends to; got {row.shape[-1]} that are not all zero beyond."
            )
        return torch.nn.functional.pad(there, (0, len(ground.keys) - there.shape[-1]))


def _one_after_the_other(first: Edit | None, then: Edit) -> Edit:
    if first is None or first.finish is None:
        return then
    if then.finish is None:
        return Edit(then.mask, first.finish)
    one, other = first.finish, then.finish
    return Edit(then.mask, lambda out, value: other(one(out, value), value))


def _heads(head: Places, ground: Ground) -> list[int]:
    found = _numbers("head", head, 0, ground.heads)
    if not found:
        raise SettingError(
            f"head must be below {ground.heads}, the heads of {ground.name}; got {head!r}."
        )
    return found


def _numbers(name: str, places: Places, start: int, length: int) -> list[int]:
    """Selected positions among ``length`` from ``start``, counted from there."""
    if places is None:
        return list(range(length))
    if isinstance(places, slice):
        places = range(*places.indices(start + length))
    wanted: Iterable[int] = (places,) if isinstance(places, int) else places
    numbers = []
    for number in wanted:
        if not isinstance(number, int) or number < 0:
            raise SettingError(f"{name} must be whole numbers from 0; got {places!r}.")
        if start <= number < start + length:
            numbers.append(number - start)
    return numbers


def _flags(numbers: list[int], length: int, device: torch.device) -> Tensor:
    flags = torch.zeros(length, dtype=torch.bool, device=device)
    flags[numbers] = True
    return flags
