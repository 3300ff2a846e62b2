"""Table of the layers' attention, for a terminal."""

from collections.abc import Iterable, Sequence

import numpy as np

from regard.viewer.example import Example
from regard.viewer.layer_summary import AXES, LayerSummary
from regard.viewer.terminal import shown, width_of

_HEADS = ("attention", "heads", "entropy", "first", "distance", "looked at most")
_GAP = 2
_MOST_NAMED = 4
_LONGEST_NAME = 12


def draw_layers(example: Example, *, width: int = 80) -> str:
    """One line a layer: numbers over heads averaged, and the tokens that receive most.

    ``entropy`` is in nats, with that of the sharpest and of the broadest head; ``first`` is the
    share of the first token, ``distance`` the mean number of tokens between who looks and what is
    looked at. A token's share is that of all weight.

    Args:
        example: With summaries; layers kept as maps of numbers are left out.
        width: Columns of the terminal; tokens that do not fit are left out.

    Returns:
        Lines without a newline at the end; layers counted from 0.

    Example:
        >>> import torch, regard
        >>> from regard.viewer import OneAttention, example_of
        >>> seen = regard.summarize(torch.zeros(2, 2, 4), torch.zeros(2, 2, 4))
        >>> print(draw_layers(example_of([OneAttention("encoder", 0, (0, 1), seen)], ["a", "b"])))
        attention  heads           entropy  first  distance  looked at most
        encoder 0      2  0.69 (0.69-0.69)   0.50       0.5  a 50%, b 50%
    """
    tokens = {"source": example.source_tokens, "output": example.output_tokens}
    rows = [_HEADS]
    for layer in example.summaries:
        names = [token.text for token in tokens[AXES[layer.kind][1]]]
        if layer.kind == "decoder" and example.started:
            names = ["⟨start⟩", *names[:-1]]
        rows.append((*_numbers(layer), ", ".join(_received(layer, names))))
    widths = [max(width_of(row[column]) for row in rows) for column in range(len(_HEADS) - 1)]
    lines = []
    for row in rows:
        cells = [_padded(cell, size) for cell, size in zip(row[1:-1], widths[1:], strict=True)]
        start = (" " * _GAP).join([row[0].ljust(widths[0]), *cells])
        lines.append(f"{start}{' ' * _GAP}{_fitting(row[-1], width - width_of(start) - _GAP)}")
    return "\n".join(lines)


def _numbers(layer: LayerSummary) -> tuple[str, str, str, str, str]:
    entropies = [one for one in layer.measures.get("entropy", ()) if one is not None]
    spread = f" ({min(entropies):.2f}-{max(entropies):.2f})" if entropies else ""
    return (
        f"{layer.kind} {layer.layer}",
        str(len(layer.heads)),
        f"{_mean(entropies, 2)}{spread}",
        _mean(layer.measures.get("first", ()), 2),
        _mean(layer.measures.get("distance", ()), 1),
    )


def _mean(values: Iterable[float | None], digits: int) -> str:
    known = [value for value in values if value is not None]
    return f"{sum(known) / len(known):.{digits}f}" if known else "·"


def _received(layer: LayerSummary, names: Sequence[str]) -> list[str]:
    """The tokens that receive most; the first of several where one number stands for them."""
    if layer.received is None:
        return []
    places = layer.received.places
    sums = layer.received.values.values().sum(axis=0)
    total = sums.sum()
    if not total > 0:
        return []
    best = np.argsort(-sums, kind="stable")[:_MOST_NAMED]
    more = "…" if places > 1 else ""
    return [
        f"{_short(names[int(place) * places])}{more} {_share(sums[place] / total)}"
        for place in best
        if sums[place] > 0
    ]


def _share(share: float) -> str:
    """A percentage with a digit that is not zero.

    Example:
        >>> _share(0.12), _share(0.0123), _share(0.00049)
        ('12%', '1.2%', '0.05%')
    """
    digits = 0 if share >= 0.0995 else 1 if share >= 0.00995 else 2
    return f"{share:.{digits}%}"


def _short(name: str) -> str:
    name = shown(name.replace("Ġ", " "))  # the space of byte-level tokenizers
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _padded(text: str, width: int) -> str:
    return " " * (width - width_of(text)) + text


def _fitting(names: str, room: int) -> str:
    """As many of the names as there is room for, at least one."""
    while width_of(names) > room and ", " in names:
        names = names.rpartition(", ")[0]
    return names
