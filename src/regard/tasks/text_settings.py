"""Settings of running text, without torch."""

from dataclasses import dataclass
from typing import Annotated

from regard.errors import SettingError
from regard.fields import Share, at_least, check_fields


@dataclass(frozen=True, kw_only=True, slots=True)
class RunningTextData:
    """Files of running text.

    Attributes:
        train: Text files, which may end in .gz or .zst; or JSONL or tables (Parquet, Arrow).
        valid: The same, for validation; empty takes the end of the training text.
        test: The same, for ``evaluate``; or ``held out`` of the training text.
        valid_share: How much of the training text its end is, where ``valid`` is empty.
        column: The name of the text in JSONL and tables.

    Raises:
        SettingError: A value is of another type, none of the choices, or out of range.
    """

    train: tuple[str, ...] | str = ()
    valid: tuple[str, ...] | str = ()
    test: tuple[str, ...] | str = ()
    valid_share: Share = 0.05
    column: str = "text"

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class TextData(RunningTextData):
    """Files of running text for a language model, and the windows it is read in.

    Attributes:
        context: Tokens that a training window holds.
        overlap: Tokens of a window that evaluation has read before: each is scored once, with at
            least so many before it, but for the first of a passage.

    Raises:
        SettingError: A value is out of range, or windows overlap by as much as they hold.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> table = {"task": "language_modelling", "data": {"context": 64, "overlap": 32}}
        >>> recipe_from_table(table).data.context
        64
        >>> TextData(overlap=256)
        Traceback (most recent call last):
        regard.errors.SettingError: overlap must be at least 0 and below context = 256; got 256.
    """

    context: Annotated[int, at_least(2)] = 256
    overlap: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 <= self.overlap < self.context:
            raise SettingError(
                f"overlap must be at least 0 and below context = {self.context}; "
                f"got {self.overlap}."
            )
