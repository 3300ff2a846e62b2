"""The viewer in a cell of a notebook."""

import html
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, TypeGuard, Unpack

from regard.checks import check_at_least
from regard.errors import DataError, SettingError
from regard.viewer.document import Document
from regard.viewer.example import GoldLinks
from regard.viewer.given import GivenWeights
from regard.viewer.html import page
from regard.viewer.parts import AskedRows, Attention, OneAttention
from regard.viewer.row_server import RowServer
from regard.viewer.search import SearchTree
from regard.viewer.summaries import LONGEST_WITH_ROWS, Padding, example_of, watched_rows
from regard.viewer.texts import Text
from regard.viewer.top_keys import HeadName

if TYPE_CHECKING:
    from regard.attention.inspect.summary import Summary
    from regard.viewer.given import Weights


Tokens = Text | Sequence[str]


class ExampleOptions(TypedDict, total=False):
    """Further arguments of ``example_of``."""

    row: int
    padding: Padding
    started: bool | None
    top_heads: Iterable[HeadName] | Literal["all"] | None
    gold: GoldLinks | None
    score: float | None
    search: SearchTree | None
    label: str | None


class NotebookPage:
    """A page that a notebook displays, in a frame that can reach nothing around it.

    Args:
        document: What is shown.
        height: Of the frame, in pixels.
        rows: What answers with exact rows, as ``show`` takes it; None shows those of the document.

    Attributes:
        document: What is shown.
        height: Of the frame, in pixels.

    Raises:
        SettingError: The height is below 100.

    Example:
        >>> import torch
        >>> page = show(torch.eye(3), ["I", "love", "you"], title="To itself", height=300)
        >>> page, page.height, page.page()[:15]
        (NotebookPage('To itself', 1 examples), 300, '<!doctype html>')
    """

    def __init__(self, document: Document, *, height: int = 760, rows: AskedRows | None = None):
        check_at_least("height", height, 100)
        self.document = document
        self.height = height
        self._server = None if rows is None else RowServer(rows)

    def save(self, path: str | Path) -> None:
        """Write the page as a file that needs nothing else, not even this process."""
        Path(path).write_text(self.page(), encoding="utf-8")

    def page(self) -> str:
        """The page that needs nothing else."""
        return page(self.document)

    def serve(self) -> str:
        """Answer with the page, and with exact rows where they are at hand, on the loopback.

        Returns:
            The page's address, which nobody can guess; it ends with the process, or with ``close``.
        """
        text = page(self.document, rows=self._server.address if self._server else None)
        self._server = self._server or RowServer(lambda *_: None)
        self._server.show(text)
        return self._server.home

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
        return f"NotebookPage({self.document.title!r}, {len(self.document.examples)} examples)"


def show(
    what: "Document | Summary | Iterable[Attention] | Weights",
    tokens: Tokens | None = None,
    *,
    output: Tokens | None = None,
    keys: Tokens | None = None,
    queries: Tokens | None = None,
    title: str = "Attention",
    model: str = "",
    height: int = 760,
    rows: AskedRows | None = None,
    **options: Unpack[ExampleOptions],
) -> NotebookPage:
    """The whole viewer in a notebook's cell: let it be the last expression of the cell.

    Weights of any origin are shown as heat maps: a matrix, the heads of a layer, or all heads of
    all layers. ``save`` writes the page as a file.

    Where ``regard.watch(model, keep=True)`` is shown, exact rows of texts too long to keep them in
    the page are computed by this process when people zoom in or point at a token.

    Args:
        what: A document; a summary of one attention; what ``regard.watch`` saw; or weights (N, M),
            (H, N, M) or (L, H, N, M), finite and none below zero.
        tokens: The tokens of the text, as ``example_of`` takes them. None numbers the keys of a
            summary and of weights. A document has its own.
        output: Those of the output, of a model that has two texts.
        keys: Another name of ``tokens``: what is looked at, across.
        queries: Another name of ``output``: who looks, down.
        title: Heading of the page.
        model: One line about the model.
        height: Of the frame, in pixels.
        rows: What answers with exact rows: a function of (example, kind, layer, head, queries),
            whose layer and head may be ``"mean"``. None goes by ``what``.
        options: See ``example_of``.

    Raises:
        SettingError: ``what`` is nothing that can be shown, tokens are given with a document, or
            a side is named twice.
        ShapeError: Weights have fewer axes or more.
        DataError: A weight is below zero or not finite, or there are more tokens than rows or
            columns.

    Example:
        >>> import torch
        >>> shown = show(torch.eye(3), keys=["I", "love", "you"], queries=["je", "t'", "aime"])
        >>> shown._repr_html_()[:8]
        '<iframe '
    """
    tokens = _side("keys", keys, "tokens", tokens)
    output = _side("queries", queries, "output", output)
    if isinstance(what, Document):
        if tokens is not None or output is not None or options:
            raise SettingError("tokens must be None for a document; got some. It has its own.")
        return NotebookPage(what, height=height, rows=rows)
    seen: Iterable[Attention]
    if _is_summary(what):
        seen, tokens, output = _one(what, tokens, output)
    elif _are_weights(what):
        seen = GivenWeights(what, is_cross=True if output is not None else None)
        _check_sizes(seen, tokens, output)
        tokens, output = _sides(seen.kind == "cross", *seen.sizes, tokens, output)
    elif isinstance(what, Iterable) and not isinstance(what, str | bytes):
        seen = what  # type: ignore[assignment]
    else:
        raise SettingError(
            f"what must be a document, a summary, what watch saw or weights; got "
            f"{type(what).__name__}."
        )
    example = example_of(seen, tokens, output=output, **options)
    document = Document(title=title, task="", model=model, examples=(example,))
    longest = max(len(example.source_tokens), len(example.output_tokens))
    if rows is None and longest > LONGEST_WITH_ROWS:
        rows = watched_rows(seen, example, options.get("row", 0), options.get("padding", "right"))
    return NotebookPage(document, height=height, rows=rows)


def _side(name: str, one: Tokens | None, other_name: str, other: Tokens | None) -> Tokens | None:
    if one is not None and other is not None:
        raise SettingError(f"{name} must be None where {other_name} is given; got both.")
    return other if one is None else one


def _is_summary(what: object) -> "TypeGuard[Summary]":
    return hasattr(what, "top_keys")


def _are_weights(what: object) -> "TypeGuard[Weights]":
    """Whether it is an array, or lists of numbers or of arrays."""
    if isinstance(what, list | tuple):
        return bool(what) and not hasattr(what[0], "kind") and isinstance(what[0], Iterable)
    return hasattr(what, "shape")


def _check_sizes(weights: GivenWeights, keys: Tokens | None, queries: Tokens | None) -> None:
    """See that names are as many as there are rows and columns: weights have no padding."""
    N, M = weights.sizes
    for name, names, size in (("queries", queries, N), ("keys", keys, M)):
        count = None if names is None else len(names.tokens if isinstance(names, Text) else names)
        if count not in (None, size):
            raise DataError(f"{name} must name each of {size}; got {count}.")


def _one(
    summary: "Summary", tokens: Tokens | None, output: Tokens | None
) -> tuple[list[Attention], Tokens, Tokens | None]:
    """A summary alone: of a text with itself if it is square, else of an output with a source."""
    *lead, N, M = summary.shape
    is_cross = output is not None or N != M
    heads = tuple(range(lead[-1] if lead else 1))
    attention = OneAttention("cross" if is_cross else "encoder", 0, heads, summary)
    return [attention], *_sides(is_cross, N, M, tokens, output)


def _sides(
    is_cross: bool,
    N: int,
    M: int,
    keys: Tokens | None,
    queries: Tokens | None,
) -> tuple[Tokens, Tokens | None]:
    """The tokens of both sides, numbered where they have no names."""
    keys = _numbered(M) if keys is None else keys
    if not is_cross:
        return keys, None
    return keys, _numbered(N) if queries is None else queries


def _numbered(count: int) -> list[str]:
    return [str(place + 1) for place in range(count)]
