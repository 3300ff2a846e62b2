"""Windows of a running text: how it is cut into them, halved, and masked."""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int, Int64
from torch import Tensor

from regard.tasks.streaming import Stored
from regard.text import BOS_ID, EOS_ID, mask_words
from regard.text.batches import padded
from regard.text.corpus import MappedArrays
from regard.text.masking import NO_WORD, Masked

# Random tokens are drawn above the reserved ids.
FIRST_ID = 4
_Ids = Int[np.ndarray, "_"]


@dataclass(frozen=True, slots=True, eq=False)
class MaskedStretch:
    """Ids to make a window of, or the windows of a passage, and the text that they are part of."""

    ids: Int[np.ndarray, " ids"]  # of the whole text
    words: Int64[np.ndarray, " ids"]  # the number of each id's word in it; −1 for a line's end
    first: int
    length: int
    blanks: bool = False  # whether it has blanks to fill in, and nothing else is masked


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """A window: begin, then each part and an end."""

    ids: Int64[np.ndarray, " n"]
    words: Int64[np.ndarray, " n"]  # the number of each id's word, from 0; −1 for none
    segments: Int64[np.ndarray, " n"]  # the number of each id's part
    follows: int | None = None  # whether the second of two parts follows the first
    blanks: bool = False


def cut_into_stretches(
    passages: Sequence[MaskedStretch], length: int | None
) -> list[MaskedStretch]:
    """A whole text in stretches, whatever the passages and lines in them; None makes one of it."""
    ids = np.concatenate([each.ids for each in passages])
    words = np.concatenate([each.words for each in passages])
    shift = np.cumsum([0, *(int(each.words.max(initial=-1)) + 1 for each in passages[:-1])])
    of_each = np.repeat(shift, [len(each.words) for each in passages])
    words = np.where(words == NO_WORD, NO_WORD, words + of_each)
    length = len(ids) if length is None else min(length, len(ids))
    firsts = range(0, len(ids) - length + 1, length)
    return [MaskedStretch(ids, words, first, length) for first in firsts]


class StoredStretches(Stored[MaskedStretch]):
    """Stretches of so many tokens of a text on disk, the arrays ``text`` and ``words``."""

    def __init__(self, arrays: MappedArrays, length: int) -> None:
        super().__init__(arrays)
        self._text, self._words = arrays["text"].ids, arrays["words"].ids
        self._length = min(length, len(self._text))

    def __len__(self) -> int:
        return len(self._text) // self._length

    def sample(self, index: int) -> MaskedStretch:
        """A stretch."""
        return MaskedStretch(self._text, self._words, index * self._length, self._length)

    def lengths_at(self, indices: Int64[np.ndarray, " n"]) -> Int64[np.ndarray, "2 n"]:
        """Tokens of each."""
        return np.full((2, len(indices)), self._length)


def windows_of(
    stretch: MaskedStretch,
    *,
    length: int,
    halves: bool,
    generator: torch.Generator | None,
) -> Iterator[Window]:
    """The windows of a stretch, with ``length`` tokens of the text each.

    The generator shifts the one window of a stretch that is learned from; None reads all of a
    passage, always alike. ``halves`` splits each in two for next-sentence prediction.
    """
    if generator is None:
        firsts = range(0, stretch.length, length)
        generator = torch.Generator().manual_seed(len(stretch.ids))
    else:
        shift = int(torch.randint(stretch.length, (), generator=generator))
        first = min(len(stretch.ids) - stretch.length, stretch.first + shift)
        firsts = range(first, first + 1)
    for first in firsts:
        part = slice(first, first + min(length, stretch.length))
        if halves and not stretch.blanks:
            yield _halved(stretch, part, generator)
        else:
            whole = (stretch.ids[part], stretch.words[part])
            yield _window([whole], blanks=stretch.blanks)


def mask_windows(
    windows: Sequence[Window], *, mask_id: int, rate: float, generator: torch.Generator | None
) -> Masked:
    """Padded windows, a fraction of whose words the generator masks; None masks each always alike.

    Ids below ``mask_id`` are tokens.
    """
    ids = padded([window.ids for window in windows])
    words = padded([window.words for window in windows], NO_WORD)

    def mask(ids: Int[Tensor, "B N"], words: Int[Tensor, "B N"], dice: torch.Generator) -> Masked:
        first_id = min(FIRST_ID, mask_id - 1)
        sizes = {"mask_id": mask_id, "vocab_size": mask_id, "first_id": first_id}
        return mask_words(ids, words, generator=dice, rate=rate, **sizes)

    if generator is not None:
        return mask(ids, words, generator)
    chosen = ids == mask_id
    for row, window in enumerate(windows):
        if not window.blanks:
            dice = torch.Generator().manual_seed(zlib.crc32(window.ids.tobytes()))
            cut = slice(row, row + 1), slice(len(window.ids))
            masked = mask(ids[cut], words[cut], dice)
            ids[cut], chosen[cut] = masked.ids, masked.chosen
    return Masked(ids, chosen)


def _halved(stretch: MaskedStretch, part: slice, dice: torch.Generator) -> Window:
    """Two halves of a window, cut at the line end nearest its middle; the second may be another."""
    ids = stretch.ids[part]
    ends = np.flatnonzero(ids[:-1] == EOS_ID) + 1
    middle = len(ids) // 2
    cut = int(ends[np.abs(ends - middle).argmin()]) if len(ends) else middle
    begin, length = part.start + cut, len(ids) - cut
    follows = bool(torch.rand((), generator=dice) < 0.5)
    if not follows:
        begin = int(torch.randint(max(1, len(stretch.ids) - length), (), generator=dice))
    halves = (slice(part.start, part.start + cut), slice(begin, begin + length))
    return _window(
        [(stretch.ids[half], stretch.words[half]) for half in halves], follows=int(follows)
    )


def _window(
    parts: Sequence[tuple[_Ids, _Ids]], *, follows: int | None = None, blanks: bool = False
) -> Window:
    """Begin, then each part and an end; of each part, ids and the numbers of their words."""
    ids, words, segments = [np.array([BOS_ID])], [np.array([NO_WORD])], [np.array([0])]
    done = 0
    for number, (part, numbers) in enumerate(parts):
        real = numbers != NO_WORD
        lowest = int(numbers[real].min()) if real.any() else 0
        renumbered = np.where(real, numbers - lowest + done, NO_WORD)
        done = max(done, int(renumbered.max(initial=-1)) + 1)
        has_end = len(part) > 0 and part[-1] == EOS_ID
        ids += [part, np.array([EOS_ID] * (not has_end), dtype=np.int64)]
        words += [renumbered, np.array([NO_WORD] * (not has_end), dtype=np.int64)]
        segments.append(np.full(len(part) + (not has_end), number))
    return Window(
        np.concatenate(ids), np.concatenate(words), np.concatenate(segments), follows, blanks
    )
