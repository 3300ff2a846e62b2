"""Drawing sentences again, to see how far a figure depends on those that happen to be there."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric
    from sacrebleu.significance import Result

# Numbers sacrebleu may hold at once for a metric. It makes (draws, sentences, 18) of four bytes for
# a bootstrap, "bs", and (draws, sentences) of eight for swaps, "ar": 400 MB at most.
_MOST = {"bs": 5_000_000, "ar": 20_000_000}

# What chance is drawn with, as sacrebleu's.
SEED = 12345


def drawn_means(values: Sequence[float], resamples: int) -> Float[np.ndarray, " resamples"]:
    """The means of sentences drawn again with replacement, so often."""
    places = np.random.default_rng(SEED).integers(0, len(values), (resamples, len(values)))
    means: Float[np.ndarray, " resamples"] = np.asarray(values)[places].mean(axis=1)
    return means


def swapped(first: Sequence[float], second: Sequence[float], trials: int) -> float:
    """How often two systems whose outputs are swapped at random differ as much in their means.

    Approximate randomisation, two-sided (Noreen, 1989), one more trial being the difference itself.

    Args:
        first: A figure for each sentence.
        second: The same of the other system.
        trials: How often all are swapped.

    Example:
        >>> swapped([0.0] * 20, [1.0] * 20, trials=999), swapped([0.0, 1.0], [1.0, 0.0], trials=99)
        (0.001, 1.0)
    """
    differences = np.subtract(second, first)
    # What is as large but for the last digit of a sum is as large.
    least = abs(differences.sum()) - 1e-9 * np.abs(differences).sum()
    dice, found = np.random.default_rng(SEED), 0
    at_once = max(1, _MOST["ar"] // (4 * len(differences)))
    for done in range(0, trials, at_once):
        size = (min(at_once, trials - done), len(differences))
        found += int(np.sum(np.abs(dice.choice([-1.0, 1.0], size) @ differences) >= least))
    return (1 + found) / (1 + trials)


def draw(
    systems: Mapping[str, Sequence[str]],
    metrics: "Mapping[str, Metric]",
    kind: str,
    draws: int,
) -> "dict[str, tuple[str, list[Result]]]":
    """Results of sacrebleu's significance test by metric: its signature, a result per system.

    Args:
        systems: Outputs by system; the first is what the others are compared with.
        metrics: Metrics with references in them.
        kind: ``bs`` draws sentences with replacement, ``ar`` swaps outputs of two systems.
        draws: How often; fewer where a large corpus would need much memory, but at least 100.
    """
    from sacrebleu.significance import PairedTest, Result

    sentences = max(len(outputs) for outputs in systems.values())
    affordable = min(draws, max(100, _MOST[kind] // sentences))
    signatures, results = PairedTest(
        list(systems.items()), metrics, None, test_type=kind, n_samples=affordable
    )()
    return {
        name: (signature.format(), [one for one in results[name] if isinstance(one, Result)])
        for name, signature in signatures.items()
    }
