"""One text, what a model made of it, and what it looked at: the parts of a document."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from regard.checks import check_at_least
from regard.choices import choose
from regard.errors import DataError
from regard.viewer.image import Image
from regard.viewer.packing import Packed
from regard.viewer.search import Search

Kind = Literal["cross", "encoder", "decoder"]
Head = int | Literal["mean"]
Layer = int | Literal["mean"]
Side = Literal["source", "output"]
Link = Annotated[tuple[int, int], "a pair [source token, output token]"]
Sizes = Annotated[tuple[int, int], "a pair [queries, keys]"]
Share = Annotated[tuple[str, float], "a pair [label, probability]"]

# Which tokens look (rows) and which are looked at (columns), by kind.
AXES: dict[str, tuple[Side, Side]] = {
    "cross": ("output", "source"),
    "encoder": ("source", "source"),
    "decoder": ("output", "output"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    """One token and where it stands in its text.

    Attributes:
        text: What people are shown; a space marker such as ``▁`` may be left in.
        start: First character, counted in Unicode code points of the source or output text.
        end: One past the last character; equal to ``start`` for a token that is no text, such as
            the end of the sentence.
    """

    text: str
    start: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class GoldLinks:
    """Links that people set, as pairs (source token, output token).

    Attributes:
        sure: Links that every annotator sets.
        possible: Links that some would set; those in ``sure`` need not be repeated.
    """

    sure: tuple[Link, ...] = ()
    possible: tuple[Link, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """Which map of an example is meant.

    Attributes:
        kind: ``cross`` (output looks at source), ``encoder`` or ``decoder`` (each at itself).
        layer: Counted from 0, the page shows it counted from 1; or ``"mean"`` over layers.
        head: Counted from 0, or ``"mean"`` over the heads of the layer.
    """

    kind: Kind = "cross"
    layer: Layer = "mean"
    head: Head = "mean"

    def __post_init__(self) -> None:
        choose("kind", self.kind, AXES)
        _check_number("layer", self.layer)
        _check_number("head", self.head)


@dataclass(frozen=True, kw_only=True, slots=True)
class AttentionMap:
    """The weights of one head, as numbers: one row per token that looks.

    For short texts; ``LayerSummary`` holds those of long ones in fewer bytes.

    Row ``t`` of a ``cross`` or ``decoder`` map belongs to the query that predicts output token
    ``t``. The keys of a ``decoder`` map are the decoder's inputs: column 0 is the start sign and
    column ``j`` is output token ``j - 1``; unless the example says ``started=False``.

    Attributes:
        kind: ``cross`` (T × S), ``encoder`` (S × S) or ``decoder`` (T × T).
        layer: Counted from 0.
        head: Counted from 0, or ``"mean"``.
        rows: Weights, any nested sequence; kept as tuples with four significant digits.

    Example:
        >>> AttentionMap(kind="cross", layer=0, head=0, rows=[[1 / 3, 2 / 3]]).rows
        ((0.3333, 0.6667),)
    """

    kind: Kind
    layer: int
    head: Head
    rows: Sequence[Sequence[float]]

    def __post_init__(self) -> None:
        choose("kind", self.kind, AXES)
        check_at_least("layer", self.layer, 0)
        _check_number("head", self.head)
        rows = tuple(tuple(_four_digits(weight) for weight in row) for row in self.rows)
        object.__setattr__(self, "rows", rows)


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """Values along a text, for each head of a layer.

    Attributes:
        values: (H, P) values; a point stands for the mean over its tokens.
        places: How many tokens a point stands for; the last point may have fewer.
    """

    values: Packed
    places: int = 1

    def __post_init__(self) -> None:
        check_at_least("places", self.places, 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerSummary:
    """What the heads of one layer looked at, in bytes that do not grow with the square.

    Every array has the heads first, in the order of ``heads``. N and M are the numbers of tokens
    that look and that are looked at, as in ``AttentionMap``.

    Attributes:
        kind: ``cross``, ``encoder`` or ``decoder``.
        layer: Counted from 0.
        heads: Their numbers, counted from 0.
        measures: One number per head, or None where it has no meaning, by name; the page knows
            ``entropy`` (nats), ``first`` (share of the first key), ``distance`` (tokens) and
            ``alignment_error``, and shows others by their name.
        entropy: Of every query's weights, in nats.
        distance: Mean distance between a query and what it looks at, in tokens.
        first: The weight of the first key.
        received: What every key received from all queries together.
        pooled: (H, R, C) sums of weights over buckets of queries and of keys.
        bucket: How many queries and how many keys make a bucket of ``pooled``.
        start: How many places of the first buckets stand before the first query and key.
        top_heads: The heads whose largest weights were kept, by number.
        top_counts: How many of a query's largest weights were kept of each of these heads; the
            rest of a row of ``top_keys`` is -1. Empty where it is K of all of them.
        top_keys: (len(top_heads), N, K) keys with the largest weights; -1 where fewer are seen.
        top_weights: Their weights, falling.
        rows: (H, N, M) all weights, where the text is short.
    """

    kind: Kind
    layer: int
    heads: tuple[int, ...]
    measures: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    entropy: Line | None = None
    distance: Line | None = None
    first: Line | None = None
    received: Line | None = None
    pooled: Packed | None = None
    bucket: Sizes = (1, 1)
    start: Sizes = (0, 0)
    top_heads: tuple[int, ...] = ()
    top_counts: tuple[int, ...] = ()
    top_keys: Packed | None = None
    top_weights: Packed | None = None
    rows: Packed | None = None

    def __post_init__(self) -> None:
        choose("kind", self.kind, AXES)
        check_at_least("layer", self.layer, 0)
        for name, values in self.measures.items():
            if len(values) != len(self.heads):
                raise DataError(
                    f"measures.{name} must have a number for each of {len(self.heads)} heads; "
                    f"got {len(values)}."
                )
        for head in self.top_heads:
            if head not in self.heads:
                raise DataError(f"top_heads must be among heads; got {head}.")
        if self.top_counts and len(self.top_counts) != len(self.top_heads):
            raise DataError(
                f"top_counts must have a number for each of {len(self.top_heads)} top_heads; got "
                f"{len(self.top_counts)}."
            )

    def check(self, queries: int, keys: int) -> None:
        """See that the arrays are of a text of this size.

        Raises:
            DataError: One is not.
        """
        H = len(self.heads)
        for name, size in (
            ("entropy", queries),
            ("distance", queries),
            ("first", queries),
            ("received", keys),
        ):
            line: Line | None = getattr(self, name)
            if line is not None:
                self._check(name, line.values, (H, -(-size // line.places)))
        if self.pooled is not None:
            self._check("pooled", self.pooled, (H, *self._buckets(queries, keys)))
        if self.rows is not None:
            self._check("rows", self.rows, (H, queries, keys))
        if (self.top_keys is None) != (self.top_weights is None):
            raise DataError("top_keys and top_weights must be given together; got one of them.")
        if self.top_keys is not None and self.top_weights is not None:
            most = self.top_keys.shape[-1] if self.top_keys.shape else 0
            wanted = (len(self.top_heads), queries, most)
            self._check("top_keys", self.top_keys, wanted)
            self._check("top_weights", self.top_weights, wanted)

    def _buckets(self, queries: int, keys: int) -> tuple[int, int]:
        for size, start in zip(self.bucket, self.start, strict=True):
            check_at_least("bucket", size, 1)
            check_at_least("start", start, 0)
        rows, columns = (
            -(-(start + size) // bucket)
            for start, size, bucket in zip(self.start, (queries, keys), self.bucket, strict=True)
        )
        return rows, columns

    def _check(self, name: str, packed: Packed, wanted: tuple[int, ...]) -> None:
        if packed.shape != wanted:
            raise DataError(
                f"{name} must be of shape {list(wanted)}; got {list(packed.shape)} in {self.kind} "
                f"layer {self.layer}."
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """What became of the output when the attention was changed.

    Attributes:
        edit: What was changed, in words: "layer 2, head 3 muted".
        output: The output after it.
        score: Its score, or None.
    """

    edit: str
    output: str
    score: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Importance:
    """How much each token mattered by another measure than attention.

    Attributes:
        method: Its name, such as "leave one out" or "gradient × input".
        values: One per token of the source; of the output where there is no source.
        output: The output token it was measured for, or None for all of the output.
        correlation: Rank correlation with the attention beside it, or None.
    """

    method: str
    values: tuple[float, ...]
    output: int | None = None
    correlation: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a model said of a text, where it wrote none.

    Attributes:
        labels: What it may be, each with its probability, the likeliest first.
        tags: One for each token of the source, or of the output where there is no source; "" is
            none.
        values: A number for each of these tokens, such as how unexpected it was.
        measure: What ``values`` are, in words.
        side: Whose tokens these are, where both texts have some; None is as ``tags`` says.
    """

    labels: tuple[Share, ...] = ()
    tags: tuple[str, ...] = ()
    values: tuple[float, ...] = ()
    measure: str = ""
    side: Side | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """One text, what the model made of it, and what it looked at.

    A model of one text has it as ``source`` if it is an encoder and as ``output`` if it is a
    decoder (a language model); the other side is empty.

    Attributes:
        source: The text read.
        output: The text written.
        source_tokens: The columns of a ``cross`` map.
        output_tokens: Its rows.
        maps: The heads that were kept as numbers. The page adds the means of heads and of layers.
        summaries: The layers that were kept as summaries; a layer is kept in one way.
        started: Whether a decoder's keys are a start sign and all output tokens but the last, as
            in a translation; False where they are the output tokens themselves.
        label: What tells this example from others of the same text, such as the model's name.
        score: The search's score of the output, or None.
        gold: Links people set, or None.
        search: How the output was found, step by step, or None.
        changes: What edits of the attention did to the output.
        importances: How much each token mattered by other measures.
        answer: What was said of the text, where nothing was written.
        image: The picture whose parts the source tokens are, or None.
    """

    source: str
    output: str
    source_tokens: tuple[Token, ...]
    output_tokens: tuple[Token, ...]
    maps: tuple[AttentionMap, ...] = ()
    summaries: tuple[LayerSummary, ...] = ()
    started: bool = True
    label: str | None = None
    score: float | None = None
    gold: GoldLinks | None = None
    search: Search | None = None
    changes: tuple[Change, ...] = ()
    importances: tuple[Importance, ...] = ()
    answer: Answer | None = None
    image: Image | None = None

    def __post_init__(self) -> None:
        _check_tokens("source", self.source, self.source_tokens)
        _check_tokens("output", self.output, self.output_tokens)
        for score in (self.score, *(change.score for change in self.changes)):
            if score is not None and not math.isfinite(score):
                raise DataError(f"score must be finite or None; got {score}.")
        sizes = {"source": len(self.source_tokens), "output": len(self.output_tokens)}
        for found in self.maps:
            _check_shape(found, *(sizes[side] for side in AXES[found.kind]))
        for summary in self.summaries:
            summary.check(*(sizes[side] for side in AXES[summary.kind]))
        if self.search is not None and len(self.search.steps) not in (0, sizes["output"]):
            raise DataError(
                f"search must have a step for each of {sizes['output']} output tokens; got "
                f"{len(self.search.steps)}."
            )
        for importance in self.importances:
            _check_importance(importance, sizes)
        if self.image is not None:
            self.image.check(sizes["source"])
        if self.answer is not None:
            _check_answer(self.answer, sizes)
        if self.gold is not None:
            _check_links(self.gold, sizes)


def _four_digits(weight: float) -> float:
    if not -1e-6 <= weight <= 1.01:  # room for rounding in half precision; false for NaN
        raise DataError(f"weights must be between 0 and 1; got {weight}.")
    return float(f"{min(max(weight, 0.0), 1.0):.4g}")


def _check_number(name: str, value: int | Literal["mean"]) -> None:
    if value != "mean":
        check_at_least(name, value, 0)


def _check_tokens(side: str, text: str, tokens: Sequence[Token]) -> None:
    for token in tokens:
        if not 0 <= token.start <= token.end <= len(text):
            raise DataError(
                f"{side}_tokens must lie within the {len(text)} characters of {side}; got "
                f"{token.text!r} at {token.start}:{token.end}."
            )


def _check_links(gold: GoldLinks, sizes: Mapping[str, int]) -> None:
    for link in (*gold.sure, *gold.possible):
        if not (0 <= link[0] < sizes["source"] and 0 <= link[1] < sizes["output"]):
            raise DataError(
                f"gold links must be pairs (source token, output token) of "
                f"{sizes['source']} and {sizes['output']} tokens; got {link}."
            )


def _check_shape(found: AttentionMap, height: int, width: int) -> None:
    got = sorted({len(row) for row in found.rows})
    if len(found.rows) != height or got not in ([width], []):
        raise DataError(
            f"rows of a {found.kind} map must be {height} × {width} weights; got "
            f"{len(found.rows)} × {'/'.join(map(str, got)) or 0} in layer {found.layer}, "
            f"head {found.head}."
        )


def _check_importance(importance: Importance, sizes: Mapping[str, int]) -> None:
    wanted = sizes["source"] or sizes["output"]
    if len(importance.values) != wanted:
        raise DataError(
            f"importances must have a value for each of {wanted} tokens; got "
            f"{len(importance.values)} of {importance.method!r}."
        )
    for value in (*importance.values, importance.correlation):
        if value is not None and not math.isfinite(value):
            raise DataError(f"importances must be finite; got {value} of {importance.method!r}.")


def _check_answer(answer: Answer, sizes: Mapping[str, int]) -> None:
    if answer.side is not None:
        choose("answer.side", answer.side, sizes)
    wanted = sizes[answer.side] if answer.side else sizes["source"] or sizes["output"]
    for name, given in (("tags", answer.tags), ("values", answer.values)):
        if given and len(given) != wanted:
            raise DataError(
                f"answer.{name} must be one for each of {wanted} tokens; got {len(given)}."
            )
    for value in (*answer.values, *(share for _, share in answer.labels)):
        if not math.isfinite(value):
            raise DataError(f"answer must have finite numbers; got {value}.")
