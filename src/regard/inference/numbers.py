"""Numbers of layers and heads as people write them."""

import re

from regard.errors import SettingError

_PART = re.compile(r"\s*(\d{1,6})\s*(?:-\s*(\d{1,6})\s*)?")


def numbers_of(name: str, text: str | None) -> list[int] | None:
    """The numbers that a text such as ``0,2-4`` names, in order and once each; None of None."""
    if text is None:
        return None
    found: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part)
        first, last = (0, -1) if match is None else (int(match[1]), int(match[2] or match[1]))
        if last < first:
            raise SettingError(
                f"{name} must be numbers from 0 and ranges of them, such as 0,2-4; got {text!r}."
            )
        found.update(range(first, last + 1))
    return sorted(found)
