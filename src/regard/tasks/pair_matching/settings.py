"""Settings of pairs of texts, without torch."""

from dataclasses import dataclass

from regard.fields import Count, check_fields
from regard.tasks.recipe import check_different_columns
from regard.text.records import OnBadLine
from regard.text.tables import Column


@dataclass(frozen=True, kw_only=True, slots=True)
class PairsData:
    """Where the pairs are.

    Attributes:
        train: .tsv, .csv, .jsonl or a table of Parquet or Arrow, of pairs with a label; or .json as
            SQuAD's, which gives two pairs a question: with its own passage ("match"), and with
            another of the same article ("other").
        valid: The same, for validation; empty takes a few pairs from the training text.
        test: The same, for ``evaluate``; or ``held out`` of the training text.
        first: The first text's column in a table: its number from 1, or its name in the header. A
            name is its key in JSONL, Parquet and Arrow, too, which is else "first".
        second: The second text's, likewise; the key is else "second".
        label: The label's, likewise; the key is else "label".
        max_length: Most tokens of each text; what is beyond is cut off.
        on_bad_line: Whether a pair that cannot be used is an ``error``, or is left out (``skip``).

    Raises:
        SettingError: A value is of another type, none of the choices, or out of range, or
            two columns are one.

    Example:
        >>> PairsData(train="pairs.tsv", first="question", second="passage", label="fits").second
        'passage'
        >>> PairsData(train="pairs.tsv", first=2)
        Traceback (most recent call last):
        regard.errors.SettingError: first, second and label must be different columns; got 2, 2 and
        3.
    """

    train: tuple[str, ...] | str = ()
    valid: tuple[str, ...] | str = ()
    test: tuple[str, ...] | str = ()
    first: Column = 1
    second: Column = 2
    label: Column = 3
    max_length: Count = 192
    on_bad_line: OnBadLine = "error"

    def __post_init__(self) -> None:
        check_fields(self)
        check_different_columns(first=self.first, second=self.second, label=self.label)
