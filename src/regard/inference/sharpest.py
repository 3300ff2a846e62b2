"""Where a head is sharpest: the texts of a corpus in which its links have most confidence."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from regard.errors import DataError, SettingError
from regard.viewer import NotebookPage, View
from regard.viewer.confidence import confidence_in
from regard.viewer.options import EVERYTHING, LookOptions

MOST = 20  # texts on a page
_AT_ONCE = 64  # texts that are looked at together


class Looking(Protocol):
    """A model in use that shows its attention."""

    def look(
        self, texts: Sequence[str], options: LookOptions = ..., *, explain: bool = ...
    ) -> NotebookPage:
        """Return a page of texts."""


def sharpest_texts(
    use: Looking, texts: Sequence[str], layer: int, head: int
) -> tuple[NotebookPage, list[tuple[str, float]]]:
    """Find the texts of a corpus in which a head is sharpest.

    Each text is looked at by this head alone; of those with most confidence the page is made, which
    opens on the head: of its attention to another text, where it has some.

    Args:
        use: The model.
        texts: The corpus; of a text that is cut into parts each part counts.
        layer: Layer of the head, counted from 0.
        head: The head, counted from 0.

    Returns:
        The page of at most 20 texts, and these with their confidence, the most first.

    Raises:
        DataError: The head sees no words in any of the texts.
        SettingError: The model has no such head.
    """
    alone = LookOptions(layers=[layer], heads=[head])
    ranked: list[tuple[float, str, str]] = []
    for first in range(0, len(texts), _AT_ONCE):
        some = texts[first : first + _AT_ONCE]
        try:
            examples = use.look(some, alone, explain=False).document.examples
        except SettingError as error:
            raise SettingError(
                "sharpest must be a head that the model has, LAYER.HEAD from 0; got "
                f"{layer}.{head}: {error}"
            ) from None
        names = (
            some if len(some) == len(examples) else [one.source or one.output for one in examples]
        )
        for text, example in zip(names, examples, strict=True):
            if confidence := confidence_in(example, layer, head):
                ranked.append((confidence[1], confidence[0], text))
    if not ranked:
        raise DataError(
            f"texts must have words that head {layer}.{head} looks from and at; got {len(texts)} "
            "texts without."
        )
    ranked.sort(key=lambda one: -one[0])
    best = ranked[:MOST]
    page = use.look([text for _, _, text in best], EVERYTHING, explain=False)
    opening = View(kind=best[0][1], layer=layer, head=head)  # type: ignore[arg-type]
    page.document = replace(page.document, opening=opening, tab=None)
    return page, [(text, value) for value, _, text in best]
