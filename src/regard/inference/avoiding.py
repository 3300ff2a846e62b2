"""Words that an answer may not hold, however the model cuts them into tokens."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.decoding import Written
from regard.text import UNK_ID, Tokenizer, normalize
from regard.text.normalization import opens_with_word


class AvoidWords:
    """Hides every token that would complete one of some words in the text that is written.

    `regard.decoding.Avoid` hides one way of writing a word in tokens. A model then finds another:
    "lo" and "ve", or 爱中国 as one token where 中国 is not wanted. This rule reads the text. A word
    of a script with spaces counts where it stands by itself: *art* is not in *party*. What only
    begins with it is lost too where the model would write that in several tokens, since nobody
    knows how it goes on. Characters spelled in bytes are not read.
    """

    def __init__(self, tokenizer: Tokenizer, words: Sequence[str]) -> None:
        self._tokenizer = tokenizer
        # One space at the front of a text is not written: a token before shows what a token adds.
        surfaces = [
            tokenizer.decode([UNK_ID, i])[len(tokenizer.decode([UNK_ID])) :]
            for i in range(tokenizer.vocab_size)
        ]
        self._words = [_Word(normalize(word), surfaces) for word in words]

    def __call__(self, log_probs: Float[Tensor, "R V"], written: Written) -> Float[Tensor, "R V"]:
        """The log-probabilities to choose by."""
        hidden = torch.zeros_like(log_probs, dtype=torch.bool)
        for row, tokens in enumerate(written.tokens.tolist()):
            text = self._tokenizer.decode(tokens)
            for word in self._words:
                hidden[row] |= word.completed_after(text).to(log_probs.device)
        return log_probs.masked_fill(hidden, -torch.inf)

    def first_in(self, text: str) -> str | None:
        """A word that ``text`` holds all the same; None if there is none."""
        text = normalize(text)
        return next((word.word for word in self._words if word.is_in(text)), None)


class _Word:
    """Tokens that complete a forbidden word, by the part of it before them."""

    def __init__(self, word: str, surfaces: Sequence[str]) -> None:
        self.word = word
        self.is_apart = opens_with_word(word)  # such words have an end and a beginning
        self._inside = torch.tensor([self.is_in(surface, 1) for surface in surfaces])
        self._rest = [
            torch.tensor([self._begins_with(surface, word[known:]) for surface in surfaces])
            for known in range(len(word))
        ]

    def completed_after(self, text: str) -> Bool[Tensor, " V"]:
        """The tokens after which ``text`` holds the word."""
        found = self._inside
        for known, rest in enumerate(self._rest):
            place = len(text) - known
            if place >= 0 and text.endswith(self.word[:known]) and self._may_begin(text[:place]):
                found = found | rest
        return found

    def is_in(self, text: str, first: int = 0) -> bool:
        """Whether ``text`` holds the word, from its ``first`` place on."""
        return any(
            self._begins_with(text[place:], self.word) and self._may_begin(text[:place])
            for place in range(first, len(text))
        )

    def _begins_with(self, surface: str, rest: str) -> bool:
        after = surface[len(rest) : len(rest) + 1]
        return surface.startswith(rest) and not (self.is_apart and after.isalnum())

    def _may_begin(self, before: str) -> bool:
        return not (self.is_apart and before[-1:].isalnum())
