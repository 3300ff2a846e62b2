"""Records that are asked about, in the forms that programs have them."""

from collections.abc import Mapping
from typing import cast

from regard.config import JsonValue
from regard.errors import DataError
from regard.text.in_memory import plain


def request_of(record: object, place: int) -> str | dict[str, JsonValue]:
    r"""A record as tasks take it: a line, or an object with names.

    Args:
        record: A line, an object, a number, a row of numbers or texts, or rows of pixels.
        place: Which of several it is, from 1, for messages.

    Raises:
        DataError: It is something else.

    Example:
        >>> request_of("So it is.", 1), request_of([1.5, 2], 1), request_of(("a", "b"), 1)
        ('So it is.', '1.5\t2', 'a\tb')
        >>> request_of([[0, 9], [9, 0]], 1)
        {'pixels': [[0, 9], [9, 0]]}
    """
    is_data = isinstance(record, str | Mapping | int | float | list | tuple)
    found = plain(record) if is_data or hasattr(record, "tolist") else None
    if isinstance(found, str):
        return found
    if isinstance(found, dict):
        return cast("dict[str, JsonValue]", found)
    cells = found if isinstance(found, list) else [found]
    if cells and all(isinstance(cell, list) for cell in cells):
        return {"pixels": cast("list[JsonValue]", cells)}
    if not cells or not all(isinstance(cell, str | int | float) for cell in cells):
        raise DataError(
            f"record {place} must be a text, an object of names and values, or a row; got "
            f"{type(record).__name__} {str(record)[:60]!r}."
        )
    return "\t".join(" ".join(str(cell).split()) for cell in cells)
