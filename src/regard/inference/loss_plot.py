"""How training went, as a curve."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from regard.config import JsonValue

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, which readers with colour blindness tell apart.
TRAIN, VALID = "#0072b2", "#d55e00"
# Of more points, none is marked.
_MOST_MARKED = 12


def draw_loss(axes: "Axes", history: Sequence[Mapping[str, JsonValue]]) -> None:
    """Loss against updates, in training and on the validation examples."""
    for split, colour in (("train", TRAIN), ("valid", VALID)):
        found = [each for each in history if each["split"] == split]
        updates, losses = (
            [cast("float", each[name]) for each in found] for name in ("update", "loss")
        )
        name = {"train": "training", "valid": "validation"}[split]
        marker = "o" if len(found) <= _MOST_MARKED else None
        axes.plot(updates, losses, color=colour, marker=marker, label=name)
    axes.set_xlabel("update")
    axes.set_ylabel("loss")
    axes.set_title("Training")
    axes.legend()
