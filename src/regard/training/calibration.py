"""The temperature of a classifier: Guo et al. (2017), https://arxiv.org/abs/1706.04599.

``softmax(logits / T)`` has the order of ``softmax(logits)``; T makes it as sure as it is right.
Where scores of n-grams stand beside a network, both have factors of their own.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

# The largest temperature, whose inverse is the smallest; halvings of the interval between.
_MOST, _HALVINGS = 20.0, 50
# Smallest normal number of float32, in which a probability may have become 0.
_LEAST_PROBABILITY = torch.finfo(torch.float32).tiny
# Shares of the network in a mixture with the scores of n-grams that are tried.
_SHARES = tuple(tenths / 10 for tenths in range(1, 11))
_LEAST = 100  # examples that say anything of it: scores of n-grams are fitted to more


@dataclass(frozen=True, slots=True)
class Scales:
    """Factors of the logits that a classifier sums."""

    network: float
    ngrams: float


def fit_temperature(distributions: Sequence[Sequence[float]], right: Sequence[int]) -> float:
    """The temperature that makes the true labels likeliest, to four digits.

    A true label is held to be so with probability ``(N + 1) / (N + K)``, of K labels in N examples,
    as by Platt (1999): of a few examples, all of them right, no certainty follows.
    """
    return _fit(_log_probs(distributions), right)[0]


def fit_scales(
    network: Sequence[Sequence[float]], both: Sequence[Sequence[float]], right: Sequence[int]
) -> Scales:
    """The factors of the network's logits and of the scores of n-grams that fit the true labels.

    By the criterion of Schwarz (1978), https://doi.org/10.1214/aos/1176344136: each number that is
    fitted to N examples must gain ``log(N) / 2`` of log-likelihood. So the scores of n-grams stay
    as they were fitted, and the network counts nothing, where the examples do not tell otherwise,
    or are few.
    """
    if len(right) < _LEAST:
        return Scales(0.0, 1.0)
    logits, penalty = _log_probs(network), math.log(len(right)) / 2
    scores = _log_probs(both) - logits
    scale, _ = _fit(logits, right)
    found = {Scales(0.0, 1.0): _likelihood(scores, right)}
    for share in _SHARES:
        mixed = share / scale * logits + (1 - share) * scores
        temperature, likelihood = _fit(mixed, right)
        scales = Scales(_rounded(share / scale / temperature), _rounded((1 - share) / temperature))
        found[scales] = likelihood - 2 * penalty
    return max(found, key=found.__getitem__)


def _log_probs(distributions: Sequence[Sequence[float]]) -> Float[Tensor, "N K"]:
    """Logarithms of probabilities; of fewer labels than others have, −∞ for the rest."""
    rows = [
        torch.tensor(probabilities, dtype=torch.float64).clamp(_LEAST_PROBABILITY).log()
        for probabilities in distributions
    ]
    return pad_sequence(rows, batch_first=True, padding_value=-torch.inf)


def _fit(logits: Float[Tensor, "N K"], right: Sequence[int]) -> tuple[float, float]:
    """The temperature of logits, and the log-likelihood with it."""
    finite = logits.masked_fill(logits.isinf(), 0.0)
    wanted = _smoothed(logits, finite, right)
    low, high = -math.log(_MOST), math.log(_MOST)
    # The mean logit grows with the inverse temperature; the likelihood is highest where it is that
    # of the true labels.
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        expected = ((math.exp(middle) * logits).softmax(-1) * finite).sum()
        low, high = (middle, high) if expected < wanted else (low, middle)
    return _rounded(math.exp(-low)), _likelihood(math.exp(low) * logits, right)


def _likelihood(logits: Float[Tensor, "N K"], right: Sequence[int]) -> float:
    log_probs = logits.log_softmax(-1).masked_fill(logits.isinf(), 0.0)
    return _smoothed(logits, log_probs, right)


def _smoothed(
    logits: Float[Tensor, "N K"], values: Float[Tensor, "N K"], right: Sequence[int]
) -> float:
    """The sum of the values of true labels, which are so with probability (N + 1) / (N + K)."""
    total = len(logits) + (~logits.isinf()).sum(1)
    of_right = values[torch.arange(len(values)), torch.tensor(right)]
    return float(((values.sum(1) + len(logits) * of_right) / total).sum())


def _rounded(number: float) -> float:
    return float(f"{number:.4g}")
