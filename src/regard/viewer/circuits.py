"""Circuits of heads and neurons of feed-forward parts, in words."""

from dataclasses import dataclass

from regard.errors import DataError
from regard.viewer.layer_summary import Kind, check_finite, check_head

# Tokens with a number each, the largest first.
Ranked = tuple[tuple[str, float], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadCircuit:
    """Tokens that a head likes to look at, and logits that it then changes; each token once.

    Attributes:
        kind: ``cross``, ``encoder`` or ``decoder``.
        layer: Counted from 0.
        head: Counted from 0.
        queries: Tokens of the text that look.
        keys: Tokens of the text that are looked at.
        scores: (queries, keys) Scores by content alone.
        key_scores: Terms of the score of each key by biases of the query; empty for none.
        liked: Tokens of the vocabulary with the largest scores, for each query; empty if unknown.
        promoted: Tokens whose logits each key raises; empty of a head that no logits are made of.
        suppressed: Tokens whose logits it lowers.
        own: Change of the key's own logit, and how many tokens are raised more; empty where logits
            are of others.
        copying: From -1 to 1, or None.

    Raises:
        SettingError: The kind is unknown, or a number is below 0.
        DataError: There is not a row for each token, or a number is not finite.

    Example:
        >>> HeadCircuit(kind="decoder", layer=0, head=1, queries=("a",), keys=("b", "c"),
        ...             scores=((0.5, 2.0),), copying=0.25).scores[0][1]
        2.0
    """

    kind: Kind
    layer: int
    head: int
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    scores: tuple[tuple[float, ...], ...]
    key_scores: tuple[float, ...] = ()
    liked: tuple[Ranked, ...] = ()
    promoted: tuple[Ranked, ...] = ()
    suppressed: tuple[Ranked, ...] = ()
    own: tuple[tuple[float, int], ...] = ()
    copying: float | None = None

    def __post_init__(self) -> None:
        check_head(self, "layer", "head")
        rows, columns = len(self.queries), len(self.keys)
        if len(self.scores) != rows or {len(row) for row in self.scores} - {columns}:
            raise DataError(f"scores must be {rows} × {columns} numbers; got {len(self.scores)}.")
        lists = {"liked": (self.liked, rows), "key_scores": (self.key_scores, columns)}
        for name in ("promoted", "suppressed", "own"):
            lists[name] = (getattr(self, name), columns)
        for name, (values, count) in lists.items():
            if values and len(values) != count:
                raise DataError(f"{name} must be one for each of {count}; got {len(values)}.")
        ranked = [
            pair for ranking in (self.liked, self.promoted, self.suppressed) for pair in ranking
        ]
        numbers = [value for row in (*self.scores, self.key_scores) for value in row]
        numbers += [value for pairs in ranked for _, value in pairs]
        check_finite(
            "values must be finite", [*numbers, *(value for value, _ in self.own), self.copying]
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class StrongNeuron:
    """A neuron of a feed-forward part, and its output at a token, in words.

    Attributes:
        kind: ``encoder`` or ``decoder``.
        layer: Counted from 0.
        position: Of the token in the model's input.
        token: The token.
        number: Counted from 0.
        activation: Factor of its value vector.
        size: Length of its output.
        promoted: Tokens whose logits it raises; empty where no logits are made of it.
        suppressed: Tokens whose logits it lowers.

    Raises:
        SettingError: The kind is unknown, or a number is below 0.
        DataError: A number is not finite.

    Example:
        >>> one = StrongNeuron(kind="decoder", layer=3, position=0, token="a", number=17,
        ...                    activation=1.5, size=3.0, promoted=(("cat", 0.5),))
        >>> one.promoted[0]
        ('cat', 0.5)
    """

    kind: Kind
    layer: int
    position: int
    token: str
    number: int
    activation: float
    size: float
    promoted: Ranked = ()
    suppressed: Ranked = ()

    def __post_init__(self) -> None:
        check_head(self, "layer", "position", "number")
        pairs = (*self.promoted, *self.suppressed)
        check_finite(
            "values must be finite", [self.activation, self.size, *(value for _, value in pairs)]
        )
