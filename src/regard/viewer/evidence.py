"""Other measures of what mattered, for a page to show beside the attention."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from regard.viewer.example import Importance

if TYPE_CHECKING:
    from torch import Tensor

_NAMES = {"removed": "leave one out", "gradient": "gradient × input"}


class Evidence(Protocol):
    """Interface of the results of ``regard.faithfulness``."""

    @property
    def output(self) -> tuple[int, int]:
        """The place of the output that is explained, and its token."""

    @property
    def evidence(self) -> Mapping[str, "Tensor"]:
        """One number per input token, by the name of the measure."""

    @property
    def correlation(self) -> Mapping[tuple[str, str], float]:
        """The rank correlation of each two of them."""


def importances_of(found: Evidence, output: int | None = None) -> tuple[Importance, ...]:
    """Convert results of ``regard.faithfulness`` for ``Example.importances``.

    Args:
        found: Its answer, for a text without padding.
        output: Which output token of the example it explains; None leaves that open.

    Returns:
        One for each measure, attention first, each with its rank correlation with the attention.

    Example:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> evidence = {"removed": torch.tensor([0.2, 0.8]), "attention": torch.tensor([0.4, 0.6])}
        >>> correlation = {("attention", "removed"): 0.5}
        >>> found = SimpleNamespace(output=(1, 7), evidence=evidence, correlation=correlation)
        >>> [(each.method, each.values, each.correlation) for each in importances_of(found)]
        [('attention', (0.4, 0.6), None), ('leave one out', (0.2, 0.8), 0.5)]
    """
    names = sorted(found.evidence, key=lambda name: (name != "attention", name))
    return tuple(
        Importance(
            method=_NAMES.get(name, name),
            values=tuple(float(f"{value:.4g}") for value in found.evidence[name].tolist()),
            output=output,
            correlation=_with_attention(found.correlation, name),
        )
        for name in names
    )


def _with_attention(correlation: Mapping[tuple[str, str], float], name: str) -> float | None:
    for pair, number in correlation.items():
        if set(pair) == {"attention", name} and number == number:  # not NaN
            return float(f"{number:.4g}")
    return None
