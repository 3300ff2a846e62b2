"""The page in a real browser: it draws what the document says and complains of nothing."""

import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from regard.viewer import AttentionMap, Document, Example, GoldLinks, Token, View, page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,1000",
    "--remote-debugging-pipe",
)
LAUNCH = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4);"
    "os.execv(sys.argv[3], sys.argv[3:])"
)
HOSTILE = "</script><img src=x onerror=document.title='broken'>\u2028<!--"

pytestmark = [pytest.mark.browser, pytest.mark.slow]


class Browser:
    """One tab of Chromium, driven by the DevTools protocol over a pair of pipes."""

    def __init__(self, profile: str) -> None:
        assert CHROMIUM is not None
        reading, self._commands = os.pipe()
        self._answers, writing = os.pipe()
        # Chromium wants its pipes as 3 and 4, so first move them out of the way of these.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (reading, writing)]
        flags = [*FLAGS, f"--user-data-dir={profile}"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, *map(str, ends), CHROMIUM, *flags],
            pass_fds=ends,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (reading, writing, *ends):
            os.close(end)
        self._buffer = b""
        self._last = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        self.requests: list[str] = []

    def attach(self) -> None:
        tab = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=tab, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while (answer := self._next())["id"] != self._last:
            pass
        assert "error" not in answer, answer
        return dict(answer["result"])

    def _next(self) -> dict[str, Any]:
        """The next answer; events on the way are noted."""
        deadline = time.monotonic() + 60
        while True:
            while b"\0" in self._buffer:
                text, self._buffer = self._buffer.split(b"\0", 1)
                message = json.loads(text)
                if "id" in message:
                    return dict(message)
                self._note(message["method"], message["params"])
            ready, _, _ = select.select([self._answers], [], [], deadline - time.monotonic())
            chunk = os.read(self._answers, 1 << 16) if ready else b""
            assert chunk, "Chromium does not answer"
            self._buffer += chunk

    def _note(self, event: str, params: dict[str, Any]) -> None:
        if event == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"]))
        elif event == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.complaints.append(json.dumps(params["args"]))
        elif event == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"])
        elif event == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def open(self, address: str) -> None:
        self.complaints.clear()
        self.requests.clear()
        self.call("Page.navigate", url=address)
        deadline = time.monotonic() + 30
        ready = "location.href !== 'about:blank' && document.readyState === 'complete'"
        while not self.ask(ready):
            assert time.monotonic() < deadline, "the page does not finish loading"
            time.sleep(0.05)

    def ask(self, expression: str) -> Any:
        """What an expression of JavaScript is in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def close(self) -> None:
        os.close(self._commands)  # Chromium ends with its pipe
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._answers)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        if os.environ.get("CI") == "true":
            pytest.fail("Chromium must be installed where CI=true; none is on the path.")
        pytest.skip("no Chromium on the path")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        found = Browser(profile)
        try:
            found.attach()
            yield found
        finally:
            found.close()


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Browser]:
    """The document below in a tab; whatever the console says fails the test."""
    file = tmp_path / "page.html"
    file.write_text(page(document()), encoding="utf-8")
    browser.open(file.as_uri())
    yield browser
    assert browser.complaints == []
    assert [url for url in browser.requests if not url.startswith(("file:", "data:"))] == []


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves a folder and logs nothing."""

    def log_message(self, *_: object) -> None:
        pass


def document_in_html() -> str:
    return document().to_json().replace("<", "\\u003c")


def tokens(text: str, pieces: list[str]) -> tuple[Token, ...]:
    found, at = [], 0
    for piece in pieces:
        bare = piece.strip("▁")
        at = text.index(bare, at)
        found.append(Token(text=piece, start=at, end=at + len(bare)))
        at += len(bare)
    return tuple(found)


def document() -> Document:
    china = tokens("我爱中国", ["我", "爱", "中", "国"])
    english = tokens("I love China.", ["I", "▁love", "▁China", "."])
    rows = (
        (0.9, 0.1, 0.0, 0.0),
        (0.2, 0.7, 0.1, 0.0),
        (0.0, 0.02, 0.54321, 0.4),
        (0.0, 0.0, 0.3, 0.7),
    )
    other = tuple(tuple(reversed(row)) for row in rows)
    square = tuple(tuple(float(i == j) for j in range(4)) for i in range(4))
    first = Example(
        source="我爱中国",
        output="I love China.",
        source_tokens=china,
        output_tokens=english,
        score=-0.25,
        maps=(
            AttentionMap(kind="cross", layer=0, head=0, rows=rows),
            AttentionMap(kind="cross", layer=0, head=1, rows=other),
            AttentionMap(kind="cross", layer=1, head=0, rows=rows),
            AttentionMap(kind="decoder", layer=0, head=0, rows=square),
        ),
        gold=GoldLinks(sure=((0, 0), (1, 1), (2, 2), (3, 2)), possible=((3, 3),)),
    )
    hostile = Example(
        source=HOSTILE,
        output="\U0001f600 & <b>bold</b>",
        source_tokens=(Token(text=HOSTILE, start=0, end=len(HOSTILE)),),
        output_tokens=(Token(text="\U0001f600", start=0, end=1), Token(text="&", start=2, end=3)),
        maps=(AttentionMap(kind="cross", layer=0, head=0, rows=((1.0,), (1.0,))),),
    )
    return Document(
        title=f"我爱中国 {HOSTILE}",
        task="translation",
        model="none",
        examples=(first, hostile),
        opening=View(kind="cross", layer=1, head=0),
    )


def cells(browser: Browser, selector: str) -> list[list[int]]:
    found = f"[...document.querySelectorAll('.matrix td{selector}')]"
    return browser.ask(f"{found}.map(c => [Number(c.dataset.row), Number(c.dataset.column)])")


def test_matrix_has_every_weight_and_marks_the_largest_of_each_row(opened: Browser) -> None:
    assert len(cells(opened, "[data-weight]")) == 16
    weights = opened.ask(
        "[...document.querySelectorAll('[data-row=\"2\"][data-weight]')]"
        ".map(cell => cell.dataset.weight)"
    )
    assert weights == ["0", "0.02", "0.5432", "0.4"]
    assert cells(opened, ".best") == [[0, 0], [1, 1], [2, 2], [3, 3]]
    heads = (
        "[...document.querySelectorAll('.matrix thead th')]"
        ".map(head => [head.innerText, head.querySelector('bdi').lang])"
    )
    assert opened.ask(heads) == [[character, "zh"] for character in "我爱中国"]


def test_gold_links_are_outlined_and_explained(opened: Browser) -> None:
    assert cells(opened, "[data-gold=sure]") == [[0, 0], [1, 1], [2, 2], [2, 3]]
    assert cells(opened, "[data-gold=possible]") == [[3, 3]]
    assert "gold link" in opened.ask("document.querySelector('.legend').innerText")


CHOSEN = "[...document.querySelectorAll('.strip input:checked')].map(input => input.value)"
FIRST_ROW = (
    "[...document.querySelectorAll('[data-row=\"0\"][data-weight]')].map(c => c.dataset.weight)"
)


def test_keys_move_the_cell_and_change_head_layer_and_kind(opened: Browser) -> None:
    assert opened.ask(CHOSEN) == ["cross", "1", "0", "largest"]  # as the document asks
    for key in ("{", "ArrowDown", "ArrowDown", "ArrowRight"):
        opened.press(key)
    assert opened.ask(CHOSEN) == ["cross", "0", "0", "largest"]
    focused = "document.activeElement.getAttribute('aria-label')"
    assert opened.ask(focused) == "love looks at 爱: 0.7, its most, a gold link"
    assert opened.ask("document.querySelector('.weight').innerText") == "0.7"
    opened.press("]")
    assert opened.ask(focused) == "love looks at 爱: 0.1, a gold link"
    opened.press("k")
    assert opened.ask(CHOSEN) == ["decoder", "0", "0", "largest"]
    heads = "[...document.querySelectorAll('.matrix thead th')].map(th => th.innerText)"
    assert opened.ask(heads) == ["start", "I", "▁love", "▁China"]


def test_mean_of_a_layers_heads_is_shown(opened: Browser) -> None:
    opened.press("{")
    opened.press("[")
    assert opened.ask(CHOSEN) == ["cross", "0", "mean", "largest"]
    assert opened.ask(FIRST_ROW) == ["0.45", "0.05", "0.05", "0.45"]


def test_every_layer_counts_alike_in_their_mean(opened: Browser) -> None:
    opened.press("m")
    assert opened.ask(CHOSEN) == ["cross", "mean", "mean", "largest"]
    assert opened.ask(FIRST_ROW) == ["0.675", "0.075", "0.025", "0.225"]


def test_a_page_opens_with_the_mean_of_layers(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(page(replace(document(), opening=None)), encoding="utf-8")
    browser.open(file.as_uri())
    assert browser.ask(CHOSEN) == ["cross", "mean", "mean", "largest"]
    assert browser.complaints == []


def test_pointing_at_an_output_word_lights_its_links(opened: Browser) -> None:
    opened.ask(
        "document.querySelectorAll('.line')[1].children[1]"
        ".dispatchEvent(new PointerEvent('pointerover', {bubbles: true}))"
    )
    lit = (
        "[...document.querySelectorAll('path.lit')]"
        ".map(path => path.dataset.row + ' ' + path.dataset.column)"
    )
    assert sorted(opened.ask(lit)) == ["1 0", "1 1", "1 2"]
    assert opened.ask("document.querySelector('.texts .marked').innerText") == "love"


def test_text_never_becomes_markup(opened: Browser) -> None:
    opened.press(".")
    assert opened.ask("document.querySelectorAll('img, b').length") == 0
    assert opened.ask("document.title").startswith("我爱中国 </script>")
    assert opened.ask("document.querySelector('.texts dd').textContent") == HOSTILE
    assert opened.ask("document.querySelectorAll('.texts dd')[1].textContent").startswith(
        "\U0001f600 &"
    )


def test_theme_follows_the_system_and_the_button(opened: Browser) -> None:
    paper = "getComputedStyle(document.documentElement).backgroundColor"
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    light = opened.ask(paper)
    opened.call("Emulation.setEmulatedMedia", features=dark)
    assert opened.ask(paper) != light
    opened.ask("document.querySelector('.theme').click()")
    assert opened.ask(paper) == light
    opened.call("Emulation.setEmulatedMedia", features=[])


def test_modules_also_work_when_they_are_served_one_by_one(
    browser: Browser, tmp_path: Path
) -> None:
    folder = tmp_path / "static"
    shutil.copytree(str(files("regard.viewer") / "static"), folder)
    (folder / "index.html").write_text(
        '<meta charset="utf-8"><link rel="icon" href="data:,"><div id="regard"></div>'
        f'<script type="application/json" id="regard-data">{document_in_html()}</script>'
        '<script type="module" src="main.js"></script>',
        encoding="utf-8",
    )
    handler = partial(QuietHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        browser.open(f"http://127.0.0.1:{server.server_port}/index.html")
        assert len(cells(browser, "[data-weight]")) == 16
        server.shutdown()
    assert browser.complaints == []


def test_a_broken_page_says_so_and_is_noticed(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "broken.html"
    text = page(document()).replace('"version":1', '"version":9')
    file.write_text(text, encoding="utf-8")
    browser.open(file.as_uri())
    assert "could not be drawn" in browser.ask("document.querySelector('.failure[role]').innerText")
    assert any("version 1" in complaint for complaint in browser.complaints)
