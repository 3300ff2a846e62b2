"""A beam whose answers must hold given words."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.decoding.ranking import Beams, RankedBeams, Ranking, best, take
from regard.decoding.rules import Rulebook
from regard.errors import SettingError

_NO_TOKEN, _NOT_YET = -1, -2  # past a phrase's end, and before an answer's first token


class Required(Ranking):
    """Phrases that every finished answer holds: dynamic beam allocation.

    Post & Vilar (2018), https://aclanthology.org/N18-1119: beginnings are in banks by how many
    tokens of the phrases they hold, and every bank has its share of the beam. Here the banks take
    turns, the one with most tokens first, each giving its likeliest; a bank that runs out leaves
    its turns to the others. A phrase that is broken off has to begin anew, and one token may serve
    two phrases that overlap. An answer may not end before it holds all.

    The beginning that holds most goes on at every step by a token that is wanted. So an answer that
    holds everything is found within the limit, unless the model or a rule makes it impossible: then
    the answer is unfinished, and lacks something.

    Args:
        phrases: For each sentence, its phrases: token ids, in any order. A beam has use for more
            than as many beginnings as they have tokens.

    Raises:
        SettingError: A phrase is empty.

    Example:
        >>> from regard.decoding import beam
        >>> class Nothing:
        ...     def select(self, rows):
        ...         return self
        >>> table = torch.tensor([[1.0, 0, 0], [0.5, 0.4, 0.1], [0.7, 0.2, 0.1]]).log()
        >>> answers = beam(lambda token, state: (table[token], state), Nothing(), batch_size=1,
        ...     bos_id=2, eos_id=0, max_lengths=9, ranking=Required([[[1, 2]]]))
        >>> answers[0][0].tokens
        (1, 2)
    """

    def __init__(self, phrases: Sequence[Sequence[Sequence[int]]]) -> None:
        self.phrases = [list(dict.fromkeys(map(tuple, group))) for group in phrases]
        if any(() in group for group in self.phrases):
            raise SettingError("phrases must hold a token each; got an empty one.")
        most = max(map(len, self.phrases), default=0)
        longest = max((len(phrase) for group in self.phrases for phrase in group), default=0)
        padded = [
            [_padded(phrase, longest) for phrase in (*group, *[()] * (most - len(group)))]
            for group in self.phrases
        ]
        tokens = [sorted({t for phrase in group for t in phrase}) for group in self.phrases]
        widest = max(map(len, tokens), default=0)
        self._table = torch.tensor(padded, dtype=torch.long).view(len(padded), most, longest)
        self._tokens = torch.tensor([_padded(t, widest) for t in tokens], dtype=torch.long)

    def check(self, limits: Int[Tensor, " B"], beam_size: int, eos_id: int) -> None:
        """Raise unless there are phrases for every sentence, and room for them."""
        if len(self.phrases) != len(limits):
            raise SettingError(
                f"phrases must be a list per sentence: {len(limits)}; got {len(self.phrases)}. "
                "An empty list requires nothing."
            )
        for sentence, (words, limit) in enumerate(zip(self.phrases, limits.tolist(), strict=True)):
            size = sum(map(len, words))
            if words and size + 1 > limit:
                raise SettingError(
                    f"phrases and the end must fit into max_lengths; got {size} + 1 tokens for "
                    f"sentence {sentence}, whose answer may have {limit}."
                )
            if any(eos_id in phrase for phrase in words):
                raise SettingError(
                    f"phrases must not hold eos_id; got {eos_id} for sentence {sentence}. "
                    "Nothing could follow it."
                )

    def check_rules(self, rulebook: Rulebook, like: Float[Tensor, "R V"]) -> None:
        """Raise if a rule hides a token of a phrase."""
        texts = [(sentence, p) for sentence, words in enumerate(self.phrases) for p in words]
        rulebook.check_allows("phrases", texts, like)

    def rank(
        self,
        beams: Beams,
        log_probs: Float[Tensor, "R V"],
        *,
        beam_size: int,
        eos_id: int,
        limits: Int[Tensor, " B"],
    ) -> RankedBeams:
        """The extensions that the banks take in turn."""
        A, width = beams.log_probs.shape
        device = log_probs.device
        phrases = self._table.to(device)[beams.sentences]
        held = holds(beams.tokens, phrases)  # (A, W, P)
        may_end = held.all(dim=2).view(-1, 1)
        is_end = torch.arange(log_probs.shape[1], device=device) == eos_id
        log_probs = log_probs.masked_fill(is_end & ~may_end, -torch.inf)
        # The likeliest tokens of every beginning, and all that are wanted.
        values, likely = best(log_probs, min(beam_size + 1, log_probs.shape[1]))
        required = self._tokens.to(device)[beams.sentences].repeat_interleave(width, dim=0)
        known = (required[:, :, None] == likely[:, None]).any(dim=2) | (required == _NO_TOKEN)
        required = required.clamp_min(0)
        more = log_probs.gather(1, required).masked_fill(known, -torch.inf)
        tokens = torch.cat([likely, required], dim=1).view(A, width, -1)
        totals = torch.cat([values, more], dim=1).double().view(tokens.shape)
        totals = totals + beams.log_probs[:, :, None]
        progress, complete = _progress(beams.tokens, tokens, phrases, held)
        # What is cut at the longest length is an answer, too.
        last = limits[beams.sentences] == beams.tokens.shape[2] + 1
        whole = (complete & (totals != -torch.inf)).flatten(1).any(dim=1)
        totals = totals.masked_fill((last & whole)[:, None, None] & ~complete, -torch.inf)
        return take(
            totals, tokens, lambda flat: _in_turns(flat, progress.flatten(1)), beam_size, eos_id
        )


def holds(tokens: Int[Tensor, "A W T"], phrases: Int[Tensor, "A P L"]) -> Bool[Tensor, "A W P"]:
    """Return which phrases each prefix contains; −1 pads a phrase."""
    L = phrases.shape[2]
    if not L or not tokens.shape[2]:
        return (phrases == _NO_TOKEN).all(dim=2)[:, None].expand(-1, tokens.shape[1], -1)
    spans = F.pad(tokens, (0, L - 1), value=_NOT_YET).unfold(2, L, 1)  # (A, W, T, L)
    same = spans[:, :, :, None] == phrases[:, None, None]
    return (same | (phrases == _NO_TOKEN)[:, None, None]).all(dim=4).any(dim=2)


def _progress(
    before: Int[Tensor, "A W T"],
    tokens: Int[Tensor, "A W N"],
    phrases: Int[Tensor, "A P L"],
    held: Bool[Tensor, "A W P"],
) -> tuple[Int[Tensor, "A W N"], Bool[Tensor, "A W N"]]:
    """The tokens of phrases that each candidate holds, and whether it holds all phrases."""
    lengths = (phrases != _NO_TOKEN).sum(dim=2)[:, None, None]  # (A, 1, 1, P)
    L, N = phrases.shape[2], tokens.shape[2]
    recent = F.pad(before, (L, 0), value=_NOT_YET)[:, :, before.shape[2] + 1 :]
    recent = torch.cat([recent[:, :, None].expand(-1, -1, N, -1), tokens[..., None]], dim=3)
    started = torch.zeros_like(tokens)[..., None].expand(-1, -1, -1, phrases.shape[1]).clone()
    for size in range(1, L + 1):
        ending = recent[:, :, :, None, L - size :]
        same = (ending == phrases[:, None, None, :, :size]).all(dim=4)
        started[same & (lengths >= size)] = size
    complete = held[:, :, None] | (started == lengths)
    whole = (lengths * complete).sum(dim=3)
    furthest = F.pad(started.masked_fill(complete, 0), (0, 1)).amax(dim=3)
    return whole + furthest, complete.all(dim=3)


def _in_turns(totals: Float[Tensor, "A J"], progress: Int[Tensor, "A N"]) -> Int[Tensor, "A J"]:
    """Candidates in the order in which banks take turns, each giving its likeliest first."""
    missing = totals.shape[1] - progress.shape[1]
    banks = F.pad(progress, (0, missing))
    ordered, order = totals.sort(dim=1, descending=True, stable=True)
    banks = banks.gather(1, order)
    turns = F.one_hot(banks).cumsum(dim=1).gather(2, banks[:, :, None])[:, :, 0]
    # By turn, then from the bank with most down; what is impossible comes last.
    key = (turns * (banks.max() + 1) - banks).masked_fill(
        ordered == -torch.inf, torch.iinfo(torch.long).max
    )
    return order.gather(1, key.sort(dim=1, stable=True).indices)


def _padded(tokens: Sequence[int], size: int) -> list[int]:
    return [*tokens, *[_NO_TOKEN] * (size - len(tokens))]
