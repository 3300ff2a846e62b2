"""Settings of questions with choices, without torch."""

from dataclasses import dataclass

from regard.fields import Count, check_fields
from regard.text.records import OnBadLine


@dataclass(frozen=True, kw_only=True, slots=True)
class ChoicesData:
    """Where the questions are.

    Attributes:
        train: .jsonl with "question", "context", "answers" (the first is the right one) and
            "choices", or with "story" instead of those: then wrong answers are drawn from the
            answers to other questions about the same story. Or .json as SQuAD's, whose articles are
            the stories.
        valid: The same, for validation; empty takes a few questions from the training text.
        test: The same, for ``evaluate``; or ``held out`` of the training text.
        num_wrong: Wrong answers drawn for a question without choices.
        max_length: Most tokens of a text that are read; what is beyond is cut off.
        max_answer: Most tokens of question and answer together.
        on_bad_line: Whether a question that cannot be used is an ``error``, or is left out.

    Raises:
        SettingError: A value is of another type, none of the choices, or out of range.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> table = {"task": "multiple_choice", "data": {"train": "tales.jsonl", "num_wrong": 2}}
        >>> recipe_from_table(table).data.num_wrong
        2
        >>> recipe_from_table({"task": "multiple_choice", "data": {"num_wrongs": 2}})
        Traceback (most recent call last):
        regard.errors.SettingError: data.num_wrongs is not a setting. Did you mean data.num_wrong?
    """

    train: tuple[str, ...] | str = ()
    valid: tuple[str, ...] | str = ()
    test: tuple[str, ...] | str = ()
    num_wrong: Count = 3
    max_length: Count = 384
    max_answer: Count = 96
    on_bad_line: OnBadLine = "error"

    def __post_init__(self) -> None:
        check_fields(self)
