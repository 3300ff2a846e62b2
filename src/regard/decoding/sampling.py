"""Answers drawn from the model, and the ways to draw from its likelier tokens only."""

from dataclasses import dataclass
from typing import Unpack

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.bounds import bounded
from regard.decoding.greedy import write_all
from regard.decoding.hypothesis import Hypothesis, check_numbers
from regard.decoding.options import BoundOptions, SearchOptions
from regard.decoding.step import StateT, Step, bind
from regard.errors import ShapeError
from regard.kernels import why_not
from regard.kernels.threads import share_out
from regard.layers.inputs import valid_rows, whole

Seeds = int | Int[Tensor, " B"]


@torch.no_grad()
def sample(
    step: Step[StateT],
    state: StateT,
    *,
    num_samples: int = 1,
    temperature: int | float = 1.0,
    top_k: int | None = None,
    top_p: int | float = 1.0,
    seeds: Seeds = 0,
    **options: Unpack[SearchOptions],
) -> list[list[Hypothesis]]:
    """Answers drawn token by token from the model's distribution, for every sentence of a batch.

    The random numbers are a function of a sentence's seed, of which of its samples it is, and of
    the position in it: the same in any batch, on any device, however many samples are asked for.
    Sentences with the same seed share them, so that the same sentence twice has the same samples.

    Args:
        step: The model: last token and state in, log-probabilities and the next state out.
        state: The state before the first token, one row per sentence.
        num_samples: Answers drawn for each sentence; some may be equal.
        temperature: Divisor of log-probabilities: below 1 likely tokens become likelier.
        top_k: Draw from this many likeliest tokens only; None from all.
        top_p: Draw from the fewest likeliest tokens that together have this probability.
        seeds: One number, or one per sentence, as ``torch.randint(2**62, (B,), generator=...)``
            makes them.
        options: See `SearchOptions`; rules are applied before the temperature, and the length
            penalty does not change the answer.

    Returns:
        For each sentence its samples, in the order drawn. Their log-probability is the model's
        (as the rules leave it), whatever the temperature, ``top_k`` and ``top_p``.

    Raises:
        SettingError: A setting is out of range.
        ShapeError: There is not one seed per sentence.

    Example:
        A fair coin (1 or 2) that is tossed three times:

        >>> class Nothing:
        ...     def select(self, rows):
        ...         return self
        >>> fair = torch.tensor([0.0, 0.5, 0.5]).log()
        >>> tosses = sample(lambda token, state: (fair.expand(len(token), -1), state), Nothing(),
        ...     batch_size=1, bos_id=1, eos_id=0, max_lengths=3, num_samples=4, seeds=3)[0]
        >>> [toss.tokens for toss in tosses]
        [(1, 1, 2), (2, 2, 1), (2, 1, 2), (2, 2, 2)]
    """
    num_samples = bounded("num_samples", num_samples)
    bound = BoundOptions(**options)
    bound.check(step, state)
    draw = Draw(
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seeds=bind_seeds(seeds, bound.batch_size, bound.limits.device),
        copies=num_samples,
    )
    if not bound.batch_size:
        return []
    drawn = write_all(step, state, bound, draw, copies=num_samples)
    return [drawn[first : first + num_samples] for first in range(0, len(drawn), num_samples)]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Draw:
    """Chooses a token at random: ``copies`` samples of each sentence, by the settings of `sample`.

    Raises:
        SettingError: A number is out of its range.

    Example:
        >>> log_probs = torch.tensor([[0.1, 0.2, 0.7], [0.1, 0.2, 0.7]]).log()
        >>> draw = Draw(seeds=torch.tensor([3, 4]), top_k=2)  # never the first token
        >>> [draw(log_probs, torch.tensor([0, 1]), position)[1].tolist() for position in range(4)]
        [[2, 2], [1, 1], [2, 2], [1, 2]]
    """

    seeds: Int[Tensor, " B"]
    temperature: int | float = 1.0
    top_k: int | None = None
    top_p: int | float = 1.0
    copies: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "seeds", whole("seeds", self.seeds))
        object.__setattr__(self, "temperature", bounded("temperature", self.temperature))
        object.__setattr__(self, "top_p", bounded("top_p", self.top_p))
        object.__setattr__(self, "copies", bounded("num_samples", self.copies))
        if self.top_k is not None:
            object.__setattr__(self, "top_k", bounded("top_k", self.top_k))

    def __call__(
        self, log_probs: Float[Tensor, "R V"], answers: Int[Tensor, " R"], position: int
    ) -> tuple[Float[Tensor, " R"], Int[Tensor, " R"]]:
        """The log-probability of the token drawn, and the token."""
        answers = valid_rows(answers, len(self.seeds) * self.copies)
        if log_probs.dim() != 2 or len(log_probs) != len(answers):
            raise ShapeError(
                f"log_probs must have a row for each answer, ({len(answers)}, V); "
                f"got {tuple(log_probs.shape)}."
            )
        seeds = self.seeds[answers // self.copies]
        shares = uniform(seeds, answers % self.copies, position)
        draw = self._drawn_by_loops if _is_for_loops(log_probs) else self._drawn
        token = draw(log_probs, shares)
        return log_probs.gather(1, token[:, None])[:, 0], token

    def _drawn(
        self, log_probs: Float[Tensor, "R V"], shares: Float[Tensor, " R"]
    ) -> Int[Tensor, " R"]:
        """The token of each row that lies at its share of the probability that may be drawn."""
        check_numbers(log_probs)
        drawn_from = log_probs / self.temperature
        if self.top_k is not None:
            drawn_from = most_likely(drawn_from, self.top_k)
        if self.top_p < 1:
            drawn_from = nucleus(drawn_from, self.top_p)
        return at_quantile(drawn_from, shares)

    def _drawn_by_loops(
        self, log_probs: Float[Tensor, "R V"], shares: Float[Tensor, " R"]
    ) -> Int[Tensor, " R"]:
        """Draws the same token without sorting the vocabulary."""
        # Imported here, since kernels cannot be compiled everywhere.
        from regard.kernels.search import draw_tokens

        rows, vocabulary = log_probs.shape
        most = vocabulary if self.top_k is None else min(self.top_k, vocabulary)
        tokens = np.empty(rows, np.int64)
        arguments = (
            *(log_probs.contiguous().numpy(), np.float32(self.temperature)),
            *(most, float(self.top_p), shares.numpy(), tokens),
        )
        share_out(min(rows, torch.get_num_threads()), rows, draw_tokens, *arguments)
        if (tokens < 0).any():
            check_numbers(log_probs)
        return torch.from_numpy(tokens)


def _is_for_loops(log_probs: Float[Tensor, "R V"]) -> bool:
    """Whether compiled loops can draw from these."""
    is_plain = log_probs.device.type == "cpu" and log_probs.dtype == torch.float32
    return is_plain and not log_probs.requires_grad and why_not() is None


def most_likely(log_probs: Float[Tensor, "R V"], count: int) -> Float[Tensor, "R V"]:
    """Hide (−inf) all but the likeliest tokens, and those as likely as the last of them."""
    # Fan et al. (2018), https://arxiv.org/abs/1805.04833, section 5.4.
    least = log_probs.topk(min(count, log_probs.shape[1]), dim=1).values[:, -1:]
    return log_probs.masked_fill(log_probs < least, -torch.inf)


def nucleus(log_probs: Float[Tensor, "R V"], share: int | float) -> Float[Tensor, "R V"]:
    """Hide (−inf) all but the fewest likeliest tokens with this share of the probability."""
    # Holtzman et al. (2020), https://arxiv.org/abs/1904.09751, section 3.1; of equally likely
    # tokens those with the lowest ids.
    ordered, tokens = log_probs.sort(dim=1, descending=True, stable=True)
    probs = ordered.double().softmax(dim=1)
    likelier = probs.cumsum(dim=1) - probs  # the probability of all before
    beyond = likelier >= share
    # Back in the order of the vocabulary.
    return log_probs.masked_fill(beyond.scatter(1, tokens, beyond), -torch.inf)


def at_quantile(log_probs: Float[Tensor, "R V"], share: Float[Tensor, " R"]) -> Int[Tensor, " R"]:
    """The token at which the probabilities, added up from the first token on, pass ``share``."""
    # A row in which nothing is possible is NaN here, and its token is not counted.
    sums = log_probs.double().softmax(dim=1).cumsum(dim=1)
    quantile = (share * sums[:, -1])[:, None]
    tokens: Tensor = torch.searchsorted(sums, quantile, right=True)[:, 0]
    return tokens.clamp_max(log_probs.shape[1] - 1)


def bind_seeds(seeds: Seeds, batch_size: int, device: torch.device) -> Int[Tensor, " B"]:
    """One seed per sentence."""
    if isinstance(seeds, int):
        seeds %= 2**63
    return bind("seeds", seeds, batch_size, device)


def uniform(
    seeds: Int[Tensor, " R"], copies: Int[Tensor, " R"], position: int
) -> Float[Tensor, " R"]:
    """Random numbers from 0 up to 1, a function of the seed, the copy and the position."""
    bits = _mixed(seeds)
    for number in (copies, torch.full_like(copies, position)):
        bits = _mixed(bits + number * _STEP)
    # Fewer bits than a float64 holds: a share of the sum of all is then below it.
    return _shifted(bits, 12).double() * 2.0**-52


# Increment and multipliers of SplitMix64 (Steele et al., 2014); torch's integers are signed.
_STEP, _ONE, _TWO = (
    number - 2**64 for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


def _mixed(number: Int[Tensor, " R"]) -> Int[Tensor, " R"]:
    """Every bit of the result depends on every bit of a 64-bit number."""
    bits = number + _STEP
    bits = (bits ^ _shifted(bits, 30)) * _ONE
    bits = (bits ^ _shifted(bits, 27)) * _TWO
    return bits ^ _shifted(bits, 31)


def _shifted(bits: Int[Tensor, " R"], count: int) -> Int[Tensor, " R"]:
    """Shifted to the right, zeros coming in."""
    shifted: Tensor = (bits >> count) & (2 ** (64 - count) - 1)
    return shifted
