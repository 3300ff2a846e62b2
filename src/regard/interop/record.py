"""Records of a model's attention while it is watched."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from regard.attention import AttentionCall, Softmax
from regard.attention.inspect.head_scores import HeadScores
from regard.attention.inspect.summary import Summary
from regard.attention.observing import Mixed
from regard.checks import choose
from regard.errors import SettingError, ShapeError
from regard.interop.modules.inside import Key
from regard.interop.modules.own_attention import AsGiven

KINDS = ("encoder", "decoder", "cross")
Queries = Bool[Tensor, "..."] | slice

_JOINED_AT_ONCE = 32  # steps: each holds the weights that all keys received


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
    gradients: bool = False
    tokens: Mapping[str, Sequence[str]] | None = None

    def counted(self, kind: str, start: int, N: int, device: torch.device) -> Tensor | None:
        """Mask of the counted ones of N queries from position ``start``; None if all count."""
        chosen = self.queries.get(kind) if isinstance(self.queries, Mapping) else self.queries
        if chosen is None:
            return None
        if isinstance(chosen, slice):
            flags = torch.zeros(start + N, dtype=torch.bool, device=device)
            flags[chosen] = True
            return flags[start:]
        flags = chosen[..., start : start + N].to(device)
        if flags.shape[-1] != N:
            raise ShapeError(
                f"queries must have a position for each of {start + N} queries of the {kind}; "
                f"got {tuple(chosen.shape)}. Give them by kind: queries={{{kind!r}: ...}}."
            )
        return flags


@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """Record of one attention of a model in one pass.

    Attributes:
        kind: "encoder" (a text attends to all of itself), "decoder" (to its past) or "cross" (to
            another).
        layer: Which layer, from 0.
        name: The name of the module in the model.
        heads: The numbers of the heads that were summarised.
        summary: (B, heads, N, …), the steps of a cached generation joined.
        call: Which pass, from 0: a forward of the model, or a whole generation.
        notes: Further costs of seeing it, such as the memory of weights that the model makes.
        scores: Those of the heads, where ``tokens`` were given.
        attention: The call itself, where ``keep=True`` and it was made at once.

    Example:
        >>> from torch import nn
        >>> from regard.interop import use, watch
        >>> layer = use(nn.TransformerEncoderLayer(8, 2, batch_first=True)).eval()
        >>> with watch(layer, heads=1, top=2) as seen:
        ...     _ = layer(torch.zeros(1, 5, 8))
        >>> seen[0].kind, seen[0].name, seen[0].heads, seen[0].summary.top_weights.shape
        ('encoder', 'self_attn', (1,), torch.Size([1, 1, 5, 2]))
    """

    kind: str
    layer: int
    name: str
    heads: tuple[int, ...]
    summary: Summary
    call: int
    notes: tuple[str, ...] = ()
    scores: HeadScores | None = None
    attention: AttentionCall | None = None


class Record:
    """One attention of a model in one pass."""

    def __init__(self, key: Key, call: int, options: Options) -> None:
        self.key, self.call, self.heads = key, call, options.heads or ()  # the number of the pass
        self.matrix_bytes = 0  # of weights that the model returned whole
        self.scores: HeadScores | None = None
        self._options = options
        self._parts: list[Summary] = []
        self._sizes: list[int] = []  # of the batch, by steps
        self._starts: list[tuple[int, int]] = []
        self._calls: list[AttentionCall] = []
        self._mixed: list[Mixed] = []

    def add(
        self,
        call: AttentionCall,
        start: tuple[int, int],
        counted: Tensor | None,
        mixed: Mixed | None = None,
    ) -> None:
        """Add all queries or a step; ``start`` is its first query and key in the sequence."""
        H = call.query.shape[-3] if call.query.dim() > 2 else 1
        self.heads = self.heads or tuple(range(H))
        if max(self.heads) >= H:
            raise SettingError(
                f"heads must be below {H}, the heads of {self.key[2] or self.key[0]}; "
                f"got {max(self.heads)}."
            )
        chosen = self._options.counted(self.key[0], start[0], call.query.shape[-2], call.key.device)
        if chosen is not None:
            counted = chosen if counted is None else chosen & counted
        if isinstance(call.weighting, AsGiven) and isinstance(call.bias, Tensor):
            self.matrix_bytes += call.bias.nbytes
        keeps_graph = self._options.gradients and torch.is_grad_enabled()
        with torch.set_grad_enabled(keeps_graph):
            if not keeps_graph:
                call = replace(call, query=call.query.detach(), key=call.key.detach())
            narrow = None if len(self.heads) == H else _narrowed(call, self.heads)
            summary = self._summarized(call if narrow is None else narrow, start, counted)
            self.scores = (
                None if self._parts else self._scored(call, summary if narrow is None else None)
            )
            if narrow is None and len(self.heads) < H:
                summary = summary.of_heads(self.heads)
        self._parts.append(summary)
        self._sizes.append(_size_of(summary))
        if len(self._parts) >= _JOINED_AT_ONCE and self._sizes == sorted(self._sizes):
            self._parts = [self.summary()]
        if mixed is not None:
            self._mixed.append(mixed)
        if self._options.keep:
            self._starts.append(start)
            self._calls.append(replace(call, mixed=None))

    def summary(self) -> Summary:
        """Summary of all queries so far."""
        rows = self._rows()
        if len(self._parts) > 1:  # joined once only
            first, *later = (part.repeated(rows // _size_of(part)) for part in self._parts)
            self._parts = [first.joined(*later)]
        return self._parts[0]

    def _rows(self) -> int:
        """Rows of the batch: a search may begin with one row a text, and go on with several."""
        if sorted(self._sizes) != self._sizes:
            raise SettingError(
                "texts must be watched one by one in a search, which leaves out those that have "
                f"ended; got {max(self._sizes)} rows of a batch, then {self._sizes[-1]}."
            )
        return self._sizes[-1]

    def notes(self) -> tuple[str, ...]:
        """Extra cost of watching: none, unless the model computes its weights itself."""
        if not self.matrix_bytes:
            return ()
        size = f"{self.matrix_bytes:,} bytes"
        return (f"read from output_attentions: the model makes all N×M weights, {size} here",)

    def calls(self) -> list[AttentionCall]:
        """Return the recorded calls; SettingError without ``keep``."""
        if not self._options.keep:
            raise SettingError("keep must be True; got False. Use watch(..., keep=True).")
        return self._calls

    def _scored(self, call: AttentionCall, summary: Summary | None) -> HeadScores | None:
        """Score the heads by the tokens of ``watch``; None where these are not its keys."""
        tokens = (self._options.tokens or {}).get(self.key[0])
        is_one = call.query.dim() < 4 or len(call.query) == 1
        if tokens is None or not is_one or len(tokens) != call.key.shape[-2]:
            return None
        return call.head_scores(tokens, summary=summary).of_heads(self.heads)

    def _summarized(
        self, call: AttentionCall, start: tuple[int, int], counted: Tensor | None
    ) -> Summary:
        # Heads that lie between each other, as models leave them, take a quarter more time.
        call = replace(call, query=call.query.contiguous(), key=call.key.contiguous())
        options = self._options
        return call.summary_in_passing(
            top=options.top, map=options.map, queries=counted, start=start
        )

    def rows(self, positions: list[int]) -> Float[Tensor, "*b R M"]:
        """Return the exact weights of the queries at these positions."""
        calls = list(zip(self._starts, self.calls(), strict=True))
        total = max(dropped + call.key.shape[-2] for (_, dropped), call in calls)
        rows = []
        for position in positions:
            for (first, dropped), call in calls:
                if first <= position < first + call.query.shape[-2]:
                    row = call.rows([position - first])
                    rows.append(F.pad(row, (dropped, total - dropped - row.shape[-1])))
                    break
            else:
                raise SettingError(f"queries must be positions that were seen; got {position}.")
        most = self._rows()
        joined = torch.cat([row.repeat_interleave(most // len(row), dim=0) for row in rows], dim=-2)
        return joined[:, list(self.heads)] if joined.dim() > 3 else joined

    def head_scores(
        self,
        tokens: Sequence[str] | Sequence[int] | Tensor,
        links: Iterable[tuple[int, int]] | None,
        tree: Sequence[int] | None,
    ) -> HeadScores:
        """Return the roles of the heads, of a pass that was made at once."""
        calls = self.calls()
        if len(calls) > 1:
            raise SettingError("call must be a pass made at once; got one of several steps.")
        H = calls[0].query.shape[-3] if calls[0].query.dim() > 2 else 1
        summary = self.summary() if len(self.heads) == H else None
        found = calls[0].head_scores(tokens, links=links, tree=tree, summary=summary)
        return found.of_heads(self.heads)

    def watched(self) -> Watched:
        """Return its public record; the call only of a pass that was made at once."""
        at_once = self._calls[0] if len(self._calls) == 1 else None
        return Watched(
            *(*self.key, self.heads, self.summary(), self.call, self.notes(), self.scores, at_once)
        )

    def output(self) -> Tensor:
        """Return the output of the attention; SettingError without gradients, or of steps."""
        if not self._options.gradients:
            raise SettingError("gradients must be True; got False. Use watch(..., gradients=True).")
        outs = [mixed.out for mixed in self._mixed]
        if len(outs) != 1 or outs[0] is None or not outs[0].requires_grad:
            raise SettingError(
                "model must run once, with gradients, by attention that can be edited; got "
                f"{len(outs)} outputs of {self.key[2] or self.key[0]}."
            )
        return outs[0]

    def slopes(self, positions: list[int], gradient: Tensor) -> Float[Tensor, "*b R M"]:
        """Return gradients by weights of some queries, from the gradient by the output."""
        value = self._mixed[0].value
        assert value is not None
        rows = gradient[..., positions, :]
        if rows.dim() > 3:
            value = value.detach().repeat_interleave(rows.shape[-3] // value.shape[-3], dim=-3)
            return (rows @ value.mT)[:, list(self.heads)]
        return rows @ value.detach().mT


def _size_of(summary: Summary) -> int:
    """Rows of its batch."""
    return len(summary) if summary.lse.dim() > 2 else 1


def _narrowed(call: AttentionCall, heads: tuple[int, ...]) -> AttentionCall | None:
    """Select heads of the call, or None where they cannot be separated."""
    query, key, chosen = call.query, call.key, list(heads)
    if query.dim() != 4 or key.dim() != 4 or call.score.tensors():
        return None
    H, G = query.shape[1], key.shape[1]
    bias, weighting = call.bias, call.weighting
    if isinstance(bias, Tensor) and bias.dim() > 2 and bias.shape[-3] == H:
        bias = bias[..., chosen, :, :]
    elif bias is not None and not isinstance(bias, Tensor):
        return None
    if call.mask is not None:
        bound = call.mask.bind(len(query), H, query.shape[2], key.shape[2], query.device)
        if bound.mask.extent(bound.grid)[1] > 1:
            return None
    if isinstance(weighting, Softmax) and isinstance(weighting.sink, Tensor):
        sink = weighting.sink.detach()
        weighting = Softmax(sink[chosen] if sink.shape == (H,) else sink)
    return replace(
        call,
        query=query[:, chosen],
        key=key if G == 1 else key[:, [head * G // H for head in heads]],
        bias=bias,
        weighting=weighting,
        mixed=None,
    )


def numbers_of(name: str, given: Iterable[int] | int | None) -> tuple[int, ...] | None:
    """Check numbers of layers or heads; None is all."""
    if given is None:
        return None
    numbers = tuple(given) if isinstance(given, Iterable) else (given,)
    if not numbers or not all(type(n) is int and n >= 0 for n in numbers):
        raise SettingError(f"{name} must be whole numbers from 0; got {given!r}.")
    return numbers


def kinds_of(given: Iterable[str] | str | None) -> tuple[str, ...] | None:
    """Check kinds of attention; None is all."""
    if given is None:
        return None
    kinds = [given] if isinstance(given, str) else given
    return tuple(choose("kind", kind, {kind: kind for kind in KINDS}) for kind in kinds)
