"""The viewer in a cell of a notebook."""

import html
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.checks import check_at_least
from regard.errors import SettingError
from regard.viewer.document import Document
from regard.viewer.page import page
from regard.viewer.parts import Attention, OneAttention
from regard.viewer.row_server import AskedRows, RowServer
from regard.viewer.summaries import LONGEST_WITH_ROWS, example_of, watched_rows
from regard.viewer.texts import Text

if TYPE_CHECKING:
    from regard.attention.summary import Summary


class Shown:
    """A page that a notebook displays, in a frame that can reach nothing around it.

    Attributes:
        document: What is shown.
        height: Of the frame, in pixels.
    """

    def __init__(self, document: Document, *, height: int = 760, rows: AskedRows | None = None):
        check_at_least("height", height, 100)
        self.document = document
        self.height = height
        self._server = None if rows is None else RowServer(rows)

    def save(self, path: str | Path) -> None:
        """Write the page as a file that needs nothing else, not even this process."""
        Path(path).write_text(page(self.document), encoding="utf-8")

    def close(self) -> None:
        """Stop answering the page's questions for exact rows; what is shown stays."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def _repr_html_(self) -> str:
        """The page in a frame of its own."""
        text = page(self.document, rows=self._server.address if self._server else None)
        return (
            f'<iframe sandbox="allow-scripts allow-downloads" srcdoc="{html.escape(text)}" '
            f'style="width:100%;height:{self.height}px;border:0" title="Attention"></iframe>'
        )

    def __repr__(self) -> str:
        return f"Shown({self.document.title!r}, {len(self.document.examples)} examples)"


def show(
    what: "Document | Summary | Iterable[Attention]",
    tokens: Text | Sequence[str] | None = None,
    *,
    output: Text | Sequence[str] | None = None,
    title: str = "Attention",
    model: str = "",
    height: int = 760,
    rows: AskedRows | None = None,
    **options: Any,
) -> Shown:
    """The whole viewer in a notebook's cell: let it be the last expression of the cell.

    Where ``regard.watch(model, keep=True)`` is shown, exact rows of texts too long to keep them in
    the page are computed by this process when people zoom in or point at a token.

    Args:
        what: A document; a summary of one attention; or what ``regard.watch`` saw.
        tokens: The tokens of the text, as ``example_of`` takes them. None numbers the keys of a
            summary. A document has its own.
        output: Those of the output, of a model that has two texts.
        title: Heading of the page.
        model: One line about the model.
        height: Of the frame, in pixels.
        rows: What answers with exact rows: a function of (example, kind, layer, head, queries),
            whose layer and head may be ``"mean"``. None goes by ``what``.
        options: See ``example_of``.

    Raises:
        SettingError: ``what`` is nothing that can be shown, or tokens are given with a document.

    Example:
        >>> import torch, regard
        >>> shown = show(regard.summarize(torch.zeros(3, 4), torch.zeros(3, 4)))
        >>> shown._repr_html_()[:8]
        '<iframe '
    """
    if isinstance(what, Document):
        if tokens is not None or output is not None or options:
            raise SettingError("tokens must be None for a document; got some. It has its own.")
        return Shown(what, height=height, rows=rows)
    seen: Iterable[Attention]
    if hasattr(what, "top_keys"):
        seen, tokens, output = _one(what, tokens, output)
    elif isinstance(what, Iterable) and not isinstance(what, str | bytes):
        seen = what
    else:
        raise SettingError(
            f"what must be a document, a summary or what watch saw; got {type(what).__name__}."
        )
    example = example_of(seen, tokens, output=output, **options)
    document = Document(title=title, task="", model=model, examples=(example,))
    longest = max(len(example.source_tokens), len(example.output_tokens))
    if rows is None and longest > LONGEST_WITH_ROWS:
        rows = watched_rows(seen, example, options.get("row", 0), options.get("padding", "right"))
    return Shown(document, height=height, rows=rows)


def _one(
    summary: Any, tokens: Text | Sequence[str] | None, output: Text | Sequence[str] | None
) -> tuple[list[Attention], Text | Sequence[str], Text | Sequence[str] | None]:
    """A summary alone: of a text with itself if it is square, else of an output with a source."""
    *lead, N, M = summary.shape
    is_cross = output is not None or N != M
    heads = tuple(range(lead[-1] if lead else 1))
    attention = OneAttention("cross" if is_cross else "encoder", 0, heads, summary)
    keys = tokens if tokens is not None else _numbered(M)
    return [attention], keys, (output if output is not None else _numbered(N)) if is_cross else None


def _numbered(count: int) -> list[str]:
    return [str(place + 1) for place in range(count)]
