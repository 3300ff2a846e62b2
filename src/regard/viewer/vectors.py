"""Queries and keys of single heads, whose products are their scores."""

from dataclasses import dataclass

from regard.checks import check_at_least
from regard.choices import choose
from regard.errors import DataError
from regard.viewer.layer_summary import AXES, Kind
from regard.viewer.packing import PackedArray


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
        >>> (head.scale * head.query.values() @ head.key.values().T).round(2)
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
        choose("kind", self.kind, AXES)
        check_at_least("layer", self.layer, 0)
        check_at_least("head", self.head, 0)

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
