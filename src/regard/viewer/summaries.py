"""Summaries of attention and their tokens as an example of a page.

Its size is planned, whatever the length: lines along the text have a point for every token
as long as all of them are few enough, else one for 2, 4, 8, … tokens; exact rows are kept of texts
of up to 512 tokens; the largest weights of single queries are kept for as many heads as there is
room for.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

import numpy as np

from regard.checks import check_choice
from regard.errors import DataError, SettingError
from regard.metrics.alignment import alignment_error_rate
from regard.viewer.confidence import confidence, words_by_kind
from regard.viewer.example import Example, GoldLinks, Head, Layer
from regard.viewer.layer_summary import AXES, HeadLines, LayerSummary
from regard.viewer.packing import PackedArray, pack, pack_integers
from regard.viewer.parts import Array, Attention, Part, RowSource, array_of, flat, pooled_by
from regard.viewer.search import SearchTree
from regard.viewer.texts import Text, text_of

if TYPE_CHECKING:
    from torch import Tensor

HeadName = tuple[str, int, int]  # kind, layer and head
Rows = Callable[[int, Sequence[int], str], "Tensor | Array"]
RowsByLayer = Mapping[tuple[str, int], "Tensor"]  # by kind and layer
Padding = Literal["left", "right"]

LONGEST_WITH_ROWS = 512  # tokens
_FINE_ROWS = 1_500_000  # weights that are kept in two bytes each; more have one
_POINTS = 600_000  # of one kind of line, over all heads
_COARSE_POINTS = 80_000  # of the lines that are seen in the readout only
_CELLS = 1_200_000  # of all pooled maps
_ROOM = 750_000  # characters of the page for the top keys and weights of all heads together
_SAMPLE = 1024  # queries by which the room that a head takes is estimated


class KnownFields(TypedDict, total=False):
    """Fields of an example that its attention does not say.

    Attributes:
        started: Whether the decoder's keys are a start sign and the output without its last token;
            by default so if there is an encoder.
        gold: Links people set; of cross attention the alignment error is then told.
        score: The search's score of the output.
        search: How the output was found.
        label: Name that tells this example from the others.
    """

    started: bool
    gold: GoldLinks | None
    score: float | None
    search: SearchTree | None
    label: str | None


def example_of(
    seen: Iterable[Attention],
    tokens: Text | Sequence[str] | None,
    *,
    output: Text | Sequence[str] | None = None,
    row: int = 0,
    padding: Padding = "right",
    rows: Rows | RowsByLayer | None = None,
    top_heads: Iterable[HeadName] | Literal["all"] | None = None,
    **fields: Unpack[KnownFields],
) -> Example:
    """Make an example of a document from the attention to one text, a summary for each layer.

    Args:
        seen: Record of ``regard.watch``, or any objects with its ``kind``, ``layer``, ``heads`` and
            ``summary``; of several passes the last counts.
        tokens: The text that was read; pieces of a tokenizer, or a ``Text`` that also knows where
            they stand. None of a model without one, where ``output`` is given.
        output: The text that was written, of a model that reads one text and writes another.
        row: Which row of the batch.
        padding: On which side of a padded row its tokens are not.
        rows: Exact weights, kept where the text has at most 512 tokens: a function like
            ``Watch.rows``, or a mapping from (kind, layer) to weights (H, N, M). None asks
            ``seen.rows``, if it is there and has them.
        top_heads: Heads of long texts whose largest weights are kept, as (kind, layer, head). None
            keeps the largest weight of each query of all that fit, those of lowest entropy first,
            at least one; then the second, and so on.
        fields: Fields of the example that its attention does not say; see ``KnownFields``.

    Raises:
        DataError: There are more tokens than queries or keys, no tokens for a side, or a batch
            without such a row.

    Example:
        >>> import torch, regard
        >>> summary = regard.summarize(torch.zeros(2, 3, 4), torch.zeros(2, 3, 4))
        >>> attention = regard.viewer.OneAttention("encoder", 0, (0, 1), summary)
        >>> example = example_of([attention], ["a", "b", "c"])
        >>> example.source, example.summaries[0].measures["entropy"]
        ('a b c', (1.099, 1.099))
    """
    check_choice("padding", padding, Padding)
    last = {(one.kind, one.layer): one for one in seen}
    order = list(AXES)
    attentions = sorted(last.values(), key=lambda one: (order.index(one.kind), one.layer))
    texts = _sides({one.kind for one in attentions}, tokens, output)
    sizes = {side: len(text.tokens) for side, text in texts.items()}
    parts = [Part.of(one, sizes, row, padding) for one in attentions]
    exact_rows = _rows_of(parts, getattr(seen, "rows", None) if rows is None else rows, row)
    names = {part.name for part in parts if part.name not in exact_rows}
    depths = depths_of(parts, names, top_heads)
    if fields.get("started") is None:
        fields["started"] = any(one.kind in ("encoder", "cross") for one in attentions)
    return Example(
        source=texts["source"].text,
        output=texts["output"].text,
        source_tokens=texts["source"].tokens,
        output_tokens=texts["output"].tokens,
        summaries=tuple(
            _layer_summaries(
                parts,
                exact_rows,
                depths,
                words_by_kind(
                    {side: text.tokens for side, text in texts.items()}, fields["started"]
                ),
                fields.get("gold"),
            )
        ),
        **fields,
    )


def watched_rows(
    seen: Iterable[Attention], example: Example, row: int = 0, padding: str = "right"
) -> RowSource | None:
    """Source of exact attention rows from the records of ``regard.watch``.

    ``seen``, ``row`` and ``padding`` are those of which ``example_of`` made the example. Returns a
    function of (example, kind, layer, head, queries), as ``viewer.show`` takes it; None if ``seen``
    has no rows.

    Example:
        >>> import torch, regard
        >>> from regard.interop import use
        >>> layer = use(torch.nn.TransformerEncoderLayer(8, 2, batch_first=True)).eval()
        >>> with regard.watch(layer, keep=True) as seen:
        ...     _ = layer(torch.zeros(1, 3, 8))
        >>> rows = watched_rows(seen, example_of(seen, ["a", "b", "c"]))
        >>> rows(0, "encoder", 0, "mean", [1]).round(3).tolist()
        [[0.333, 0.333, 0.333]]
    """
    rows = getattr(seen, "rows", None)
    if rows is None or not example.summaries:
        return None
    sizes = {"source": len(example.source_tokens), "output": len(example.output_tokens)}
    parts = {(one.kind, one.layer): Part.of(one, sizes, row, padding) for one in seen}
    first = next(iter(parts.values()))
    if _exact_rows(rows, first, range(first.spans[0].start, first.spans[0].start + 1)) is None:
        return None

    def answer(_: int, kind: str, layer: Layer, head: Head, queries: Sequence[int]) -> Array | None:
        chosen = [
            part for name, part in parts.items() if name[0] == kind and layer in ("mean", name[1])
        ]
        if not chosen:
            return None
        means = []
        for part in chosen:
            positions = [part.spans[0].start + query for query in queries]
            weights = _row_of(array_of(rows(part.layer, positions, part.kind)), row)
            heads = weights[..., part.spans[1]]
            means.append(heads.mean(0) if head == "mean" else heads[part.heads.index(head)])
        mean: Array = np.mean(means, axis=0)
        return mean

    return answer


def _layer_summaries(
    parts: Sequence[Part],
    exact_rows: Mapping[tuple[str, int], Array],
    depths: Mapping[HeadName, int],
    words: Mapping[str, tuple[Array, Array]],
    gold: GoldLinks | None,
) -> Iterator[LayerSummary]:
    """Pack each part, at a resolution by which the document stays small."""
    longest = [(len(part.heads), max(part.sizes)) for part in parts]
    # Tokens of a point of a line, and of a line that is seen in the readout only.
    places, coarse = _fewest(longest, _POINTS), _fewest(longest, _COARSE_POINTS)
    bits = 16 if sum(array.size for array in exact_rows.values()) <= _FINE_ROWS else 8
    cells = sum(part.pooled.size for part in parts if part.name not in exact_rows)
    joined = 1 if cells <= _CELLS else 2 if cells <= 4 * _CELLS else 4  # pooled cells along a side
    for part in parts:
        rows = exact_rows.get(part.name)
        heads, counts, top_keys, top_weights = packed_top(part, depths)
        pooled = pooled_by(part.pooled, (joined, joined))
        yield LayerSummary(
            kind=part.kind,
            layer=part.layer,
            heads=part.heads,
            measures=_measures(part, *words[part.kind], gold),
            entropy=_line(part.entropy, places),
            distance=_line(part.distance, coarse),
            first=_line(part.first, coarse),
            received=_line(part.received, places, scale="log"),
            pooled=None if rows is not None else pack(pooled, bits=16, scale="log"),
            bucket=(part.bucket[0] * joined, part.bucket[1] * joined),
            start=part.start,
            top_heads=heads,
            top_counts=counts,
            top_keys=top_keys,
            top_weights=top_weights,
            rows=None if rows is None else pack(rows, bits=bits, scale="log"),
        )


def _measures(
    part: Part, queries: Array, keys: Array, gold: GoldLinks | None
) -> dict[str, tuple[float | None, ...]]:
    """Average every head's numbers over the queries that count."""
    count = part.counts.sum(axis=1)

    def mean(values: Array) -> tuple[float | None, ...]:
        sums = (values * part.counts).sum(axis=1)
        return tuple(
            _short(total / number) if number else None
            for total, number in zip(sums.tolist(), count.tolist(), strict=True)
        )

    measures = {name: mean(getattr(part, name)) for name in ("entropy", "first", "distance")}
    if part.kind == "cross":
        del measures["distance"]  # positions in two texts are not comparable
        if gold is not None and (gold.sure or gold.possible) and part.top_keys.shape[-1]:
            measures["alignment_error"] = tuple(_error(keys, gold) for keys in part.top_keys)
    for name, scores in part.scores.items():
        measures[name] = tuple(None if score is None else _short(score) for score in scores)
    if queries.any() and keys.any():
        measures["confidence"] = tuple(
            _short(value)
            for value in confidence(part.top_keys, part.top_weights, part.kind, queries, keys)
        )
    return measures


def _error(top_keys: Array, gold: GoldLinks) -> float:
    links = {(int(key), query) for query, key in enumerate(top_keys[:, 0]) if key >= 0}
    sure = set(gold.sure)
    return _short(alignment_error_rate([links], [sure], [sure | set(gold.possible)]))


def _rows_of(
    parts: Sequence[Part], rows: Rows | RowsByLayer | None, row: int
) -> dict[tuple[str, int], Array]:
    """Collect the exact weights of the attentions that are short enough, by kind and layer."""
    exact: dict[tuple[str, int], Array] = {}
    if rows is None:
        return exact
    for part in parts:
        if max(part.sizes, default=0) > LONGEST_WITH_ROWS:
            continue
        queries, keys = part.spans
        if isinstance(rows, Mapping):
            tensor = rows.get(part.name)
            weights = None if tensor is None else array_of(tensor)[..., queries, :]
        else:
            weights = _exact_rows(rows, part, range(queries.start, queries.stop))
        if weights is not None:
            exact[part.name] = _row_of(weights, row)[..., keys]
    return exact


def _row_of(weights: Array, row: int) -> Array:
    return weights if weights.ndim <= 3 else flat(weights, 3)[row]


def _exact_rows(rows: Rows, part: Part, queries: range) -> Array | None:
    try:
        return array_of(rows(part.layer, list(queries), part.kind))
    except SettingError:  # they were not recorded
        return None


def _sides(
    kinds: set[str], tokens: Text | Sequence[str] | None, output: Text | Sequence[str] | None
) -> dict[str, Text]:
    """Return source and output; of a model with one text, the one that its attention is in."""
    needed = {side for kind in kinds for side in AXES[kind]}
    if tokens is not None and output is None and needed == {"output"}:
        tokens, output = None, tokens
    sides = {"source": tokens, "output": output}
    for side in sorted(needed):
        if sides[side] is None:
            raise DataError(
                f"{'tokens' if side == 'source' else 'output'} must be given for "
                f"{', '.join(sorted(kinds))} attention; got None."
            )
    return {side: text_of(one if one is not None else []) for side, one in sides.items()}


def _line(values: Array, places: int, scale: Literal["linear", "log"] = "linear") -> HeadLines:
    """Pack the means of so many neighbours, the last of those that are left."""
    if places > 1 and values.size:
        firsts = np.arange(0, values.shape[1], places)
        sums = np.add.reduceat(values, firsts, axis=1)
        values = sums / np.diff(np.append(firsts, values.shape[1]))
    return HeadLines(values=pack(values, scale=scale), places=places)


def _fewest(lines: Sequence[tuple[int, int]], most: int) -> int:
    """Smallest power of two of tokens a point that leaves at most so many points."""
    places = 1
    while sum(heads * -(-size // places) for heads, size in lines) > most:
        places *= 2
        if all(places >= size for _, size in lines):
            break
    return places


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def depths_of(
    parts: Sequence[Part],
    long: set[tuple[str, int]],
    top_heads: Iterable[HeadName] | Literal["all"] | None,
) -> dict[HeadName, int]:
    """Number of keys kept of each query, by head: the first of all before any's second."""
    heads = [
        (float(part.entropy[index].mean()), (*part.name, head), part, index)
        for part in parts
        if part.name in long and part.top_keys[0].size
        for index, head in enumerate(part.heads)
    ]
    if isinstance(top_heads, str):
        check_choice("top_heads", top_heads, Literal["all"])
    if top_heads is not None:
        wanted = {name for _, name, *_ in heads} if top_heads == "all" else set(top_heads)
        return {name: part.top_keys.shape[-1] for _, name, part, _ in heads if name in wanted}
    heads.sort(key=lambda one: one[:2])
    depths: dict[HeadName, int] = {}
    taken: dict[HeadName, int] = {}
    room = _ROOM
    for depth in _ladder(max((part.top_keys.shape[-1] for *_, part, _ in heads), default=0)):
        before = room
        for _, name, part, index in heads:
            keys = min(depth, part.top_keys.shape[-1])
            more = _size(part, index, keys) - taken.get(name, 0)
            if keys > depths.get(name, 0) and (more <= room or not depths):
                depths[name], taken[name] = keys, taken.get(name, 0) + more
                room -= more
        if room == before:
            break  # deeper ones take more
    return depths


def packed_top(
    part: Part, depths: Mapping[HeadName, int]
) -> tuple[tuple[int, ...], tuple[int, ...], PackedArray | None, PackedArray | None]:
    """Pack the largest weights of a layer: heads that have any, number of each, keys, weights."""
    heads = tuple(head for head in part.heads if (*part.name, head) in depths)
    counts = tuple(depths[(*part.name, head)] for head in heads)
    if not heads:
        return (), (), None, None
    at = [part.heads.index(head) for head in heads]
    is_kept = np.arange(max(counts)) < np.array(counts)[:, None, None]  # (H, 1, K)
    keys = np.where(is_kept, part.top_keys[at][..., : max(counts)], -1)
    weights = np.where(is_kept, part.top_weights[at][..., : max(counts)], 0.0)
    return heads, counts, *_packed(keys, weights)


def _packed(keys: Array, weights: Array) -> tuple[PackedArray, PackedArray]:
    """Pack as steps or not, whichever is shorter: keys may move on with their query, or jump."""
    either = (False, True)
    return (
        min((pack_integers(keys, steps=one) for one in either), key=lambda one: len(one.data)),
        min(
            (pack(weights, scale="log", steps=one) for one in either), key=lambda one: len(one.data)
        ),
    )


def _ladder(most: int) -> list[int]:
    """Return 1, 2, 4, …, and the most there are."""
    return [*(1 << power for power in range(most.bit_length()) if 1 << power < most), most]


def _size(part: Part, index: int, keys: int) -> int:
    """Estimate the characters that a head takes with so many keys a query."""
    N = part.top_keys.shape[1]
    first = max(0, (N - _SAMPLE) // 2)
    sample = slice(first, first + _SAMPLE)
    packed = _packed(
        part.top_keys[[index], sample, :keys], part.top_weights[[index], sample, :keys]
    )
    characters = sum(len(one.data) for one in packed)
    return characters * int(N) // max(1, min(int(N), _SAMPLE))
