"""Settings of masked language modelling, without torch."""

from dataclasses import dataclass
from typing import Annotated, Literal

from regard.checks import check_fraction, check_positive
from regard.fields import Share, at_least, check_fields
from regard.tasks.language_modelling.settings import RunningTextData


@dataclass(frozen=True, kw_only=True, slots=True)
class MaskedTextData(RunningTextData):
    """Where the running text is, and what of it is guessed.

    Attributes:
        train: Text files, which may end in .gz or .zst; or JSONL or tables (Parquet, Arrow).
        valid: The same, for validation; empty takes the end of the training text.
        test: The same, for ``evaluate``; or ``held out`` of the training text.
        valid_share: How much of the training text its end is, where ``valid`` is empty.
        column: The name of the text in JSONL and tables.
        context: Tokens that a window holds, begin and ends included; windows are full, whatever
            the lines in them.
        rate: The share of words, or pieces, to guess.
        masking: ``words`` masks whole words, Chinese ones too; ``pieces`` single tokens.
        next_sentence: Whether the model is also asked if the second half of a window follows the
            first; in half of them it comes from elsewhere.

    Raises:
        SettingError: A value is of another type, none of the choices, or out of range.

    Example:
        >>> from regard.config import build
        >>> build(MaskedTextData, {"train": "tales.txt", "rate": 0.2}, where="data").masking
        'words'
        >>> build(MaskedTextData, {"train": "tales.txt", "rate": 15}, where="data")
        Traceback (most recent call last):
        regard.errors.SettingError: data.rate must be at least 0 and below 1; got 15.0.
    """

    train: tuple[str, ...] | str = ()
    valid: tuple[str, ...] | str = ()
    test: tuple[str, ...] | str = ()
    valid_share: Share = 0.05
    column: str = "text"
    context: Annotated[int, at_least(8)] = 128
    rate: Annotated[float, check_positive, check_fraction] = 0.15
    masking: Literal["words", "pieces"] = "words"
    next_sentence: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
