"""Where the words of a text are, Chinese ones too, so that they can be masked whole."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from regard.errors import SettingError
from regard.text.files import TABLE_FILE
from regard.text.normalization import split_words, unspaced_runs
from regard.text.pieces import Span
from regard.text.sentencepieces import train_sentencepiece
from regard.text.tokenizer import Tokenizer, load_tokenizer

# Runs of unspaced characters below which there is nothing to learn words from, and above which
# more of them only take time.
_FEWEST_RUNS, _MOST_RUNS = 100, 20_000


class WholeWords:
    """The places of words: between spaces and marks; of Chinese, by what its text repeats.

    Scripts without spaces are cut by a unigram model (Kudo, 2018, https://arxiv.org/abs/1804.10959)
    learned from the text's own runs of such characters: no list of words is needed.

    Args:
        segmenter: Cuts runs of unspaced characters; None leaves every one a word by itself.

    Example:
        >>> WholeWords(None).spans("I don't know, 中国")
        [(0, 1), (2, 7), (8, 12), (12, 13), (14, 15), (15, 16)]
    """

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
            return list(_words(text, 0))
        found: list[Span] = []
        place = 0
        for start, end in unspaced_runs(text):
            found += _words(text[place:start], place)
            # A rare character is several pieces, one a byte, all at its place.
            places = dict.fromkeys(
                (p.start, p.end) for p in self._segmenter.pieces(text[start:end])
            )
            found += [(start + first, start + last) for first, last in places if last > first]
            place = end
        return [*found, *_words(text[place:], place)]


def _words(text: str, place: int) -> Iterator[Span]:
    """The words of a text that begins at ``place`` of another."""
    for word in split_words(text):
        start, place = place + len(word) - len(word.lstrip(" ")), place + len(word)
        if start < place:
            yield start, place
