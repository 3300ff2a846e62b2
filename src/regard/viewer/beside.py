"""Two documents as one, for the page to show side by side."""

from dataclasses import replace

from regard.errors import DataError
from regard.viewer.document import Document


def beside(one: Document, other: Document, *, labels: tuple[str, str] | None = None) -> Document:
    """The examples of both documents, each labelled with where it is from.

    The page's Compare view puts examples of the same text next to each other: two models, or one
    model before and after it was changed.

    Args:
        one: The first; its title and its opening stand.
        other: The second.
        labels: What to call them. None takes their lines about the model, or their titles where
            those are the same.

    Raises:
        DataError: Either has no examples, or the labels are the same.

    Example:
        >>> from regard.viewer import Example
        >>> example = Example(source="ja", output="", source_tokens=(), output_tokens=())
        >>> first, second = (
        ...     Document(title="", task="", model=name, examples=(example,))
        ...     for name in ("small", "large")
        ... )
        >>> [example.label for example in beside(first, second).examples]
        ['small', 'large']
    """
    if not one.examples or not other.examples:
        raise DataError("documents must have examples to stand side by side; got one without.")
    names = labels or _names(one, other)
    if names[0] == names[1]:
        raise DataError(f"labels must differ; got {names[0]!r} twice. Pass labels=.")
    return replace(
        one,
        model=" · ".join(dict.fromkeys(each.model for each in (one, other) if each.model)),
        examples=tuple(
            replace(example, label=f"{name}: {example.label}" if example.label else name)
            for name, document in zip(names, (one, other), strict=True)
            for example in document.examples
        ),
        source_language=_common(one.source_language, other.source_language),
        output_language=_common(one.output_language, other.output_language),
    )


def _names(one: Document, other: Document) -> tuple[str, str]:
    if one.model != other.model:
        return one.model, other.model
    return one.title, other.title


def _common(one: str | None, other: str | None) -> str | None:
    """The language of both; None lets the page go by the script of each text."""
    return one if one == other else None
