"""Settings of pictures, without torch."""

from dataclasses import dataclass
from typing import Literal

from regard.fields import Natural, check_fields
from regard.text.records import OnBadLine


@dataclass(frozen=True, kw_only=True, slots=True)
class PicturesData:
    """Where the pictures are.

    Raises:
        SettingError: A value is none of the choices or out of range.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> table = {"task": "image_classification", "data": {"example": "digits", "shift": 1}}
        >>> recipe_from_table(table).data.shift
        1
        >>> PicturesData(shift=-1)
        Traceback (most recent call last):
        regard.errors.SettingError: shift must be at least 0; got -1.

    Attributes:
        train: JSONL files, each line an object with "pixels", rows of numbers (or of lists of
            numbers, such as red, green, blue), and "label"; or folders that hold a folder of
            picture files for each label, which need Pillow. All pictures are of one size.
        valid: The same, for validation; empty takes a few pictures from the training ones.
        test: The same, for ``evaluate``.
        on_bad_line: Whether a line that cannot be read is an ``error``, or is left out (``skip``).
        size: Rows and columns that pictures of folders are scaled to; 0 leaves them as they are.
        shift: Pixels that a picture is moved by at most in training, to each side at random; what
            comes in at the edges is as dark as can be.
        example: What there is without files: ``digits``, the 1,797 handwritten ones of 8 × 8 pixels
            that scikit-learn has, or ``none``.
    """

    train: tuple[str, ...] | str = ()
    valid: tuple[str, ...] | str = ()
    test: tuple[str, ...] | str = ()
    on_bad_line: OnBadLine = "error"
    size: Natural = 0
    shift: Natural = 0
    example: Literal["none", "digits"] = "none"

    def __post_init__(self) -> None:
        check_fields(self)
