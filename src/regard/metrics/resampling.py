"""Drawing sentences again, to see how far a figure depends on those that happen to be there."""

from collections.abc import Mapping, Sequence

from sacrebleu.metrics.base import Metric
from sacrebleu.significance import PairedTest, Result

# Numbers sacrebleu may hold at once for a metric. It makes (draws, sentences, 18) of four bytes for
# a bootstrap, "bs", and (draws, sentences) of eight for swaps, "ar": 400 MB at most.
_MOST = {"bs": 5_000_000, "ar": 20_000_000}


def draw(
    systems: Mapping[str, Sequence[str]],
    metrics: Mapping[str, Metric],
    kind: str,
    draws: int,
) -> dict[str, tuple[str, list[Result]]]:
    """What sacrebleu's significance test says, by metric: its signature, a result per system.

    Args:
        systems: Outputs by system; the first is what the others are compared with.
        metrics: Metrics with references in them.
        kind: ``bs`` draws sentences with replacement, ``ar`` swaps outputs of two systems.
        draws: How often; fewer where a large corpus would need much memory, but at least 100.
    """
    sentences = max(len(outputs) for outputs in systems.values())
    affordable = min(draws, max(100, _MOST[kind] // sentences))
    signatures, results = PairedTest(
        list(systems.items()), metrics, None, test_type=kind, n_samples=affordable
    )()
    return {
        name: (signature.format(), [one for one in results[name] if isinstance(one, Result)])
        for name, signature in signatures.items()
    }
