"""The scores that a model's settings may name; a new one is a file beside this one, and a line."""

from regard.attention.scores.additive import Additive
from regard.attention.scores.base import Score
from regard.attention.scores.dot import Dot, ScaledDot
from regard.choices import choose

SCORES: dict[str, type[Score]] = {"additive": Additive, "dot": Dot, "scaled_dot": ScaledDot}


def make_score(name: str, heads: int, dim: int) -> Score:
    """The score of a name for H heads of D numbers, with parameters of its own if it learns any.

    Raises:
        SettingError: There is no score of this name.

    Example:
        >>> make_score("additive", 2, 3).w.shape
        torch.Size([2, 3])
    """
    return choose("score", name, SCORES).for_heads(heads, dim)


def register_score(name: str, kind: type[Score]) -> None:
    """Let the settings of models, such as ``model.score`` of a recipe, name a score of one's own.

    Args:
        name: What it is called; a score of this name is replaced.
        kind: Its class, whose ``for_heads`` makes it.

    Example:
        >>> from regard.attention import Cosine
        >>> register_score("cosine", Cosine)
        >>> type(make_score("cosine", 2, 3)).__name__
        'Cosine'
        >>> from regard.models import TransformerConfig
        >>> TransformerConfig(score="cosine").score
        'cosine'
        >>> del SCORES["cosine"]
    """
    SCORES[name] = kind
