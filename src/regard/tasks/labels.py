"""Labels of whole texts: their numbers in training, and the most probable one as an answer."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from regard.errors import DataError


@dataclass(frozen=True, slots=True)
class LabelPrediction:
    """The label of one text.

    Attributes:
        label: The most probable.
        probabilities: Of every label.
    """

    label: str
    probabilities: Mapping[str, float]

    def text(self) -> str:
        """The label and its probability."""
        return f"{self.label}\t{self.probabilities[self.label]:.4f}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        shown = {label: round(share, 6) for label, share in self.probabilities.items()}
        return {"label": self.label, "probabilities": shown}


def certain(label: str) -> LabelPrediction:
    """The prediction of what knows no probabilities, such as a baseline."""
    return LabelPrediction(label, {label: 1.0})


def most_frequent(labels: Iterable[str | None]) -> str:
    """The label that most texts have."""
    return Counter(label or "" for label in labels).most_common(1)[0][0]


def learn_labels(labels: Iterable[str | None]) -> list[str]:
    """The labels of training in order of their numbers.

    Raises:
        DataError: There are fewer than two.

    Example:
        >>> learn_labels(["good", "bad", None, "good"])
        ['bad', 'good']
    """
    found = sorted({label for label in labels if label is not None})
    if len(found) < 2:
        raise DataError(
            f"data.train must hold at least two different labels; got {found}. "
            "Is data.label the label's column?"
        )
    return found


def number_of(label: str | None, labels: Sequence[str], where: str) -> int:
    """A label's number; −1 where it is not known.

    Raises:
        DataError: It was not met in training.
    """
    if label is None:
        return -1
    if label not in labels:
        raise DataError(
            f"{where}: label must be one met in training ({', '.join(labels[:20])}); "
            f"got {label!r}. Correct it, or add texts that have it to data.train."
        )
    return labels.index(label)


def label_loss(
    logits: Float[Tensor, "B K"],
    numbers: Int[Tensor, " B"],
    *,
    smoothing: float,
    penalty: Float[Tensor, " B"] | None = None,
) -> tuple[Float[Tensor, ""], int]:
    """The summed cross-entropy, with each text's penalty if any, and how many labels are known."""
    loss = F.cross_entropy(
        logits, numbers, ignore_index=-1, reduction="sum", label_smoothing=smoothing
    )
    known = numbers >= 0
    if penalty is not None:
        loss = loss + (penalty * known).sum()
    return loss, int(known.sum())


def label_predictions(logits: Float[Tensor, "B K"], labels: Sequence[str]) -> list[LabelPrediction]:
    """The most probable label of each text."""
    return [
        LabelPrediction(labels[row.index(max(row))], dict(zip(labels, row, strict=True)))
        for row in logits.softmax(-1).tolist()
    ]


def tell_labels(labels: Sequence[str]) -> str:
    """How many labels there are, and the first of them, in a line for people."""
    return f"{len(labels)} labels: {', '.join(labels[:10])}{' …' if len(labels) > 10 else ''}"
