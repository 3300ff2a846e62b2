"""Predictions of every layer of a model: the logit lens, as packed arrays."""

from dataclasses import dataclass

from regard.checks import check_at_least
from regard.errors import DataError
from regard.viewer.packing import PackedArray


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
        check_at_least("lens.first", self.first, 0)
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
