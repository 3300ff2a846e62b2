"""The viewer in a cell of a notebook, and a server of exact rows of weights for its page."""

import html
import secrets
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeGuard, Unpack
from urllib.parse import parse_qs, urlsplit

import numpy as np

from regard.checks import check_count, check_path
from regard.errors import DataError, RegardError, SettingError
from regard.files import write_file
from regard.viewer.document import Document
from regard.viewer.example import Head, Layer, Sides
from regard.viewer.html import page
from regard.viewer.layer_summary import AXES
from regard.viewer.parts import Attention, OneAttention, PlainWeights, RowSource
from regard.viewer.summaries import (
    LONGEST_WITH_ROWS,
    HeadName,
    KnownFields,
    Padding,
    example_of,
    watched_rows,
)
from regard.viewer.texts import Text

if TYPE_CHECKING:
    from regard.attention.inspect.summary import Summary
    from regard.viewer.parts import Weights

Tokens = Text | Sequence[str]
MOST_QUERIES = 64  # of one request


class ExampleOptions(KnownFields, total=False):
    """Further arguments of ``example_of``."""

    row: int
    padding: Padding
    top_heads: Iterable[HeadName] | Literal["all"] | None


class NotebookPage:
    """A page that a notebook displays, in a frame that can reach nothing around it.

    Args:
        document: Data of the page.
        height: Of the frame, in pixels.
        rows: Source of exact rows, as ``show`` takes it; None shows those of the document.

    Raises:
        SettingError: The height is below 100.

    Example:
        >>> import torch
        >>> page = show(torch.eye(3), ["I", "love", "you"], title="To itself", height=300)
        >>> page, page.height, page.page()[:15]
        (NotebookPage('To itself', 1 examples), 300, '<!doctype html>')
    """

    def __init__(self, document: Document, *, height: int = 760, rows: RowSource | None = None):
        check_count("height", height, 100)
        self.document = document
        self.height = height
        self._server = None if rows is None else RowServer(rows)

    def save(self, path: str | Path) -> None:
        """Write the page as a file that needs nothing else, not even this process.

        Raises:
            RunError: The file cannot be written; one that is there stays as it is.
        """
        check_path("path", path)
        write_file(Path(path), self.page().encode())

    def page(self) -> str:
        """Make the page that needs nothing else."""
        return page(self.document)

    def _live_page(self) -> str:
        return page(self.document, rows=self._server.address if self._server else None)

    def serve(self) -> str:
        """Answer with the page, and with exact rows where they are at hand, on the loopback.

        Returns:
            The page's address, which nobody can guess; it ends with the process, or with ``close``.
        """
        text = self._live_page()
        self._server = self._server or RowServer(lambda *_: None)
        self._server.show(text)
        return self._server.home

    def close(self) -> None:
        """Stop answering requests for exact rows; the page stays."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def _repr_html_(self) -> str:
        """Put the page in a frame of its own."""
        text = html.escape(self._live_page())
        return (
            f'<iframe sandbox="allow-scripts allow-downloads" srcdoc="{text}" '
            f'style="width:100%;height:{self.height}px;border:0" title="Attention"></iframe>'
        )

    def __getstate__(self) -> dict[str, object]:
        """Leave the server out of copies, which show the rows of the document."""
        return {**vars(self), "_server": None}

    def __repr__(self) -> str:
        return f"NotebookPage({self.document.title!r}, {len(self.document.examples)} examples)"


def show(
    what: "Document | Summary | Iterable[Attention] | Weights",
    tokens: Tokens | None = None,
    *,
    output: Tokens | None = None,
    keys: Tokens | None = None,
    queries: Tokens | None = None,
    names: Sequence[str] | None = None,
    title: str = "Attention",
    model: str = "",
    height: int = 760,
    rows: RowSource | None = None,
    **options: Unpack[ExampleOptions],
) -> NotebookPage:
    """Show the viewer in a notebook's cell: let it be the last expression of the cell.

    Weights of any origin are shown as heat maps: a matrix, the heads of a layer, or all heads of
    all layers. ``save`` writes the page as a file.

    Where ``regard.watch(model, keep=True)`` is shown, exact rows of texts too long to keep them in
    the page are computed by this process when people zoom in or point at a token.

    Args:
        what: A document; a summary of one attention; a record of ``regard.watch``; or weights
            (N, M), (H, N, M) or (L, H, N, M), finite and none below zero.
        tokens: The tokens of the text, as ``example_of`` takes them. None numbers the keys of a
            summary and of weights. A document has its own.
        output: Those of the output, of a model that has two texts.
        keys: Another name of ``tokens``: those looked at, across.
        queries: Another name of ``output``: those that look, down.
        names: Names of unlike heads, such as their masks or bandwidths: the page opens at the
            first, and has no mean of them. None numbers the heads.
        title: Heading of the page.
        model: One line about the model.
        height: Of the frame, in pixels.
        rows: Source of exact rows: a function of (example, kind, layer, head, queries),
            whose layer and head may be ``"mean"``. None goes by ``what``.
        options: See ``example_of``.

    Raises:
        SettingError: ``what`` is nothing that can be shown, tokens or names are given with a
            document, or a side is named twice.
        ShapeError: Weights have fewer axes or more.
        DataError: A weight is below zero or not finite, there are more tokens than rows or columns,
            or fewer names than heads.

    Example:
        >>> import torch
        >>> cell = show(torch.eye(3), keys=["I", "love", "you"], queries=["je", "t'", "aime"])
        >>> cell._repr_html_()[:8]
        '<iframe '
    """
    tokens = _side("keys", keys, "tokens", tokens)
    output = _side("queries", queries, "output", output)
    if isinstance(what, Document):
        if tokens is not None or output is not None or options:
            raise SettingError("tokens must be None for a document; got some. It has its own.")
        if names is not None:
            raise SettingError("names must be None for a document; got some. It has its own.")
        return NotebookPage(what, height=height, rows=rows)
    calls: Iterable[Attention]
    sides: Sides = "queries and keys"
    if _is_summary(what):
        calls, tokens, output = _one(what, tokens, output)
    elif _are_weights(what):
        calls = PlainWeights(what, is_cross=True if output is not None else None)
        _check_sizes(calls, tokens, output)
        tokens, output = _sides(calls.kind == "cross", *calls.sizes, tokens, output)
    elif isinstance(what, Iterable) and not isinstance(what, str | bytes):
        calls, sides = what, "texts"  # type: ignore[assignment]
    else:
        raise SettingError(
            f"what must be a document, a summary, what watch saw or weights; got "
            f"{type(what).__name__}."
        )
    example = example_of(calls, tokens, output=output, **options)
    example = replace(example, sides=sides, head_names=tuple(names or ()))
    document = Document(title=title, task="", model=model, examples=(example,))
    longest = max(len(example.source_tokens), len(example.output_tokens))
    if rows is None and longest > LONGEST_WITH_ROWS:
        rows = watched_rows(calls, example, options.get("row", 0), options.get("padding", "right"))
    return NotebookPage(document, height=height, rows=rows)


def _side(
    name: str, first: Tokens | None, second_name: str, second: Tokens | None
) -> Tokens | None:
    if first is not None and second is not None:
        raise SettingError(f"{name} must be None where {second_name} is given; got both.")
    return second if first is None else first


def _is_summary(value: object) -> "TypeGuard[Summary]":
    return hasattr(value, "top_keys")


def _are_weights(value: object) -> "TypeGuard[Weights]":
    """Whether it is an array, or lists of numbers or of arrays."""
    if isinstance(value, list | tuple):
        return bool(value) and not hasattr(value[0], "kind") and isinstance(value[0], Iterable)
    return hasattr(value, "shape")


def _check_sizes(weights: PlainWeights, keys: Tokens | None, queries: Tokens | None) -> None:
    """Raise DataError unless there is a name for each row and column: weights have no padding."""
    N, M = weights.sizes
    for name, names, size in (("queries", queries, N), ("keys", keys, M)):
        count = None if names is None else len(names.tokens if isinstance(names, Text) else names)
        if count not in (None, size):
            raise DataError(f"{name} must name each of {size}; got {count}.")


def _one(
    summary: "Summary", tokens: Tokens | None, output: Tokens | None
) -> tuple[list[Attention], Tokens, Tokens | None]:
    """Wrap a summary: of a text with itself if it is square, else of an output with a source."""
    *lead, N, M = summary.shape
    is_cross = output is not None or N != M
    heads = tuple(range(lead[-1] if lead else 1))
    attention = OneAttention("cross" if is_cross else "encoder", 0, heads, summary)
    return [attention], *_sides(is_cross, N, M, tokens, output)


def _sides(
    is_cross: bool, N: int, M: int, keys: Tokens | None, queries: Tokens | None
) -> tuple[Tokens, Tokens | None]:
    """Return the tokens of both sides, numbered where they have no names."""
    keys = [str(number) for number in range(1, M + 1)] if keys is None else keys
    if is_cross and queries is None:
        queries = [str(number) for number in range(1, N + 1)]
    return keys, queries if is_cross else None


class RowServer:
    """Answers on the loopback, at an address that nobody can guess, until ``close``."""

    def __init__(self, rows: RowSource) -> None:
        folder = f"/{secrets.token_urlsafe(24)}/"
        self._pages: dict[str, bytes] = {}  # by path
        self._folder = folder
        members = {"rows": staticmethod(rows), "folder": folder, "pages": self._pages}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), members))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.home = f"http://127.0.0.1:{self._server.server_port}{folder}"  # of the page
        self.address = f"{self.home}rows"  # of the rows, as ``static/live.js`` requests them

    def show(self, page: str) -> None:
        """Answer with this page at ``home``."""
        self._pages[self._folder] = page.encode()

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    rows: RowSource
    folder: str
    pages: dict[str, bytes]

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        folder, slash, name = url.path.rpartition("/")
        if not secrets.compare_digest(f"{folder}{slash}".encode(), self.folder.encode()):
            return self._answer(404)
        if not name and self.pages:
            return self._answer(200, self.pages[self.folder], "text/html; charset=utf-8")
        if name != "rows":
            return self._answer(404)
        try:
            rows = self.rows(*parse_query(url.query))
        except (RegardError, ValueError, IndexError, KeyError):
            return self._answer(400)
        if rows is None:
            return self._answer(404)
        return self._answer(200, np.ascontiguousarray(rows, dtype="<f4").tobytes())

    def _answer(
        self, status: int, body: bytes = b"", kind: str = "application/octet-stream"
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        # A frame without an origin of its own asks; the path is the secret.
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def handle(self) -> None:
        with suppress(ConnectionError):  # whoever asked has gone: a page that was closed
            super().handle()

    def log_message(self, *_: object) -> None:
        """A notebook's output is no log."""


def parse_query(query: str) -> tuple[int, str, Layer, Head, list[int]]:
    """Parse a request of ``static/live.js``; ValueError if it is none."""
    values = {name: texts[-1] for name, texts in parse_qs(query).items()}
    try:
        kind = values["kind"]
        queries = [int(one) for one in values["queries"].split(",")]
        numbers = int(values["example"]), _number(values["layer"]), _number(values["head"])
    except KeyError as error:
        raise ValueError(f"question must have {error}") from None
    if kind not in AXES or not 0 < len(queries) <= MOST_QUERIES or min(queries) < 0:
        raise ValueError("question must be of a known kind and of 1 to 64 queries")
    return numbers[0], kind, numbers[1], numbers[2], queries


def _number(text: str) -> int | Literal["mean"]:
    return "mean" if text == "mean" else int(text)
