"""Words in a tokenizer's pieces, the first of which stands for the word.

As BERT tags words: Devlin et al. (2019), section 5.3, https://arxiv.org/abs/1810.04805.
"""

from collections.abc import Sequence

from regard.tasks.batches import Batch
from regard.text import BOS_ID, EOS_ID, UNK_ID, Tokenizer, normalize, words_of_spans
from regard.text.batches import lengths_of, padded
from regard.text.masking import NO_WORD
from regard.text.normalization import has_unspaced


def joined_words(words: Sequence[str]) -> str:
    """The words as running text: no space where one of two neighbours is of an unspaced script.

    Nor between single characters, which are no words.

    Example:
        >>> joined_words(["I", "love", "China", "."]), joined_words(["我", "爱", "中国"])
        ('I love China .', '我爱中国')
    """
    if all(len(word) == 1 for word in words):
        return "".join(words)
    text = words[0]
    for word in words[1:]:
        text += word if has_unspaced(text[-1] + word[0]) else f" {word}"
    return text


def pieces_of(words: Sequence[str], tokenizer: Tokenizer) -> list[list[int]]:
    """The ids of each word's pieces, at least one.

    The sentence is cut as running text is. Where a piece would be of two words, or a word of none,
    each word is cut by itself instead.

    Example:
        >>> from regard.text import TokenizerConfig, train_tokenizer
        >>> tokenizer = train_tokenizer(["a cat"], TokenizerConfig(type="characters"))
        >>> pieces_of(["a", "cat"], tokenizer)
        [[5], [4, 6, 5, 7]]
    """
    text = joined_words(words)
    if normalize(text) == text:
        spans, place = [], 0
        for word in words:
            place = text.index(word, place)
            spans.append((place, place := place + len(word)))
        found = _pieces_in(text, spans, tokenizer)
        if all(found):
            return found
    return [tokenizer.encode(word) or [UNK_ID] for word in words]


def piece_rows(sentences: Sequence[Sequence[Sequence[int]]], *, begins: bool) -> Batch:
    """Padded ``ids`` of pieces with their ``lengths``, and the ``places`` of each word's first one.

    A row ends with the end.

    Args:
        sentences: The ids of each word's pieces.
        begins: Whether a row has the begin first.
    """
    rows, places = [], []
    for words in sentences:
        row, firsts = [BOS_ID] * begins, []
        for ids in words:
            firsts.append(len(row))
            row += ids
        rows.append([*row, EOS_ID])
        places.append(firsts)
    return {"ids": padded(rows), "lengths": lengths_of(rows), "places": padded(places)}


def _pieces_in(
    text: str, spans: Sequence[tuple[int, int]], tokenizer: Tokenizer
) -> list[list[int]]:
    """The pieces that begin in each of these stretches of a text; a space goes to the word after.

    A stretch into which the piece before it reaches has none.
    """
    pieces = tokenizer.pieces(text)
    owners = words_of_spans([(piece.start, piece.end) for piece in pieces], spans)
    found: list[list[int]] = [[] for _ in spans]
    waiting: list[int] = []
    for piece, owner in zip(pieces, owners, strict=True):
        waiting.append(piece.id)
        if owner == NO_WORD:
            continue
        if piece.end > spans[owner][1]:
            return [[]]
        found[owner] += waiting
        waiting = []
    return found
