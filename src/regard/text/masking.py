"""Masking of words for masked language modelling, and where the words of a text are.

Devlin et al. (2019), https://arxiv.org/abs/1810.04805, section 3.1: of all tokens 15 % are to be
guessed; 80 % of those read as the mask, 10 % as a random token, 10 % as themselves. Whole words,
which all or none of whose pieces are masked, came later with the authors' own code; whole Chinese
words with Cui et al. (2019), https://arxiv.org/abs/1906.08101.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.checks import check_at_least, check_count, check_fraction, check_kind, check_positive
from regard.errors import SettingError, ShapeError
from regard.text.files import TABLE_FILE
from regard.text.normalization import unspaced_runs, word_spans
from regard.text.tokenizers.pieces import Span, Tokenizer
from regard.text.tokenizers.sentencepieces import train_sentencepiece
from regard.text.tokenizers.tokenizer import load_tokenizer

# The word number of tokens without text, such as separators, which are never masked.
NO_WORD = -1


@dataclass(frozen=True, slots=True)
class Masked:
    """A batch with words masked.

    Attributes:
        ids: Input ids of the model.
        chosen: Positions that it is to predict; their ids before are the answers.
    """

    ids: Int[Tensor, "B N"]
    chosen: Bool[Tensor, "B N"]


def mask_words(
    ids: Int[Tensor, "B N"],
    words: Int[Tensor, "B N"],
    *,
    mask_id: int,
    vocab_size: int,
    generator: torch.Generator,
    rate: float = 0.15,
    kept: float = 0.1,
    swapped: float = 0.1,
    first_id: int = 0,
) -> Masked:
    """Mask whole words, each with the same chance.

    Args:
        ids: The tokens.
        words: The number of the word that each token belongs to, from 0 in every row; −1 for
            padding and other tokens that are never masked. ``arange`` masks single tokens; pieces
            of one word, or characters of one Chinese word, share a number.
        mask_id: The token that says a word is masked.
        vocab_size: Random tokens are below it, V.
        generator: Where chance is drawn.
        rate: The share of words to guess. A row with any word at all has at least one.
        kept: The share of guessed tokens that stay as they are.
        swapped: The share of guessed tokens that become a random one.
        first_id: Random tokens are from here on; reserved ids stand below.

    Raises:
        SettingError: A share is not one.
        ShapeError: ``ids`` and ``words`` differ in shape.

    Example:
        >>> ids, words = torch.tensor([[7, 8, 9, 3]]), torch.tensor([[0, 0, 0, -1]])
        >>> masked = mask_words(ids, words, mask_id=4, vocab_size=10, rate=0.9, kept=0, swapped=0,
        ...     generator=torch.Generator().manual_seed(0))
        >>> masked.ids
        tensor([[4, 4, 4, 3]])
    """
    for name, value in (("ids", ids), ("words", words)):
        check_kind(name, value, Tensor)
    check_kind("generator", generator, torch.Generator)
    check_positive("rate", rate)
    check_fraction("rate", rate)
    check_at_least("kept", kept, 0)
    check_at_least("swapped", swapped, 0)
    check_fraction("kept + swapped", kept + swapped)
    check_count("vocab_size", vocab_size, first_id + 1)
    if words.shape != ids.shape:
        raise ShapeError(
            f"words must have the shape of ids, {tuple(ids.shape)}; got {tuple(words.shape)}."
        )
    chosen = _choose(words, rate, generator)
    fate = torch.rand(ids.shape, generator=generator)
    random_ids = torch.randint(first_id, vocab_size, ids.shape, generator=generator)
    replaced = torch.where(
        fate < kept, ids, torch.where(fate < kept + swapped, random_ids, mask_id)
    )
    return Masked(torch.where(chosen, replaced, ids), chosen)


def words_of_spans(
    pieces: Sequence[tuple[int, int]], words: Sequence[tuple[int, int]]
) -> list[int]:
    """The number of the word that each piece begins in, from positions in the text; −1 for none."""
    numbers, word = [], 0
    for start, _ in pieces:
        while word < len(words) and words[word][1] <= start:
            word += 1
        is_inside = word < len(words) and words[word][0] <= start
        numbers.append(word if is_inside else NO_WORD)
    return numbers


def _choose(words: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    """Indices of the words of each row with the smallest random numbers."""
    if not words.numel():
        return torch.zeros_like(words, dtype=torch.bool)
    is_text = words != NO_WORD
    at_most = max(1, int(words.max()) + 1)
    numbers = words.clamp(min=0)
    there = torch.zeros(len(words), at_most, dtype=torch.int64)
    there = there.scatter_add(1, numbers, is_text.long()) > 0
    draws = torch.rand(there.shape, generator=generator).masked_fill(~there, 2.0)
    count = there.sum(1)
    # Rounded up or down by chance, so that short rows are not masked more or less than long ones.
    counts = count * rate + torch.rand(len(words), generator=generator)
    counts = torch.minimum(counts.long().clamp(min=1), count)
    is_chosen = draws.argsort(1).argsort(1) < counts[:, None]
    return is_chosen.gather(1, numbers) & is_text


# Runs of unspaced characters below which there is nothing to learn words from, and above which
# more of them only take time.
_FEWEST_RUNS, _MOST_RUNS = 100, 20_000


class WholeWords:
    """Spans of words; in unspaced scripts, by a unigram model (Kudo, 2018) of the text."""

    def __init__(self, segmenter: Tokenizer | None) -> None:
        self._segmenter = segmenter

    @classmethod
    def learn(cls, lines: Iterable[str]) -> "WholeWords":
        """The words of these normalised lines."""
        runs = [line[start:end] for line in lines for start, end in unspaced_runs(line)]
        if len(runs) < _FEWEST_RUNS:
            return cls(None)
        few = runs[:: 1 + len(runs) // _MOST_RUNS]
        try:
            return cls(train_sentencepiece(few, kind="unigram", vocab_size=None))
        except SettingError:  # hardly any text, in which nothing is repeated
            return cls(None)

    @classmethod
    def load(cls, folder: Path) -> "WholeWords":
        """Load the files of ``save``; no file means no segmenter."""
        return cls(load_tokenizer(folder) if (folder / TABLE_FILE).exists() else None)

    def save(self, folder: Path) -> None:
        """Write the segmenter, if there is one."""
        if self._segmenter is not None:
            folder.mkdir(parents=True, exist_ok=True)
            self._segmenter.save(folder)

    def spans(self, text: str) -> list[Span]:
        """Start and end of every word of a normalised text, without the spaces."""
        if self._segmenter is None:
            return word_spans(text)
        spans: list[Span] = []
        position = 0
        for start, end in unspaced_runs(text):
            spans += word_spans(text[position:start], position)
            # A rare character is several pieces, one a byte, all at its position.
            pieces = dict.fromkeys(
                (p.start, p.end) for p in self._segmenter.pieces(text[start:end])
            )
            spans += [(start + first, start + last) for first, last in pieces if last > first]
            position = end
        return [*spans, *word_spans(text[position:], position)]
