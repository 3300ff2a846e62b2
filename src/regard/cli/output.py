"""Where commands write: results to stdout, everything about them to stderr."""

import sys


def say(text: str = "") -> None:
    """A line of the result."""
    sys.stdout.write(f"{text}\n")


def note(text: str) -> None:
    """A line about the work."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
