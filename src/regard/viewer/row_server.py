"""Exact rows of weights for a page, answered by this process."""

import secrets
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal
from urllib.parse import parse_qs, urlsplit

import numpy as np

from regard.errors import RegardError
from regard.viewer.example import Head, Layer
from regard.viewer.layer_summary import AXES
from regard.viewer.parts import AskedRows

MOST_QUERIES = 64  # asked for at a time


class RowServer:
    """Answers on the loopback, to whoever knows the address, which nobody can guess.

    It ends with the process, or with ``close``.

    Attributes:
        address: What a page asks, as ``static/fetched.js`` says.
        home: Where ``page`` is found, once it is given.
    """

    def __init__(self, rows: AskedRows) -> None:
        folder = f"/{secrets.token_urlsafe(24)}/"
        self._pages: dict[str, bytes] = {}  # by path
        self._folder = folder
        own = {"rows": staticmethod(rows), "folder": folder, "pages": self._pages}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), own))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.home = f"http://127.0.0.1:{self._server.server_port}{folder}"
        self.address = f"{self.home}rows"

    def show(self, page: str) -> None:
        """Answer with this page at ``home``."""
        self._pages[self._folder] = page.encode()

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    rows: AskedRows
    folder: str
    pages: dict[str, bytes]

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        folder, slash, name = asked.path.rpartition("/")
        if not secrets.compare_digest(f"{folder}{slash}".encode(), self.folder.encode()):
            return self._answer(404)
        if not name and self.pages:
            return self._answer(200, self.pages[self.folder], "text/html; charset=utf-8")
        if name != "rows":
            return self._answer(404)
        try:
            found = self.rows(*read_question(asked.query))
        except (RegardError, ValueError, IndexError, KeyError):
            return self._answer(400)
        if found is None:
            return self._answer(404)
        return self._answer(200, np.ascontiguousarray(found, dtype="<f4").tobytes())

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


def read_question(query: str) -> tuple[int, str, Layer, Head, list[int]]:
    """Parse the query of ``static/fetched.js``.

    Raises:
        ValueError: Something is missing, or no number, or there are too many queries.

    Example:
        >>> read_question("example=0&kind=cross&layer=1&head=mean&queries=3,4")
        (0, 'cross', 1, 'mean', [3, 4])
    """
    asked = {name: values[-1] for name, values in parse_qs(query).items()}
    try:
        kind = asked["kind"]
        queries = [int(one) for one in asked["queries"].split(",")]
        numbers = int(asked["example"]), _number(asked["layer"]), _number(asked["head"])
    except KeyError as error:
        raise ValueError(f"question must have {error}") from None
    if kind not in AXES or not 0 < len(queries) <= MOST_QUERIES or min(queries) < 0:
        raise ValueError("question must be of a known kind and of 1 to 64 queries")
    return numbers[0], kind, numbers[1], numbers[2], queries


def _number(text: str) -> int | Literal["mean"]:
    return "mean" if text == "mean" else int(text)
