"""Debian's Chromium, driven by Playwright, for every test that opens a page."""

import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Page, sync_playwright

from regard.viewer import Example, HeadMap, Token, page, show

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
CHOSEN = "[...document.querySelectorAll('.choices .strip input:checked')].map(input => input.value)"
LOCAL = ("file:", "data:", "blob:", "about:")


@dataclass
class Tab:
    """A page, with its console messages and requests since it was made."""

    page: Page
    folder: Path
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open(self, document, fragment="", **options):
        """Shows the page of a document, as a file."""
        file = self.folder / "page.html"
        file.write_text(page(document, **options), encoding="utf-8")
        self.page.goto("about:blank")
        self.page.goto(f"{file.as_uri()}{fragment}")
        return self.settled()

    def settled(self):
        """Waits until the page has drawn its latest state."""
        self.page.wait_for_selector("main.view:not([aria-busy]) > *")
        return self

    def address(self):
        """The page's address, once it holds the latest state."""
        # It is written 120 ms after a change at the latest, and timers of a page keep their order.
        self.page.evaluate("() => new Promise(done => setTimeout(done, 150))")
        return self.page.url

    def state(self):
        """The latest state as the address has it, by names."""
        return dict(parse_qsl(urlsplit(self.address()).fragment))

    def reload(self):
        """Loads the page again, once its address holds its latest state."""
        self.address()
        self.page.reload()
        return self

    def press(self, *keys):
        """Presses keys, one after another."""
        for key in keys:
            self.page.keyboard.press(key)
            self.settled()
        return self

    def click(self, selector, **options):
        """Clicks the first such element."""
        self.page.locator(selector).first.click(**options)
        return self.settled()

    def ask(self, expression, argument=None):
        return self.page.evaluate(expression, argument)

    def wait(self, function, argument=None):
        """Waits until a function of JavaScript, ``(argument) => …``, is true in the page."""
        self.page.wait_for_function(function, arg=argument)

    def text(self, selector):
        return self.page.locator(selector).first.inner_text()

    def saved(self, kind):
        """The file that the button of this name saves."""
        with self.page.expect_download() as download:
            self.page.locator(".saving button", has_text=kind).click()
        return Path(download.value.path()).read_bytes()

    def outside(self):
        """The requests that left the file."""
        return [address for address in self.requests if not address.startswith(LOCAL)]


def tokens(text, pieces):
    """Pieces of a text, whose marks of spaces are not in it."""
    tokens_found, position = [], 0
    for piece in pieces:
        bare = piece.strip("▁")
        position = text.index(bare, position)
        tokens_found.append(Token(text=piece, start=position, end=position + len(bare)))
        position += len(bare)
    return tuple(tokens_found)


def one_text(text, rows, *, kind="encoder", layers=1, heads=1):
    """A text that a model reads, or that it wrote, with the same weights in every head."""
    maps = tuple(
        HeadMap(kind=kind, layer=layer, head=head, rows=rows)
        for layer in range(layers)
        for head in range(heads)
    )
    side = "output" if kind == "decoder" else "source"
    texts = {"source": "", "output": "", "source_tokens": (), "output_tokens": ()}
    return Example(
        **{**texts, side: text.text, f"{side}_tokens": text.tokens}, maps=maps, started=False
    )


def written(text, weights):
    """A text that a decoder wrote, with the weights of its layers and heads."""
    (example,) = show(weights, text).document.examples
    summaries = tuple(replace(one, kind="decoder") for one in example.summaries)
    sides = {"source": "", "source_tokens": (), "output": text.text, "output_tokens": text.tokens}
    return replace(example, **sides, summaries=summaries, started=False, sides="texts")


def open_tab(context, folder):
    """A new page whose complaints and requests are kept."""
    tab = Tab(context.new_page(), folder)
    tab.page.on(
        "console",
        lambda message: (
            tab.complaints.append(message.text) if message.type in ("error", "warning") else None
        ),
    )
    tab.page.on("pageerror", lambda error: tab.complaints.append(str(error)))
    tab.page.on("request", lambda request: tab.requests.append(request.url))
    tab.page.set_default_timeout(60_000)
    return tab


@pytest.fixture(scope="module")
def chromium():
    """One Chromium for all tests of a module."""
    if CHROMIUM is None:
        if os.environ.get("CI") == "true":
            pytest.fail("Chromium must be installed where CI=true; none is on the path.")
        pytest.skip("no Chromium on the path")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


@contextmanager
def quiet_tab(chromium, folder, **options):
    """A fresh page of 1280 × 1000; it must not complain, and must ask for nothing outside."""
    context = chromium.new_context(
        viewport={"width": 1280, "height": 1000}, accept_downloads=True, **options
    )
    opened = open_tab(context, folder)
    yield opened
    context.close()
    assert not opened.complaints, opened.complaints
    assert not opened.outside(), opened.outside()


@contextmanager
def served_tab(chromium, address, folder):
    """The page of a server; it must not complain, and must ask nobody else."""
    context = chromium.new_context(viewport={"width": 1280, "height": 1000}, locale="en-US")
    opened = open_tab(context, folder)
    opened.page.goto(address)
    opened.page.wait_for_selector("#status:not(:empty)")
    yield opened
    context.close()
    assert not opened.complaints, opened.complaints
    assert all(each.startswith((address, "data:", "blob:")) for each in opened.requests)


@pytest.fixture
def tab(chromium, tmp_path):
    """A quiet tab of an English browser in the light."""
    with quiet_tab(chromium, tmp_path, color_scheme="light") as opened:
        yield opened


@pytest.fixture
def chinese(chromium, tmp_path):
    """A quiet tab of a browser whose language is Chinese."""
    with quiet_tab(chromium, tmp_path, locale="zh-CN") as opened:
        yield opened
