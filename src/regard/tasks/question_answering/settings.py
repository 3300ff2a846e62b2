"""Settings of questions about texts, without torch."""

from dataclasses import dataclass

from regard.errors import SettingError
from regard.fields import Count, check_fields
from regard.tasks.recipe import AskedData
from regard.text.records import OnBadLine


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionsData(AskedData):
    """Where the questions are.

    Attributes:
        train: .json files as SQuAD's, or .jsonl with "question", "context" and "answers".
        valid: The same, for validation; empty takes a few questions from the training text.
        test: The same, for ``evaluate``; or ``held out`` of the training text.
        max_length: Most tokens of a text that are read at once; a longer one is read in windows,
            and the best answer of all windows is taken.
        stride: Tokens from the beginning of one window to that of the next.
        max_question: Longest question, in tokens; what is beyond is cut off.
        max_answer: Longest answer that is given, in tokens.
        on_bad_line: Whether a question that cannot be used, such as one whose answer is not in its
            text, is an ``error``, or is left out (``skip``).

    Raises:
        SettingError: A value is of another type, none of the choices, or out of range, or
            ``stride`` is above ``max_length``.

    Example:
        >>> QuestionsData(train="squad.json", max_length=256, stride=128).max_answer
        30
        >>> QuestionsData(train="squad.json", max_length=128)
        Traceback (most recent call last):
        regard.errors.SettingError: stride must be at most max_length, or text between two windows
        is never read; got stride=192, max_length=128.
    """

    train: tuple[str, ...] | str = ()
    valid: tuple[str, ...] | str = ()
    test: tuple[str, ...] | str = ()
    max_length: Count = 384
    stride: Count = 192
    max_question: Count = 64
    max_answer: Count = 30
    on_bad_line: OnBadLine = "error"

    def __post_init__(self) -> None:
        check_fields(self)
        if self.stride > self.max_length:
            raise SettingError(
                f"stride must be at most max_length, or text between two windows is never read; "
                f"got stride={self.stride}, max_length={self.max_length}."
            )
