"""Warnings about lines: the first ones each, then a count."""

from regard.cli.output import note

# Lines named on stderr, before they are only counted.
_MOST_NOTES = 10


class Oddities:
    """Lines that something is said of, and those among them that have no answer.

    Args:
        left: What becomes of a line that cannot be read.
    """

    def __init__(self, left: str = "Its answer is left empty.") -> None:
        self._left = left
        self._lines = self._unread = self._odd = 0

    def see(self, problem: str | None) -> None:
        """Count a line; say why it could not be read, if it could not."""
        self._lines += 1
        if problem is not None:
            self._unread += 1
            self.say(f"{problem} {self._left}")

    def say(self, text: str) -> None:
        """Say what is odd about a line, if it is among the first."""
        self._odd += 1
        if self._odd <= _MOST_NOTES:
            note(f"warning: {text}")

    def end(self) -> None:
        """Say how many lines could not be read, and how many were not named."""
        if self._unread:
            note(f"warning: {self._unread:,} of {self._lines:,} lines could not be read.")
        if self._odd > _MOST_NOTES:
            note(f"warning: {self._odd - _MOST_NOTES:,} more lines like these.")
