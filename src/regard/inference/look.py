"""Recorded attention of a model: its calls, their weights, and their summaries."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention import AttentionCall, attend, observe
from regard.attention.observing import editing
from regard.decoding.hypothesis import pieces_of
from regard.devices import CPU, device_of, moved
from regard.errors import DataError, SettingError
from regard.models import Seq2Seq
from regard.tasks import SequenceTask
from regard.text import BOS_ID, Piece, batched, normalize
from regard.text.batches import Ids, padded
from regard.text.tokenizers.pieces import BEGIN, END
from regard.viewer import OneAttention

# Calls of ``attend`` by a model, by kind and layer.
Calls = Mapping[tuple[str, int], AttentionCall]
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
        weights: One matrix a head: rows are queries, columns keys.

    Example:
        >>> weights = torch.tensor([[[0.9, 0.1], [0.2, 0.8]]])  # (H, N, M): one head
        >>> cross = AttentionMap("cross", 0, weights)
        >>> cross.weights.argmax(dim=-1).tolist()  # each query's likeliest key
        [[0, 1]]
    """

    kind: str
    layer: int
    weights: Float[Tensor, "H N M"]


@dataclass(frozen=True, slots=True)
class Look:
    """Recorded attention of one output.

    Row t of a cross map belongs to the query that predicts output token t; the end of the source
    and of the output, where the model reads one, are the last column and row.

    Attributes:
        source: The source text.
        output: The output text.
        source_pieces: The source's tokens with their spans in ``source``.
        output_pieces: The output's tokens with their spans in ``output``.
        maps: Every attention of the model, if source and output have at most 512 tokens.
        summaries: The same of a text of more than 64, in memory that grows with its length.

    Example:
        One of two heads looks at the first word, the other at both alike:

        >>> pieces = [Piece("我", 4, 0, 1), Piece("走", 5, 1, 2)], [Piece("I", 6, 0, 1)]
        >>> heads = torch.tensor([[[1.0, 0.0]], [[0.5, 0.5]]])  # (H, T, S)
        >>> look = Look("我走", "I", *pieces, maps=[AttentionMap("cross", 0, heads)])
        >>> look.cross().tolist()
        [[0.75, 0.25]]
    """

    source: str
    output: str
    source_pieces: list[Piece]
    output_pieces: list[Piece]
    maps: list[AttentionMap]
    summaries: list[OneAttention] = field(default_factory=list)

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
            raise _no_attention(None if layer is None else [layer])
        return torch.stack([m.weights.mean(0) for m in chosen]).mean(0)


@torch.no_grad()
def attention_to_source(
    model: Seq2Seq, task: SequenceTask, source: str, output: Sequence[int] | str
) -> Look:
    """Attention of a model to ``source`` for ``output``: one teacher-forced pass."""
    source, tokenizer = normalize(source), task.tokenizer
    ids = list(tokenizer.target.encode(output) if isinstance(output, str) else output)
    source_ids = tokenizer.source.encode(source)
    if not source_ids:
        raise DataError("source must hold text to look at; got an empty line.")
    calls = calls_for_output(model, task, source_ids, ids)
    text, spans = tokenizer.target.decode_with_spans(ids)
    longest = max(len(source_ids), len(ids))
    source_pieces, output_pieces = tokenizer.source.pieces(source), pieces_of(text, spans, ids)
    read = [*(piece.text for piece in source_pieces), *[END] * int(task.data.source_end)]
    written = [BEGIN, *(piece.text for piece in output_pieces)]
    names = {"encoder": read, "cross": read, "decoder": written}
    return Look(
        source=source,
        output=text,
        source_pieces=source_pieces,
        output_pieces=output_pieces,
        maps=attention_maps(calls) if longest <= MOST_MAPPED else [],
        summaries=attention_summaries(calls, names) if longest > MOST_WITHOUT_SUMMARIES else [],
    )


@torch.no_grad()
def calls_for_output(
    model: Seq2Seq, task: SequenceTask, source: Sequence[int], output: Sequence[int]
) -> Calls:
    """Calls of ``attend`` for ``output``, by kind and layer."""
    # The begin that stands before an output, and the end of a source where one is read.
    _check_length(model, "source", len(source), int(task.data.source_end))
    _check_length(model, "output", len(output), 1)
    inputs = *task.pad_sources([source]), torch.tensor([[BOS_ID, *output]])
    calls: list[AttentionCall] = []
    model.eval()
    with observe(calls.append):
        model(*moved(inputs, device_of(model)))
    by_layer = joined(calls)
    if model.begins_source:
        # Its encoder reads other tokens than those of the source.
        return {key: call for key, call in by_layer.items() if key[0] != "encoder"}
    return by_layer


def _check_length(model: Seq2Seq, name: str, length: int, signs: int) -> None:
    most = model.max_length
    if most is not None and length > most - signs:
        raise DataError(
            f"{name} must be at most {most - signs} tokens long to be looked at; got {length}. "
            "The model has no positions beyond: look at one sentence at a time."
        )


def attention_maps(calls: Calls) -> list[AttentionMap]:
    """The weights of calls of ``attend``, given by kind and layer, in the first row of each."""
    return [AttentionMap(*key, weights_of_row(call)) for key, call in calls.items()]


def attention_summaries(calls: Calls, tokens: Mapping[str, Sequence[str]]) -> list[OneAttention]:
    """Summaries of the first row of calls; heads are scored where there is a token for each key."""
    summaries = []
    for (kind, layer), call in calls.items():
        with_heads = call
        if call.query.dim() != 4:  # one head without an axis
            with_heads = replace(call, query=call.query[:, None], key=call.key[:, None])
        every, scores = with_heads.summary(), None
        if len(call.query) == 1 and len(tokens.get(kind, ())) == call.key.shape[-2]:
            scores = with_heads.head_scores(tokens[kind], summary=every)
        summary = every[0].to(CPU)
        heads = tuple(range(summary.shape[0]))
        summaries.append(OneAttention(kind, layer, heads, summary, scores))
    return summaries


def weights_of_row(
    call: AttentionCall, row: int = 0, queries: Sequence[int] | None = None
) -> Float[Tensor, "H N M"]:
    """The weights in a row of the batch; one head has an axis too."""
    rows = call.weights() if queries is None else call.rows(queries)
    weights = rows[min(row, len(rows) - 1)].cpu()
    return weights.reshape(-1, *weights.shape[-2:])


def joined(calls: Iterable[AttentionCall]) -> dict[tuple[str, int], AttentionCall]:
    """One call for each kind and layer with all queries; a recurrent decoder calls once a token."""
    by_layer: dict[tuple[str, int], list[AttentionCall]] = {}
    for call in calls:
        by_layer.setdefault((call.kind, call.layer), []).append(call)
    return {key: _one_call(parts) for key, parts in by_layer.items()}


def _one_call(parts: list[AttentionCall]) -> AttentionCall:
    first = parts[0]
    if len(parts) == 1:
        return first
    biases = [call.bias for call in parts if isinstance(call.bias, Tensor)]
    return replace(
        first,
        query=torch.cat([call.query for call in parts], dim=-2),
        bias=torch.cat(biases, dim=-2) if biases else first.bias,
    )


def mean_weights(call: AttentionCall) -> Float[Tensor, "B N M"]:
    """The weights of a call, over its heads averaged."""
    # Weights are the context of the identity as values, one value a key. That is the engine's own
    # path: for an additive score ten times as fast as the matrix written out.
    M = call.key.shape[-2]
    identity = torch.eye(M, dtype=call.query.dtype, device=call.query.device)
    # Whoever watches or edits the model has nothing to do with this call.
    with observe(lambda call: None), editing(lambda call: None):
        weights = attend(
            call.query,
            call.key,
            identity.expand(*call.key.shape[:-1], M),
            score=call.score,
            mask=call.mask,
            bias=call.bias,
            weighting=call.weighting,
        )
    return weights if weights.dim() == 3 else weights.mean(1)


def cross_maps(
    model: nn.Module,
    task: SequenceTask,
    sources: Sequence[Ids],
    targets: Sequence[Ids],
    *,
    layers: Sequence[int] | None = None,
    batch_tokens: int,
) -> Iterator[tuple[int, Float[Tensor, "T S"]]]:
    """Output × source weights of pairs, in any order, each with its index; the end has a row."""
    sizes = [max(len(s), len(t)) + 1 for s, t in zip(sources, targets, strict=True)]
    model.eval()
    for group in batched(sizes, batch_tokens):
        read = task.pad_sources([sources[pair] for pair in group])
        written = [[BOS_ID, *targets[pair]] for pair in group]
        calls: list[AttentionCall] = []
        with torch.no_grad(), observe(calls.append):
            model(*moved((*read, padded(written)), device_of(model)))
        crossing = [
            mean_weights(call)
            for (kind, layer), call in joined(calls).items()
            if kind == "cross" and (layers is None or layer in layers)
        ]
        if not crossing:
            raise _no_attention(layers)
        rows = torch.stack(crossing).mean(0).cpu()
        for index, (pair, width) in enumerate(zip(group, read[1].tolist(), strict=True)):
            yield pair, rows[index, : len(written[index]), :width]


def _no_attention(layers: Sequence[int] | None) -> SettingError:
    where = "" if layers is None else f" in layers {', '.join(map(str, layers))}"
    return SettingError(
        f"The model must attend to the source to be looked at; this one does not{where}."
    )
