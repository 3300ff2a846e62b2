"""Tokens as they are chosen, for whoever does not want to wait for the whole answer."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Unpack

import torch

from regard.decoding.greedy import Choose, likeliest, written
from regard.decoding.hypothesis import check_numbers
from regard.decoding.options import BoundOptions, SearchOptions
from regard.decoding.sampling import Draw, bind_seeds
from regard.decoding.step import StateT, Step


@dataclass(frozen=True, slots=True)
class StreamedToken:
    """One token of an answer.

    Attributes:
        sentence: Which sentence of the batch it answers.
        token: Its id; that of the end, too.
        log_prob: Its log-probability.
        is_last: Whether nothing follows: it is the end, or the answer is as long as it may be.

    Example:
        >>> class Nothing:
        ...     def select(self, rows):
        ...         return self
        >>> always = torch.tensor([0.0, 0.0, 1.0]).log()
        >>> tokens = stream(lambda token, state: (always.expand(len(token), 3), state), Nothing(),
        ...     batch_size=2, bos_id=1, eos_id=0, max_lengths=torch.tensor([1, 2]))
        >>> [(one.sentence, one.token, one.is_last) for one in tokens]
        [(0, 2, True), (1, 2, False), (1, 2, True)]
    """

    sentence: int
    token: int
    log_prob: float
    is_last: bool


def stream(
    step: Step[StateT], state: StateT, *, draw: Draw | None = None, **options: Unpack[SearchOptions]
) -> Iterator[StreamedToken]:
    """Every token of the answers of `greedy`, or of `sample`, as soon as it is chosen.

    The model goes on when the next token is asked for: nobody who stops asking pays for the rest.
    Settings are checked at once.

    Args:
        step: The model: last token and state in, log-probabilities and the next state out.
        state: The state before the first token, one row per sentence.
        draw: How to draw, one sample a sentence. None takes the likeliest token.
        options: See `SearchOptions`.

    Returns:
        The tokens, position by position, those of one position in the order of the sentences.

    Raises:
        ShapeError: There is not one seed per sentence.

    Example:
        >>> class Nothing:
        ...     def select(self, rows):
        ...         return self
        >>> next_token = torch.tensor([1, 2, 3, 0])
        >>> def count(token, state):
        ...     return torch.eye(4)[next_token[token]].log(), state
        >>> tokens = stream(count, Nothing(), batch_size=1, bos_id=1, eos_id=0, max_lengths=9)
        >>> next(tokens)
        StreamedToken(sentence=0, token=2, log_prob=0.0, is_last=False)
        >>> [(one.token, one.is_last) for one in tokens]
        [(3, False), (0, True)]
    """
    bound = BoundOptions(**options)
    bound.check(step, state)
    if draw is not None:
        draw = replace(draw, seeds=bind_seeds(draw.seeds, bound.batch_size, bound.limits.device))
    choose: Choose = likeliest if draw is None else draw
    if not bound.batch_size:
        return iter(())

    def chosen() -> Iterator[StreamedToken]:
        while True:
            with torch.no_grad():  # but not while whoever asks has the token
                choice = next(choices, None)
            if choice is None:
                return
            check_numbers(choice.log_prob)
            columns = (choice.answers, choice.token, choice.log_prob, ~choice.goes_on)
            lists = (column[choice.is_open].tolist() for column in columns)
            yield from (StreamedToken(*one) for one in zip(*lists, strict=True))

    bound.rulebook()  # rules that contradict are refused at once
    choices = written(step, state, bound, choose)
    return chosen()
