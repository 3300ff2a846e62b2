"""Windows of a running text: how it is cut into them, halved, and masked."""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int, Int64
from torch import Tensor

from regard.tasks.running_text.running_text import Stretch
from regard.text import BOS_ID, EOS_ID, mask_words
from regard.text.batches import padded
from regard.text.masking import NO_WORD, Masked

# Random tokens are drawn above the reserved ids.
FIRST_ID = 4
_Ids = Int[np.ndarray, "_"]


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """A window: begin, then each part and an end."""

    ids: Int64[np.ndarray, " n"]
    words: Int64[np.ndarray, " n"]  # the number of each id's word, from 0; −1 for none
    segments: Int64[np.ndarray, " n"]  # the number of each id's part
    follows: int | None = None  # whether the second of two parts follows the first
    blanks: bool = False


def windows_of(
    stretch: Stretch, *, length: int, halves: bool, generator: torch.Generator | None
) -> Iterator[Window]:
    """Windows of ``length`` tokens: one, shifted by the generator, or all without one."""
    if generator is None:
        firsts = range(0, stretch.length, length)
        generator = torch.Generator().manual_seed(len(stretch.ids))
    else:
        first = stretch.shifted(generator)
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
    """Padded windows with a fraction of words masked, without a generator always alike."""
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


def _halved(stretch: Stretch, part: slice, dice: torch.Generator) -> Window:
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
