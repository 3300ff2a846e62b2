"""Predictions of masked words."""

from dataclasses import dataclass

from regard.config import JsonValue


@dataclass(frozen=True, slots=True)
class Guesses:
    """Predictions of a model for one passage.

    Attributes:
        nats: −log p of all that was masked.
        right: How many guesses were right.
        count: How many there were.
        pairs: How many halves were told apart rightly, and of how many.
        likeliest: For each masked token, in order: the likeliest tokens, with their probabilities.
        answers: What each was; of a blank to fill in, the mask's own id.
    """

    nats: float
    right: int
    count: int
    pairs: tuple[int, int]
    likeliest: tuple[tuple[tuple[str, float], ...], ...]
    answers: tuple[str, ...]

    def text(self) -> str:
        """The likeliest token for each blank, with its probability."""
        return "\t".join(
            " ".join(f"{piece}/{share:.3f}" for piece, share in each) for each in self.likeliest
        )

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        return {
            "blanks": [
                [{"piece": piece, "probability": round(share, 6)} for piece, share in each]
                for each in self.likeliest
            ]
        }
