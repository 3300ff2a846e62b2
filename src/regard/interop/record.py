"""Records of a model's attention while it is watched."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from regard.attention import AttentionCall, Softmax, summarize
from regard.attention.inspect.summary import Summary
from regard.errors import SettingError, ShapeError
from regard.interop.own_attention import AsGiven
from regard.interop.progress import Key

Queries = Bool[Tensor, "..."] | slice

# So many steps are joined at once: each holds what all keys received of it.
_JOINED_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class Options:
    """Options of ``watch``; see there."""

    layers: tuple[int, ...] | None
    heads: tuple[int, ...] | None
    kinds: tuple[str, ...] | None
    top: int
    map: int
    queries: Queries | Mapping[str, Queries] | None
    keep: bool

    def counted(self, kind: str, start: int, N: int, device: torch.device) -> Tensor | None:
        """Mask of the counted ones of N queries from position ``start``; None if all count."""
        given = self.queries
        chosen = given.get(kind) if isinstance(given, Mapping) else given
        if chosen is None:
            return None
        if isinstance(chosen, slice):
            flags = torch.zeros(start + N, dtype=torch.bool, device=device)
            flags[chosen] = True
            return flags[start:]
        flags = chosen[..., start : start + N].to(device)
        if flags.shape[-1] != N:
            raise ShapeError(
                f"queries must have a place for each of {start + N} queries of the {kind}; "
                f"got {tuple(chosen.shape)}. Give them by kind: queries={{{kind!r}: ...}}."
            )
        return flags


class Record:
    """One attention of a model in one pass.

    Attributes:
        key: Kind, layer and name.
        call: The number of the pass.
        heads: The numbers of the heads that are summarised.
        matrix_bytes: Of weights that the model made and gave, whole.
    """

    def __init__(self, key: Key, call: int, options: Options) -> None:
        self.key, self.call, self.heads = key, call, options.heads or ()
        self.matrix_bytes = 0
        self._options = options
        self._parts: list[Summary] = []
        self._starts: list[tuple[int, int]] = []
        self._kept: list[AttentionCall] = []

    def add(self, seen: AttentionCall, start: tuple[int, int], counted: Tensor | None) -> None:
        """Add a call: all queries, or some steps more.

        Args:
            seen: The call.
            start: The places of its first query and first key in the whole sequence.
            counted: Which queries are no padding, (B, N); None is all.
        """
        H = seen.query.shape[-3] if seen.query.dim() > 2 else 1
        self.heads = self.heads or tuple(range(H))
        if max(self.heads) >= H:
            raise SettingError(
                f"heads must be below {H}, the heads of {self.key[2] or self.key[0]}; "
                f"got {max(self.heads)}."
            )
        given = self._options.counted(self.key[0], start[0], seen.query.shape[-2], seen.key.device)
        if given is not None:
            counted = given if counted is None else given & counted
        if isinstance(seen.weighting, AsGiven) and isinstance(seen.bias, Tensor):
            self.matrix_bytes += seen.bias.nbytes
        with torch.no_grad():
            seen = replace(seen, query=seen.query.detach(), key=seen.key.detach())
            narrow = None if len(self.heads) == H else _narrowed(seen, self.heads)
            made = self._summarized(seen if narrow is None else narrow, start, counted)
            if narrow is None and len(self.heads) < H:
                made = _of_heads(made, self.heads)
        self._parts.append(made)
        if len(self._parts) >= _JOINED_AT_ONCE:
            self._parts = [self.summary()]
        if self._options.keep:
            self._starts.append(start)
            self._kept.append(seen)

    def summary(self) -> Summary:
        """Of all queries so far."""
        first, *others = self._parts
        if others:  # what is joined once is not joined again
            self._parts = [first.joined(*others)]
        return self._parts[0]

    def notes(self) -> tuple[str, ...]:
        """Extra cost of watching: none, unless the model computes its weights itself."""
        if not self.matrix_bytes:
            return ()
        size = f"{self.matrix_bytes:,} bytes"
        return (f"read from output_attentions: the model makes all N×M weights, {size} here",)

    def calls(self) -> list[AttentionCall]:
        """The calls that were kept.

        Raises:
            SettingError: They were not.
        """
        if not self._options.keep:
            raise SettingError("keep must be True; got False. Use watch(..., keep=True).")
        return self._kept

    def _summarized(
        self, seen: AttentionCall, start: tuple[int, int], counted: Tensor | None
    ) -> Summary:
        # Heads that lie between each other, as models leave them, take a quarter more time.
        return summarize(
            seen.query.contiguous(),
            seen.key.contiguous(),
            score=seen.score,
            mask=seen.mask,
            bias=seen.bias,
            weighting=seen.weighting,
            top=self._options.top,
            map=self._options.map,
            queries=counted,
            start=start,
        )

    def rows(self, places: list[int]) -> Float[Tensor, "*b R M"]:
        """The exact weights of the queries at these places.

        Raises:
            SettingError: Queries and keys were not kept, or there is no such query.
        """
        calls = list(zip(self._starts, self.calls(), strict=True))
        total = max(gone + seen.key.shape[-2] for (_, gone), seen in calls)
        found = []
        for place in places:
            for (first, gone), seen in calls:
                if first <= place < first + seen.query.shape[-2]:
                    row = seen.rows([place - first])
                    found.append(F.pad(row, (gone, total - gone - row.shape[-1])))
                    break
            else:
                raise SettingError(f"queries must be places that were seen; got {place}.")
        picked = torch.cat(found, dim=-2)
        return picked[:, list(self.heads)] if picked.dim() > 3 else picked


def _narrowed(seen: AttentionCall, heads: tuple[int, ...]) -> AttentionCall | None:
    """Select heads of the call, or None where they cannot be separated."""
    query, key, chosen = seen.query, seen.key, list(heads)
    if query.dim() != 4 or key.dim() != 4 or seen.score.tensors():
        return None
    H, G = query.shape[1], key.shape[1]
    bias, weighting = seen.bias, seen.weighting
    if isinstance(bias, Tensor) and bias.dim() > 2 and bias.shape[-3] == H:
        bias = bias[..., chosen, :, :]
    elif bias is not None and not isinstance(bias, Tensor):
        return None
    if seen.mask is not None:
        bound = seen.mask.bind(len(query), H, query.shape[2], key.shape[2], query.device)
        if bound.mask.extent(bound.grid)[1] > 1:
            return None
    if isinstance(weighting, Softmax) and isinstance(weighting.sink, Tensor):
        sink = weighting.sink.detach()
        weighting = Softmax(sink[chosen] if sink.shape == (H,) else sink)
    return replace(
        seen,
        query=query[:, chosen],
        key=key if G == 1 else key[:, [head * G // H for head in heads]],
        bias=bias,
        weighting=weighting,
    )


def _of_heads(summary: Summary, heads: tuple[int, ...]) -> Summary:
    tensors = {name: tensor[:, list(heads)] for name, tensor in summary.tensors().items()}
    return replace(summary, **tensors)  # type: ignore[arg-type]
