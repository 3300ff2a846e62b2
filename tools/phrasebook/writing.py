"""The file of the phrasebook, as ``regard.text.phrasebook`` reads it."""

import lzma
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from regard.text.phrasebook import Link, Phrase, Span, Split

# With a window over the whole text, and a SHA-256 of it at the end; nothing of the machine.
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6 | lzma.PRESET_EXTREME}]


def contents(splits: Mapping[Split, Iterable[Phrase]]) -> bytes:
    """The lines of all splits, one a pair."""
    return "".join(f"{line}\n" for line in _lines(splits)).encode()


def compressed(text: bytes) -> bytes:
    """``text`` as an xz file that carries its SHA-256."""
    return lzma.compress(text, check=lzma.CHECK_SHA256, filters=_FILTERS)


def _lines(splits: Mapping[Split, Iterable[Phrase]]) -> Iterator[str]:
    for split, phrases in splits.items():
        for phrase in phrases:
            yield "\t".join(
                (
                    split,
                    _marked(phrase.source, phrase.source_words),
                    _marked(phrase.target, phrase.target_words),
                    _pharaoh(phrase.sure),
                    _pharaoh(phrase.possible - phrase.sure),
                    " ".join(phrase.constructions),
                )
            )


def _marked(text: str, spans: tuple[Span, ...]) -> str:
    """A sentence with a bar between words that touch."""
    ends = [end for (_, end), (start, _) in pairwise(spans) if end == start]
    parts = [text[start:end] for start, end in pairwise((0, *ends, len(text)))]
    return "|".join(parts)


def _pharaoh(links: Iterable[Link]) -> str:
    """Links as ``0-0 1-2``, the format of the aligner Pharaoh and of those after it."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))
