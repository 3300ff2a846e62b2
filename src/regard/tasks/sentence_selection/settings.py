"""Settings of questions about sentences, without torch."""

from dataclasses import dataclass

from regard.fields import Count, Natural, check_fields
from regard.tasks.recipe import AskedData
from regard.text.records import OnBadLine


@dataclass(frozen=True, kw_only=True, slots=True)
class SentencesData(AskedData):
    """Where the questions are.

    Attributes:
        train: .json files as SQuAD's, or .jsonl with "question", "context" and "answers".
        valid: The same, for validation; empty takes a few questions from the training text.
        test: The same, for ``evaluate``; or ``held out`` of the training text.
        min_count: How often a word must occur to get an id; words are read in lower case.
        max_words: Most words of a sentence; what is beyond is cut off.
        oov_buckets: Ids that all other words share by their spelling, so that a name that stands in
            question and text is seen to be the same; 0 gives them one id.
        on_bad_line: Whether a question that cannot be used is an ``error``, or is left out.

    Raises:
        SettingError: A value is of another type, none of the choices, or out of range.

    Example:
        >>> from regard.config import build
        >>> build(SentencesData, {"train": "squad.json", "min_count": 1}, where="data").max_words
        60
        >>> build(SentencesData, {"train": "squad.json", "min_count": 0}, where="data")
        Traceback (most recent call last):
        regard.errors.SettingError: data.min_count must be at least 1; got 0.
    """

    train: tuple[str, ...] | str = ()
    valid: tuple[str, ...] | str = ()
    test: tuple[str, ...] | str = ()
    min_count: Count = 2
    max_words: Count = 60
    oov_buckets: Natural = 1000
    on_bad_line: OnBadLine = "error"

    def __post_init__(self) -> None:
        check_fields(self)
