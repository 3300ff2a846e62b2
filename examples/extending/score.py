"""A score: how a query and a key match.

``tile`` is the formula; what else it can (a dot product in disguise, the same in every head) it
says by class attributes, and ``testing.check`` holds it to that.

    python examples/extending/score.py train transformer-tiny pairs.tsv --set model.score=chebyshev

In the package: ``attention/scores/NAME.py``, and a line of SCORES in
``attention/scores/content.py``.
"""

from dataclasses import dataclass

from regard.attention import Score, testing
from regard.attention.scores.content import register_score
from regard.cli import main


@dataclass(frozen=True, eq=False)
class Chebyshev(Score):
    """``−max |q − k|``: two vectors are as near as their most different numbers."""

    def tile(self, query, key, *tensors):
        return -(query.unsqueeze(-2) - key.unsqueeze(-3)).abs().amax(-1)


testing.check(Chebyshev())  # itself pair by pair, gradients, empty rows, memory
register_score("chebyshev", Chebyshev)


if __name__ == "__main__":
    main()
