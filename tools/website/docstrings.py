"""How docstrings are read for the site."""

import re

from griffe import Extension, Object

# Our sections say "Example:"; the reader of docstrings knows its doctests as "Examples:".
_EXAMPLE = re.compile(r"^Example:$", re.MULTILINE)
# A doctest's flags are for the test.
_FLAGS = re.compile(r" +# doctest: .*$", re.MULTILINE)


class OurSections(Extension):
    """Doctests under "Example:" become code, without their flags."""

    def on_object(self, *, obj: Object, **kwargs: object) -> None:
        """Change the text of a docstring before it is read."""
        if obj.docstring:
            obj.docstring.value = shown(obj.docstring.value)


def shown(text: str) -> str:
    """A docstring as the site reads it."""
    return _EXAMPLE.sub("Examples:", _FLAGS.sub("", text))
