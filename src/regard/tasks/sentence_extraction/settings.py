"""Settings of sentence extraction, without torch."""

from dataclasses import dataclass

from regard.fields import Count, check_fields
from regard.tasks.recipe import check_different_columns
from regard.text.records import OnBadLine


@dataclass(frozen=True, kw_only=True, slots=True)
class ExtractionData:
    """Where documents and their summaries are.

    Attributes:
        train: TSV files, or JSONL with "document" and "summary" or several "summaries".
        valid: The same, for validation; empty takes a few documents from the training text.
        test: The same, for ``evaluate``; or ``held out`` of the training text.
        document: TSV: column of the document, from 1.
        summary: TSV: column of the summary.
        sentences: Sentences that are taken out; None takes as many as summaries of the training
            text have on average.
        max_length: Most tokens of a document that are read, a begin for each sentence among them.
        on_bad_line: Whether a line that cannot be read is an ``error``, or is left out (``skip``).

    Raises:
        SettingError: A value is of another type, none of the choices, or out of range, or
            both columns are one.

    Example:
        >>> from regard.config import build
        >>> build(ExtractionData, {"train": "news.tsv", "sentences": 3}, where="data").max_length
        1024
        >>> build(ExtractionData, {"train": "news.tsv", "document": 2}, where="data")
        Traceback (most recent call last):
        regard.errors.SettingError: [data] document and summary must be different columns; got 2 and
        2.
    """

    train: tuple[str, ...] | str = ()
    valid: tuple[str, ...] | str = ()
    test: tuple[str, ...] | str = ()
    document: Count = 1
    summary: Count = 2
    sentences: Count | None = None
    max_length: Count = 1024
    on_bad_line: OnBadLine = "error"

    def __post_init__(self) -> None:
        check_fields(self)
        check_different_columns(document=self.document, summary=self.summary)
