"""Attention summaries of layers, their predictions, and queries and keys, in packed arrays."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from regard.checks import check_count, choose
from regard.errors import DataError
from regard.viewer.packing import PackedArray

Kind = Literal["cross", "encoder", "decoder"]
Side = Literal["source", "output"]
Sizes = tuple[int, int]  # of queries, of keys

# The sides of queries (rows) and of keys (columns), by kind.
AXES: dict[str, tuple[Side, Side]] = {
    "cross": ("output", "source"),
    "encoder": ("source", "source"),
    "decoder": ("output", "output"),
}


def check_head(owner: Any, *numbers: str) -> None:
    """Raise SettingError unless the kind of attention is known, and these numbers count from 0."""
    choose("kind", owner.kind, AXES)
    for name in numbers:
        check_count(name, getattr(owner, name), 0)


def check_finite(rule: str, values: Iterable[float | None], of: str = "") -> None:
    """Raise DataError, with a rule, unless all values that are known are finite."""
    for value in values:
        if value is not None and not math.isfinite(value):
            raise DataError(f"{rule}; got {value}{of}.")


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadLines:
    """Values along a text, for each head of a layer.

    Attributes:
        values: (H, P) values; a point stands for the mean over its tokens.
        places: How many tokens a point stands for; the last point may have fewer.

    Raises:
        SettingError: ``places`` is below 1.
    """

    values: PackedArray
    places: int = 1

    def __post_init__(self) -> None:
        check_count("places", self.places)


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerSummary:
    """Attention summaries of one layer's heads; bytes grow linearly with the length.

    Every array has the heads first, in the order of ``heads``. N and M are the numbers of tokens
    that look and that are looked at, as in ``HeadMap``.

    Attributes:
        kind: ``cross``, ``encoder`` or ``decoder``.
        layer: Counted from 0.
        heads: Their numbers, counted from 0.
        measures: One number per head, or None where it has no meaning, by name; the page knows
            ``entropy`` (nats), ``first`` (share of the first key), ``distance`` (tokens),
            ``confidence`` (mean of each word's largest weight on another), ``alignment_error`` and
            those of ``regard.head_scores``, and shows others by their name.
        entropy: Of every query's weights, in nats.
        distance: Mean distance between a query and the keys it looks at, in tokens.
        first: The weight of the first key.
        received: Weight that every key received from all queries together.
        pooled: (H, R, C) sums of weights over buckets of queries and of keys.
        bucket: How many queries and how many keys make a bucket of ``pooled``.
        start: How many places of the first buckets stand before the first query and key.
        top_heads: The heads whose largest weights were kept, by number.
        top_counts: How many of a query's largest weights were kept of each of these heads; the
            rest of a row of ``top_keys`` is -1. Empty where it is K of all of them.
        top_keys: (len(top_heads), N, K) keys with the largest weights; -1 where fewer are seen.
        top_weights: Their weights, falling.
        rows: (H, N, M) all weights, where the text is short.

    Raises:
        SettingError: The kind is unknown, or the layer is below 0.
        DataError: A measure has no number for each head, or top_heads and top_counts do not fit.

    Example:
        >>> import torch
        >>> from regard.viewer import show
        >>> page = show(torch.eye(3), ["I", "love", "you"])
        >>> (layer,) = page.document.examples[0].summaries
        >>> layer.kind, layer.heads, layer.measures["entropy"], layer.measures["first"]
        ('encoder', (0,), (0.0,), (0.3333,))
        >>> layer.rows.values().round(3).tolist()
        [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]]
    """

    kind: Kind
    layer: int
    heads: tuple[int, ...]
    measures: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    entropy: HeadLines | None = None
    distance: HeadLines | None = None
    first: HeadLines | None = None
    received: HeadLines | None = None
    pooled: PackedArray | None = None
    bucket: Sizes = (1, 1)
    start: Sizes = (0, 0)
    top_heads: tuple[int, ...] = ()
    top_counts: tuple[int, ...] = ()
    top_keys: PackedArray | None = None
    top_weights: PackedArray | None = None
    rows: PackedArray | None = None

    def __post_init__(self) -> None:
        check_head(self, "layer")
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
        """Raise DataError unless the arrays are of a text of this size."""
        H = len(self.heads)
        lines = {"entropy": queries, "distance": queries, "first": queries, "received": keys}
        for name, size in lines.items():
            line: HeadLines | None = getattr(self, name)
            if line is not None:
                self._check(name, line.values, (H, -(-size // line.places)))
        if self.pooled is not None:
            for size, start in zip(self.bucket, self.start, strict=True):
                check_count("bucket", size)
                check_count("start", start, 0)
            spans = zip(self.start, (queries, keys), self.bucket, strict=True)
            buckets = (-(-(start + size) // bucket) for start, size, bucket in spans)
            self._check("pooled", self.pooled, (H, *buckets))
        if self.rows is not None:
            self._check("rows", self.rows, (H, queries, keys))
        if (self.top_keys is None) != (self.top_weights is None):
            raise DataError("top_keys and top_weights must be given together; got one of them.")
        if self.top_keys is not None and self.top_weights is not None:
            most = self.top_keys.shape[-1] if self.top_keys.shape else 0
            wanted = (len(self.top_heads), queries, most)
            self._check("top_keys", self.top_keys, wanted)
            self._check("top_weights", self.top_weights, wanted)

    def _check(self, name: str, packed: PackedArray, wanted: tuple[int, ...]) -> None:
        if packed.shape != wanted:
            raise DataError(
                f"{name} must be of shape {list(wanted)}; got {list(packed.shape)} in {self.kind} "
                f"layer {self.layer}."
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Lens:
    """The likeliest tokens of each layer, whose states are read as those of the last are.

    nostalgebraist (2020), "interpreting GPT: the logit lens". Positions are those of the output, of
    the source where there is no output; the last layer's are the model's own predictions.

    Attributes:
        words: The tokens that are named.
        tokens: (L, P, K) The likeliest tokens at each position, as indices into ``words``, falling.
        probabilities: (L, P, K) Their probabilities.
        first: The first of the P positions.
        ahead: 1 where a position predicts the token after it, 0 where it predicts its own.

    Raises:
        DataError: The arrays are not of one shape.

    Example:
        >>> from regard.viewer import pack, pack_integers
        >>> lens = Lens(words=("cat", "dog"), tokens=pack_integers([[[0, 1]], [[1, 0]]]),
        ...             probabilities=pack([[[0.6, 0.4]], [[0.9, 0.1]]], bits=16, scale="log"))
        >>> lens.tokens.shape  # two layers, one position, the two likeliest
        (2, 1, 2)
    """

    words: tuple[str, ...]
    tokens: PackedArray
    probabilities: PackedArray
    first: int = 0
    ahead: int = 0

    def __post_init__(self) -> None:
        check_count("lens.first", self.first, 0)
        shape = self.tokens.shape
        if len(shape) != 3 or shape != self.probabilities.shape:
            raise DataError(
                "lens must have tokens and probabilities of one shape (L, P, K); got "
                f"{list(shape)} and {list(self.probabilities.shape)}."
            )

    def check(self, size: int) -> None:
        """Raise DataError unless its positions are among so many tokens."""
        last = self.first + self.tokens.shape[1]
        if last > size:
            raise DataError(f"lens must be of {size} tokens at most; got positions up to {last}.")


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadVectors:
    """Queries and keys of one head as they are multiplied: where positions rotate them, rotated.

    The score of a pair is ``scale · Σ query · key``, within ``softcap``, plus ``bias``.

    Attributes:
        kind: ``cross``, ``encoder`` or ``decoder``.
        layer: Counted from 0.
        head: Counted from 0.
        query: (N, D), a vector for each token that looks.
        key: (M, D), a vector for each token that is looked at.
        scale: Factor of the sum of products.
        softcap: Bound c of scores, which are ``c · tanh(score / c)``; None is none.
        bias: (N, M) numbers that are added to the scores, or None.

    Raises:
        SettingError: The kind is unknown, or a number is below 0.

    Example:
        >>> from regard.viewer import pack
        >>> query, key = pack([[1.0, 0.0], [0.0, 2.0]]), pack([[3.0, 1.0], [0.0, 1.0]])
        >>> head = HeadVectors(kind="encoder", layer=0, head=0, query=query, key=key, scale=0.5)
        >>> (head.scale * head.query.values() @ head.key.values().T).round(1)
        array([[1.5, 0. ],
               [1. , 1. ]])
    """

    kind: Kind
    layer: int
    head: int
    query: PackedArray
    key: PackedArray
    scale: float
    softcap: float | None = None
    bias: PackedArray | None = None

    def __post_init__(self) -> None:
        check_head(self, "layer", "head")

    def arrays(self) -> dict[str, PackedArray]:
        """Return its arrays by name."""
        arrays = {"query": self.query, "key": self.key}
        return arrays if self.bias is None else {**arrays, "bias": self.bias}

    def check(self, queries: int, keys: int) -> None:
        """Raise DataError unless there is a vector for each token, all of one length."""
        dim = self.query.shape[-1] if self.query.shape else 0
        wanted = {"query": (queries, dim), "key": (keys, dim), "bias": (queries, keys)}
        for name, packed in self.arrays().items():
            if packed.shape != wanted[name]:
                raise DataError(
                    f"{name} must be of shape {list(wanted[name])}; got {list(packed.shape)} in "
                    f"{self.kind} layer {self.layer}, head {self.head}."
                )
