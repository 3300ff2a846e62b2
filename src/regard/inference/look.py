"""What a model looked at while it wrote one output: its weights, and summaries of a long text."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention import Seen, Summary, weights_seen
from regard.attention.inspect.summarizing import summarize_seen
from regard.errors import SettingError
from regard.text import Piece

# Tokens of a text, on either side, beyond which a look has summaries besides its weights; and
# beyond which it has summaries only.
MOST_WITHOUT_SUMMARIES = 64
MOST_MAPPED = 512


@dataclass(frozen=True, slots=True)
class AttentionMap:
    """The weights of one kind of attention in one layer.

    Attributes:
        kind: ``cross`` (output to source), ``encoder`` or ``decoder``.
        layer: Which layer, from 0.
        weights: One matrix a head: rows are the queries, columns what they look at.
    """

    kind: str
    layer: int
    weights: Float[Tensor, "H N M"]


@dataclass(frozen=True, slots=True)
class AttentionSummary:
    """The summary of one kind of attention in one layer.

    Attributes:
        kind: ``cross`` (output to source), ``encoder`` or ``decoder``.
        layer: Which layer, from 0.
        summary: Its one leading axis is that of the heads.
    """

    kind: str
    layer: int
    summary: Summary


@dataclass(frozen=True, slots=True)
class Look:
    """What a model looked at while it wrote one output.

    Row t of a cross map belongs to the query that predicts output token t; the end of the source
    and of the output, where the model reads one, are the last column and row.

    Attributes:
        source: The source text.
        output: The output text.
        source_pieces: The source's tokens with their places in ``source``.
        output_pieces: The output's tokens with their places in ``output``.
        maps: Every attention of the model, if source and output have at most 512 tokens.
        summaries: The same of a text of more than 64, in memory that grows with its length.
    """

    source: str
    output: str
    source_pieces: list[Piece]
    output_pieces: list[Piece]
    maps: list[AttentionMap]
    summaries: list[AttentionSummary] = field(default_factory=list)

    def cross(self, layer: int | None = None) -> Float[Tensor, "T S"]:
        """Output × source weights, over heads averaged; over layers too if none is named.

        Raises:
            SettingError: The model has no such attention, or the text is so long that only its
                summaries were kept.
        """
        if self.summaries and not self.maps:
            raise SettingError(
                f"text must be at most {MOST_MAPPED} tokens long for its weights to be kept; got "
                f"{len(self.source_pieces)} and {len(self.output_pieces)}. Read its summaries."
            )
        chosen = [m for m in self.maps if m.kind == "cross" and layer in (None, m.layer)]
        if not chosen:
            raise SettingError(
                "The model must attend to the source to be looked at; this one does not"
                f"{'' if layer is None else f' in layer {layer}'}."
            )
        return torch.stack([m.weights.mean(0) for m in chosen]).mean(0)


def attention_maps(seen: Mapping[tuple[str, int], Seen]) -> list[AttentionMap]:
    """The weights of calls of ``attend``, given by kind and layer."""
    return [_map(kind, layer, call) for (kind, layer), call in seen.items()]


def attention_summaries(seen: Mapping[tuple[str, int], Seen]) -> list[AttentionSummary]:
    """The summaries of calls of ``attend``, given by kind and layer."""
    return [_summary(kind, layer, call) for (kind, layer), call in seen.items()]


def _map(kind: str, layer: int, seen: Seen) -> AttentionMap:
    """The weights of one sentence."""
    rows = weights_seen(seen)[0]
    return AttentionMap(kind, layer, rows.reshape(-1, *rows.shape[-2:]))


def _summary(kind: str, layer: int, seen: Seen) -> AttentionSummary:
    if seen.query.dim() == 3:  # one head, without an axis for it
        seen = replace(seen, query=seen.query[:, None], key=seen.key[:, None])
    return AttentionSummary(kind, layer, summarize_seen(seen)[0])
