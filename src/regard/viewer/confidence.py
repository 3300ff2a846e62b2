"""The confidence of a head: how sharp the links are that it draws between words."""

import unicodedata
from collections.abc import Mapping, Sequence

import numpy as np

from regard.viewer.example import Example, Token
from regard.viewer.layer_summary import AXES
from regard.viewer.parts import Array


def confidence(
    top_keys: Array, top_weights: Array, kind: str, queries: Array, keys: Array
) -> list[float]:
    """Average each word's largest weight on another word, of a text's own not on the first token.

    The confidence of a head of Voita et al. (2019), https://arxiv.org/abs/1905.09418, section 4,
    who leave out the sign of the end alone.

    Args:
        top_keys: (H, N, K) keys with the largest weights; -1 where there are fewer.
        top_weights: Their weights.
        kind: The kind of attention.
        queries: (N,) which queries are words.
        keys: (M,) which keys are words.
    """
    at = top_keys.astype(int)
    is_link = (at >= 0) & keys[at]
    if kind != "cross":
        is_link &= (at > 0) & (at != np.arange(at.shape[1])[:, None])
    largest = np.where(is_link, top_weights, 0.0).max(-1, initial=0.0)
    means: list[float] = largest[:, queries].mean(1).tolist()
    return means


def words_by_kind(
    tokens: Mapping[str, Sequence[Token]], started: bool
) -> dict[str, tuple[Array, Array]]:
    """Mark queries and keys that are words, by kind of attention; ``tokens`` are by side."""
    is_word = {
        side: np.array([_is_word(token) for token in of], bool) for side, of in tokens.items()
    }
    words = {kind: (is_word[query], is_word[key]) for kind, (query, key) in AXES.items()}
    if started and len(is_word["output"]):
        words["decoder"] = (is_word["output"], np.append(False, is_word["output"][:-1]))
    return words


def _is_word(token: Token) -> bool:
    """Whether a token has a letter or a number, and stands in the text."""
    return token.start < token.end and any(
        unicodedata.category(letter)[0] in "LN" for letter in token.text
    )


def confidence_in(example: Example, layer: int, head: int) -> tuple[str, float] | None:
    """The kind of attention and the confidence of a head in an example, of the first kind it has.

    Returns None where the example has no such head, or no words.

    Example:
        >>> from regard.viewer import show
        >>> page = show([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]], ["I", "love", "you"])
        >>> confidence_in(page.document.examples[0], 0, 0)
        ('encoder', 1.0)
    """
    tokens = {"source": example.source_tokens, "output": example.output_tokens}
    words = words_by_kind(tokens, example.started)
    for kind in AXES:
        for summary in example.summaries:
            values = summary.measures.get("confidence")
            if (summary.kind, summary.layer) == (kind, layer) and head in summary.heads and values:
                value = values[summary.heads.index(head)]
                return None if value is None else (kind, value)
        for one in example.maps:
            if (one.kind, one.layer, one.head) == (kind, layer, head):
                weights = np.array(one.rows)[None]
                queries, keys = words[kind]
                if not (queries.any() and keys.any()):
                    return None
                positions = np.broadcast_to(np.arange(float(weights.shape[-1])), weights.shape)
                return kind, confidence(positions, weights, kind, queries, keys)[0]
    return None
