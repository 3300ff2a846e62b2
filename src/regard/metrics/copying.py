"""Copied and repeated n-grams of outputs."""

from collections.abc import Iterable, Sequence

from regard.metrics.rouge import n_grams, words


def novelty(outputs: Sequence[str], sources: Sequence[str], *, n: int) -> float:
    """The share of the outputs' n-grams that their sources do not hold, in percent.

    Figure 6 of See et al. (2017), https://arxiv.org/abs/1704.04368. Words are those of ROUGE. 0 if
    there are no n-grams.

    Args:
        outputs: Summaries or answers.
        sources: What each was made of.
        n: Words of an n-gram.

    Example:
        >>> novelty(["the sad king ran off"], ["The king was sad. The sad king left."], n=2)
        50.0
    """
    made = []
    for output, source in zip(outputs, sources, strict=True):
        there = set(n_grams(words(source), n))
        made += [each not in there for each in n_grams(words(output), n)]
    return _percent(made)


def repetition(outputs: Sequence[str], *, n: int) -> float:
    """The share of the outputs' n-grams that the same output has said before, in percent.

    Args:
        outputs: Summaries or answers.
        n: Words of an n-gram.

    Example:
        >>> repetition(["a king and a king"], n=2)
        25.0
    """
    said = []
    for output in outputs:
        known: set[tuple[str, ...]] = set()
        for each in n_grams(words(output), n):
            said.append(each in known)
            known.add(each)
    return _percent(said)


def _percent(found: Iterable[bool]) -> float:
    counted = list(found)
    return 100 * sum(counted) / len(counted) if counted else 0.0
