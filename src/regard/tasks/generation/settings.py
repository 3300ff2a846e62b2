"""Settings of documents, without torch."""

from dataclasses import dataclass
from typing import Literal

from regard.fields import Count, Natural, check_fields
from regard.tasks.recipe import SequenceData, check_different_columns
from regard.text.reading.tables import Column


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentData(SequenceData):
    """Where documents are, and what is to be said of them.

    Raises:
        SettingError: A value is none of the choices or out of range, or two columns are one.

    Example:
        >>> DocumentData(train="tales.tsv", question=2, answer=3).max_length
        2048
        >>> DocumentData(train="tales.tsv", question=2)
        Traceback (most recent call last):
        regard.errors.SettingError: document, question and answer must be different columns; got 1,
        2 and 2.

    Attributes:
        train: TSV or CSV files, or JSONL or tables (Parquet, Arrow) with "document" (or "context"),
            perhaps "question", and "answers" (a text or a list; or "answer", "summary",
            "summaries").
        valid: The same, for validation; empty takes a few examples from the training text.
        test: The same, for ``evaluate``; or ``held out`` of the training text.
        source_language: Code of the documents' language, for metrics; None guesses it.
        target_language: Code of the answers' language; None guesses it.
        document: Column of the document in a table: its number from 1, or its name in the header;
            a name is its key in JSONL, Parquet and Arrow, too.
        question: Column of the question; 0: there is none, and a summary is wanted.
        answer: Column of the answer or the summary.
        sentences: Read only so many sentences of each document: those that share the rarest words
            with the question, the best one first; without a question, the first ones. None reads
            all, in their order.
        shortened: Which documents ``sentences`` shortens: ``all``; or only those ``asked`` about,
            and what a summary is wanted of is read whole.
        max_length: Longest source, in tokens, question and all; what is beyond is cut off.
        on_bad_line: Whether a line that cannot be read is an ``error``, or is left out (``skip``).
        on_long: In training, whether an answer beyond max_length is left out or an error.
        source_end: Whether the model reads an end token after the source.
    """

    train: tuple[str, ...] | str = ()
    valid: tuple[str, ...] | str = ()
    test: tuple[str, ...] | str = ()
    source_language: str | None = None
    target_language: str | None = None
    document: Column = 1
    question: Natural | str = 0
    answer: Column = 2
    sentences: Count | None = None
    shortened: Literal["all", "asked"] = "all"
    max_length: Count = 2048
    on_bad_line: Literal["error", "skip"] = "error"
    on_long: Literal["error", "skip"] = "skip"
    source_end: bool = True

    def __post_init__(self) -> None:
        check_fields(self)
        check_different_columns(document=self.document, question=self.question, answer=self.answer)
