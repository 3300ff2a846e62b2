"""IBM model 1: translation probabilities of tokens, learned from sentence pairs."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float64, Int32, Int64

from regard.checks import check_at_least
from regard.text.corpus import Corpus
from regard.text.pieces import EOS_ID

# Pairs of a source and a target piece that are looked at once, and in all: of a larger corpus,
# pairs of sentences at even distances.
_AT_ONCE, _IN_ALL = 2**22, 2**26


def likeliest_targets(
    corpus: Corpus, *, source_vocab: int, target_vocab: int, count: int, rounds: int = 5
) -> Int32[np.ndarray, "S K"]:
    """The target pieces that each source piece most likely stands for.

    Model 1 of Brown et al. (1993), https://aclanthology.org/J93-2003: each target piece stands for
    one source piece of its sentence, or for none, whatever their places. ``t(target | source)`` is
    found by expectation maximisation, from equal numbers.

    Args:
        corpus: Sentence pairs.
        source_vocab: Number of source ids, S.
        target_vocab: Number of target ids.
        count: How many target pieces at most, K.
        rounds: How often what is expected is counted.

    Returns:
        Target ids, likeliest first; the end of a text where there are no more.

    Raises:
        SettingError: ``count`` or ``rounds`` is below one.

    Example:
        >>> from regard.text.corpus import Sequences
        >>> sources, targets = [[4, 5], [4, 6], [5, 6]], [[8, 7], [9, 7], [9, 8]]
        >>> corpus = Corpus(Sequences.of(sources), Sequences.of(targets))
        >>> likeliest_targets(corpus, source_vocab=7, target_vocab=10, count=1)[4:].ravel()
        array([7, 8, 9], dtype=int32)
    """
    check_at_least("count", count, 1)
    check_at_least("rounds", rounds, 1)
    pairs = _few_enough(corpus)
    parts, sizes = list(_parts(corpus, pairs)), (source_vocab, target_vocab)
    keys = np.unique(np.concatenate([np.unique(_keys(corpus, part, *sizes)[0]) for part in parts]))
    sources, targets = np.divmod(keys, target_vocab)
    # Where each piece's translations begin; the last is no piece, but stands for none.
    begins = np.unique(sources, return_index=True)[1]
    lengths = np.diff(np.append(begins, len(keys)))
    places = []
    for part in parts:
        met, widths = _keys(corpus, part, *sizes)
        places.append((np.searchsorted(keys, met).astype(np.int32), widths))
    chances = np.ones(len(keys))
    for _ in range(rounds):
        counts = np.zeros(len(keys))
        for place, widths in places:
            counts += _expected(chances, place, widths)
        chances = counts / np.repeat(np.add.reduceat(counts, begins), lengths)
    order = np.lexsort((targets, -chances, sources))
    ranks = np.arange(len(keys)) - np.repeat(begins, lengths)
    is_kept = (ranks < count) & (sources[order] < source_vocab)
    found = np.full((source_vocab, count), EOS_ID, np.int32)
    found[sources[order][is_kept], ranks[is_kept]] = targets[order][is_kept]
    return found


def _few_enough(corpus: Corpus) -> Int64[np.ndarray, " n"]:
    """Sentence pairs to learn from."""
    cells = (corpus.source.lengths + 1) * corpus.target.lengths
    kept = len(cells) * min(1.0, _IN_ALL / max(1, int(cells.sum())))
    chosen = np.linspace(0, len(cells), max(1, int(kept)), endpoint=False).astype(np.int64)
    some: np.ndarray = chosen[cells[chosen] > 0]
    return some


def _parts(corpus: Corpus, pairs: Int64[np.ndarray, " n"]) -> Iterator[Int64[np.ndarray, " p"]]:
    """The pairs of sentences, so many at once as there is room for."""
    cells = ((corpus.source.lengths + 1) * corpus.target.lengths)[pairs]
    ends = np.cumsum(cells) // _AT_ONCE
    yield from np.split(pairs, np.flatnonzero(np.diff(ends)) + 1)


def _keys(
    corpus: Corpus, pairs: Int64[np.ndarray, " p"], source_vocab: int, target_vocab: int
) -> tuple[Int64[np.ndarray, " cells"], Int64[np.ndarray, " targets"]]:
    """Each target piece beside each source piece of its sentence, and beside none, as one number.

    Returns:
        The numbers, target by target, and how many there are of each target.
    """
    source, target = corpus.source, corpus.target
    of_target = np.repeat(np.arange(len(pairs)), target.lengths[pairs])
    within = np.arange(len(of_target)) - np.repeat(
        np.cumsum(target.lengths[pairs]) - target.lengths[pairs], target.lengths[pairs]
    )
    ids = target.ids[target.offsets[pairs][of_target] + within]
    widths = source.lengths[pairs][of_target] + 1
    places = np.arange(int(widths.sum())) - np.repeat(np.cumsum(widths) - widths, widths)
    begins = np.repeat(source.offsets[pairs][of_target], widths)
    # The last place is beyond the sentence: it is none of its pieces.
    is_none = places == np.repeat(widths, widths) - 1
    read = np.minimum(begins + places, len(source.ids) - 1)
    pieces = np.where(is_none, source_vocab, source.ids[read]).astype(np.int64)
    return pieces * target_vocab + np.repeat(ids, widths), widths


def _expected(
    chances: Float64[np.ndarray, " keys"],
    places: Int32[np.ndarray, " cells"],
    widths: Int64[np.ndarray, " targets"],
) -> Float64[np.ndarray, " keys"]:
    """How often each translation is expected, where each target stands for one source piece."""
    shares = chances[places]
    totals = np.add.reduceat(shares, np.cumsum(widths) - widths)
    counts: np.ndarray = np.bincount(
        places, shares / np.repeat(totals, widths), minlength=len(chances)
    )
    return counts
