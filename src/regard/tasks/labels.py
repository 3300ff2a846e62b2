"""Labels of whole texts: their numbers in training, and the most probable one as an answer."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from regard.config import JsonValue
from regard.errors import DataError
from regard.fields import several
from regard.text.reading.lines import text_suffix
from regard.text.reading.tables import TABLES

# What a task saves of its labels.
SavedLabels = Annotated[list[str], several(2)]
# Rows of a table from which its labels say that the first is a header; and what names look like.
_LEAST_ROWS = 20
_NAME = re.compile(r"[^\W\d][\w-]*( [\w-]+){0,2}")


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

    def to_dict(self) -> dict[str, JsonValue]:
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
            "Is data.label the label's column? `regard train FILE` alone guesses which it is."
        )
    return found


def has_header(rows: Sequence[tuple[str, str]], file: Path) -> bool:
    """Whether the first row of a table of texts and labels is a header that nobody knows.

    Its label then occurs once, all others again and again; and both cells are like names.

    Example:
        >>> rows = [("review_text", "stars"), *[("It is good.", "5"), ("It is bad.", "1")] * 10]
        >>> has_header(rows, Path("a.csv")), has_header(rows[1:], Path("a.csv"))
        (True, False)
    """
    if text_suffix(file) not in TABLES or len(rows) < _LEAST_ROWS:
        return False
    counts = Counter(label for _, label in rows)
    text, label = rows[0]
    is_alone = counts.pop(label) == 1 and min(counts.values(), default=1) > 1
    return is_alone and bool(_NAME.fullmatch(text) and _NAME.fullmatch(label))


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
