"""The inspector, served, in a real browser: type a text and see what the model looked at."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.end_to_end.browsing import Tab, open_tab, served_tab
from tests.end_to_end.server_clients import Server, serving

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def server(run: Path, other_run: Path) -> Iterator[Server]:
    with serving(run, other_run) as server:
        yield server


@pytest.fixture
def inspector(chromium: Browser, server: Server, tmp_path: Path) -> Iterator[Tab]:
    with served_tab(chromium, server.address, tmp_path) as opened:
        yield opened


def look(tab: Tab, text: str) -> None:
    tab.page.fill("#text", text)
    tab.page.press("#text", "Enter")
    tab.page.wait_for_function(
        "text => document.querySelector('#regard h1')?.innerText.startsWith(text)", arg=text
    )


def test_a_text_is_typed_and_its_picture_is_there(inspector: Tab):
    look(inspector, "我爱中国")
    inspector.page.wait_for_selector("#regard main svg path")
    assert "我爱中国 → " in inspector.text("#regard h1")
    assert inspector.ask("document.querySelector('#told').innerText") == ""
    assert inspector.ask("new URLSearchParams(location.search).get('text')") == "我爱中国"


def test_texts_looked_at_before_stay_to_be_compared_with(inspector: Tab):
    look(inspector, "我爱中国")
    inspector.page.select_option("#run", index=1)
    look(inspector, "今天很冷")
    offered = inspector.ask("[...document.querySelectorAll('#example option')].map(o => o.text)")
    assert [each.split(". ")[1] for each in offered] == ["今天很冷", "我爱中国"]
    assert inspector.ask("new URLSearchParams(location.search).get('run')") == "other"


def test_a_link_shows_the_text_again_and_dark_is_dark(inspector: Tab, server: Server):
    inspector.page.emulate_media(color_scheme="dark")
    inspector.page.goto(f"{server.address}?text=我爱中国&target=I+love+China.")
    inspector.page.wait_for_selector("#regard h1")
    assert inspector.text("#regard h1") == "我爱中国 → I love China."
    paper = inspector.ask("getComputedStyle(document.documentElement).backgroundColor")
    assert max(int(part) for part in paper[4:-1].split(",")) < 60


def test_a_refusal_is_a_sentence_and_the_next_text_is_shown(inspector: Tab):
    inspector.page.fill("#text", "a\x07")
    inspector.page.press("#text", "Enter")
    inspector.page.wait_for_selector("#failure:not([hidden])")
    assert inspector.text("#failure") == (r"text must hold no control characters; got '\x07' at 1.")
    assert any("422" in each for each in inspector.complaints)
    inspector.complaints.clear()  # the browser's own line about the status
    look(inspector, "我爱中国")
    assert inspector.page.locator("#failure").is_hidden()


def test_a_server_with_a_token_requires_it(chromium: Browser, run: Path, tmp_path: Path):
    with serving(run, options=["--token", "s3cret"]) as server:
        context = chromium.new_context()
        opened = open_tab(context, tmp_path)
        opened.page.goto(server.address)
        opened.page.wait_for_selector("#failure:not([hidden])")
        assert "token must be the server's; got none." in opened.text("#failure")
        opened.page.fill("#text", "我爱中国")
        opened.page.fill("#token", "s3cret")
        opened.page.press("#token", "Enter")
        opened.page.wait_for_selector("#regard h1")
        context.close()
