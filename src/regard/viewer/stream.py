"""Scores and logits of an example as sums over the writers of the residual stream."""

from collections.abc import Mapping
from dataclasses import dataclass

from regard.errors import DataError
from regard.viewer.layer_summary import AXES, Kind, check_finite, check_head


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreSum:
    """The score of a query and a key of one head, by pairs of parts.

    Parts are called "token", "position", "segment", "biases", "layer 3 head 2", "layer 3 cross head
    2", "layer 3 feed-forward", counted from 0; groups of heads "layer 3 heads".

    Attributes:
        kind: ``cross``, ``encoder`` or ``decoder``.
        layer: Counted from 0.
        head: Counted from 0.
        query: Which token looks, a row of the head's map.
        key: Which is looked at, a column.
        score: The sum of all pairs and the bias.
        weight: The weight that came of it.
        bias: Term that the model added by the two positions.
        pairs: The largest pairs: part of the query, part of the key, value.
        rows: Parts of the query, heads of a layer in one.
        columns: Parts of the key, likewise.
        values: (rows, columns) Their sums.

    Raises:
        SettingError: The kind is unknown, or a number is below 0.
        DataError: The values are not of as many rows and columns, or not finite.
    """

    kind: Kind
    layer: int
    head: int
    query: int
    key: int
    score: float
    weight: float
    bias: float
    pairs: tuple[tuple[str, str, float], ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        check_head(self, "layer", "head", "query", "key")
        shape = {(len(self.values), len(row)) for row in self.values}
        if shape and shape != {(len(self.rows), len(self.columns))}:
            raise DataError(
                f"values must be {len(self.rows)} × {len(self.columns)} numbers; got {shape}."
            )
        numbers = [value for row in self.values for value in row]
        check_finite(
            "values must be finite",
            [*numbers, *(value for *_, value in self.pairs), self.score, self.bias],
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class LogitSum:
    """A logit, or the difference of two, by the parts of ``StreamSums``.

    Attributes:
        values: Contribution of each part, one number per part.
        total: The logit, or the difference.
        target: The token or class.
        against: The token or class that it is held against; empty for none.
        output: The output token that it is, or None.
        position: The token in whose position, or after which, it is predicted.

    Raises:
        DataError: A number is not finite.
    """

    values: tuple[float, ...]
    total: float
    target: str
    against: str = ""
    output: int | None = None
    position: int | None = None

    def __post_init__(self) -> None:
        check_finite("values must be finite", [*self.values, self.total])


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamSums:
    """Parts that wrote to the residual stream, and their sums.

    Attributes:
        parts: Names of the parts of logits.
        logits: Logits as sums over them.
        scores: Scores of some heads.

    Raises:
        DataError: There is not a number for each part.

    Example:
        >>> one = LogitSum(values=(1.5, -0.5), total=1.0, target="cat")
        >>> StreamSums(parts=("token", "layer 0 head 1"), logits=(one,)).logits[0].total
        1.0
    """

    parts: tuple[str, ...] = ()
    logits: tuple[LogitSum, ...] = ()
    scores: tuple[ScoreSum, ...] = ()

    def __post_init__(self) -> None:
        for logit in self.logits:
            if len(logit.values) != len(self.parts):
                raise DataError(
                    f"values must be one for each of {len(self.parts)} parts; got "
                    f"{len(logit.values)}."
                )

    def check(self, sizes: Mapping[str, int]) -> None:
        """Raise DataError unless the scores are of tokens of sides of these sizes."""
        for one in self.scores:
            queries, keys = (sizes[side] for side in AXES[one.kind])
            if not (one.query < queries and one.key < keys):
                raise DataError(
                    f"scores must be of {queries} queries and {keys} keys; got {one.query} and "
                    f"{one.key} of {one.kind} layer {one.layer}."
                )
