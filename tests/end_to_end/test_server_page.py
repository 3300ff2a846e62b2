"""The inspector, served, in a real browser: type a text, mute and scale heads, compare."""

import json
import urllib.request
import zipfile
from pathlib import Path

import pytest
from tests.end_to_end.browsing import open_tab, served_tab
from tests.end_to_end.server_clients import serving
from tests.unit.interop.tiny_folders import save_bert, save_gpt2

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LABELS = {"id2label": {0: "bad", 1: "good"}, "label2id": {"bad": 0, "good": 1}}
RUNS = Path(__file__).parents[1] / "fixtures" / "runs_33c24e5"
COLUMNS = "[...document.querySelectorAll('#replies > div')].map(each => each.innerText)"


@pytest.fixture(scope="module")
def server(run, other_run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    save_gpt2(folder / "gpt2")
    save_bert(folder / "reviews", "BertForSequenceClassification", **LABELS)
    save_bert(folder / "masked", "BertForMaskedLM")
    save_bert(folder / "bert")
    with zipfile.ZipFile(RUNS / "generation.zip") as packed:
        packed.extractall(folder)
    written = (folder / "run").rename(folder / "answers")
    options = [word for name in ("masked", "bert") for word in ("--model", folder / name)]
    runs = (folder / "gpt2", folder / "reviews", run, other_run, written)
    with serving(*runs, options=options) as served:
        yield served


@pytest.fixture
def page(chromium, server, tmp_path):
    with served_tab(chromium, server.address, tmp_path) as opened:
        yield opened


def look(tab, name, text):
    tab.page.select_option("#run", name)
    tab.page.fill("#text", text)
    tab.page.press("#text", "Enter")
    tab.wait(
        "text => document.querySelector('#regard h1')?.innerText.startsWith(text)"
        " && !document.querySelector('#status').innerText",
        text,
    )
    tab.settled()


def choose(tab, head, columns=2):
    tab.page.click(f'[data-head="{head}"]')
    columned(tab, columns)


def columned(tab, columns):
    tab.wait("count => document.querySelectorAll('#replies > div').length === count", columns)
    tab.wait("() => !document.querySelector('#status').innerText")
    tab.settled()


def replies(server, **members):
    request = urllib.request.Request(
        f"{server.address}attention",
        json.dumps(members).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        answers: list[dict[str, object]] = json.load(answer)["replies"]
    return answers


def test_a_language_model_continues_and_heads_are_muted_by_keyboard(page, server):
    look(page, "gpt2", "the cat sat")
    (plain,) = replies(server, run="gpt2", text="the cat sat")
    (column,) = page.ask(COLUMNS)
    assert column.startswith("Continuation") or column.startswith("CONTINUATION")
    assert "Likely next" in column or "LIKELY NEXT" in column
    page.page.focus(".muting summary")
    page.page.keyboard.press("Enter")
    for _ in range(3):  # the factor, the first head, the second
        page.page.keyboard.press("Tab")
    page.page.keyboard.press("Space")
    columned(page, 2)
    assert page.ask("document.activeElement.dataset.head") == "decoder 0 1"
    assert page.ask("document.querySelector('main.view').dataset.view") == "compare"
    edits = [{"kind": "decoder", "layer": 0, "heads": [1]}]
    _, changed = replies(server, run="gpt2", text="the cat sat", edits=edits)
    numbers = page.ask(
        "[...document.querySelectorAll('#replies .nexts data')].map(each => each.value)"
    )
    expected = [share for each in (plain, changed) for _, share in each["next_tokens"]]
    assert [float(each) for each in numbers] == expected
    texts = page.ask("[...document.querySelectorAll('#replies p')].map(each => each.textContent)")
    assert texts == [plain["text"], changed["text"]]
    # A link brings it back; without the heads it is as before.
    page.reload()
    columned(page, 2)
    assert page.page.get_attribute('[data-head="decoder 0 1"]', "aria-pressed") == "true"
    page.page.click(".mutes .clear")
    columned(page, 1)
    assert "heads=" not in page.page.url


def test_a_classifier_and_a_translator_answer_with_heads_scaled(page, server):
    look(page, "reviews", "the cat sat")
    assert page.ask(COLUMNS) == []
    assert page.ask("document.querySelector('main.view').dataset.view") == "answer"
    page.page.click(".muting summary")
    page.page.evaluate(
        "() => { const range = document.querySelector('.factor input'); range.value = 1.5;"
        "range.dispatchEvent(new Event('input')); range.dispatchEvent(new Event('change')); }"
    )
    choose(page, "encoder 1")
    edits = [{"kind": "encoder", "layer": 1, "heads": [0, 1, 2], "factor": 1.5}]
    answers = replies(server, run="reviews", text="the cat sat", edits=edits)
    numbers = page.ask(
        "[...document.querySelectorAll('#replies .nexts data')].map(each => each.value)"
    )
    assert [float(each) for each in numbers] == [
        share for each in answers for _, share in each["labels"]
    ]
    assert "1.5" in page.ask(COLUMNS)[1]
    look(page, "run", "我爱中国")
    assert page.ask(COLUMNS) == []
    assert page.page.locator('[data-head="encoder 1 0"]').count() == 0
    choose(page, "cross 0 0")
    assert page.text("#regard h1").startswith("我爱中国 → ")


def test_a_mask_is_filled_in_and_an_encoder_is_looked_at(page):
    look(page, "masked", "the [MASK] sat")
    (column,) = page.ask(COLUMNS)
    assert "at the mask" in column.lower()
    look(page, "bert", "the cat sat")
    assert page.ask(COLUMNS) == []
    page.page.click(".muting summary")
    page.page.click('[data-head="encoder 0 0"]')
    page.page.wait_for_selector("main.view[data-view=compare] canvas")
    assert page.ask(COLUMNS) == []


def tabs(tab):
    return list(tab.ask("[...document.querySelectorAll('[role=tab]')].map(e => e.dataset.view)"))


def test_an_answer_is_explained_once_when_it_is_first_asked_why(page):
    look(page, "gpt2", "the cat sat")
    assert {"trust", "lens", "neurons"} <= set(tabs(page))

    def asked():
        return sum(each.endswith("/attribution") for each in page.requests)

    assert asked() == 0
    page.page.click("[role=tab][data-view=trust]")
    page.page.wait_for_selector("main.view .contribution")
    for view, shown in (("lens", "table.lens button"), ("neurons", ".sums [data-of=score]")):
        page.page.click(f"[role=tab][data-view={view}]")
        page.page.wait_for_selector(shown)
    page.click("[role=tab][data-view=text]")
    page.click(".strip input[value=surprise]")
    page.page.wait_for_selector("main.view .prose .shaded")
    assert asked() == 1
    page.page.click("#language")
    page.page.wait_for_selector(":root:lang(zh) main.view .prose .shaded")
    assert asked() == 1


def test_it_fits_a_phone_in_the_dark_and_speaks_chinese(page):
    page.page.set_viewport_size({"width": 400, "height": 800})
    page.page.emulate_media(color_scheme="dark")
    look(page, "gpt2", "the cat sat")
    page.page.click("#language")
    page.page.click(".muting summary")
    assert page.text(".muting summary") == "关掉或缩放一些头"
    choose(page, "decoder 1 2")
    assert page.ask("document.documentElement.scrollWidth") <= 400
    assert "去掉被关掉的头" in page.ask(COLUMNS)[1]
    page.page.click("#language")
    assert "without the muted heads" in page.ask(COLUMNS)[1].lower()
    assert page.ask("document.documentElement.lang") == "en"


def test_a_text_is_typed_and_its_picture_is_there(page):
    look(page, "run", "我爱中国")
    page.page.wait_for_selector("#regard main svg path")
    assert "我爱中国 → " in page.text("#regard h1")
    assert page.ask("new URLSearchParams(location.search).get('text')") == "我爱中国"


def test_texts_looked_at_before_stay_to_be_compared_with(page):
    look(page, "run", "我爱中国")
    look(page, "other", "今天很冷")
    offered = page.ask("[...document.querySelectorAll('#example option')].map(o => o.text)")
    assert [each.split(". ")[1] for each in offered] == ["今天很冷", "我爱中国"]
    assert page.ask("new URLSearchParams(location.search).get('run')") == "other"


def test_a_link_shows_the_text_again_and_dark_is_dark(page, server):
    page.page.emulate_media(color_scheme="dark")
    page.page.goto(f"{server.address}?text=我爱中国&target=I+love+China.&run=run")
    page.page.wait_for_selector("#regard h1")
    assert page.text("#regard h1") == "我爱中国 → I love China."
    paper = page.ask("getComputedStyle(document.documentElement).backgroundColor")
    assert max(int(part) for part in paper[4:-1].split(",")) < 60


def test_a_refusal_is_a_sentence_and_the_next_text_is_shown(page):
    page.page.fill("#text", "a\x07")
    page.page.press("#text", "Enter")
    page.page.wait_for_selector("#failure:not([hidden])")
    assert page.text("#failure") == (r"text must hold no control characters; got '\x07' at 1.")
    assert any("422" in each for each in page.complaints)
    page.complaints.clear()  # the browser's own line about the status
    look(page, "run", "我爱中国")
    assert page.page.locator("#failure").is_hidden()


def test_a_text_longer_than_the_model_is_refused_in_words(page):
    text = "the cat sat " * 40
    page.page.select_option("#run", "gpt2")
    page.page.fill("#text", text)
    page.page.press("#text", "Enter")
    page.page.wait_for_selector("#failure:not([hidden])")
    assert "text must be at most 77 tokens long" in page.text("#failure")
    assert page.page.input_value("#text") == text  # to be shortened
    assert not page.page.locator("#regard main").count()
    page.complaints.clear()  # the browser's own line about the status
    look(page, "gpt2", "the cat sat")
    assert page.page.locator("#failure").is_hidden()


def test_a_server_with_a_token_requires_it(chromium, run, tmp_path):
    with serving(run, options=["--token", "s3cret"]) as server:
        context = chromium.new_context()
        opened = open_tab(context, tmp_path)
        opened.page.goto(server.address)
        opened.page.wait_for_selector("#failure:not([hidden])")
        assert "This server asks for a token. Whoever started it has one" in opened.text("#failure")
        opened.page.fill("#text", "我爱中国")
        opened.page.fill("#token", "s3cret")
        opened.page.press("#token", "Enter")
        opened.page.wait_for_selector("#regard h1")
        context.close()


def test_a_run_that_writes_answers_has_an_output_to_explain_and_a_beam(page):
    page.page.select_option("#run", "answers")
    page.page.wait_for_selector("#beam[placeholder='5']")
    assert "Output to explain" in page.text("label[for=target]")
    page.page.fill("#text", "Anna reads in the garden. It rains.")
    page.page.fill("#target", "in the garden")
    page.page.fill("#beam", "2")
    page.page.press("#target", "Enter")
    page.page.wait_for_selector("#regard h1")
    page.settled()
    assert "in the garden" in page.text("#regard h1")
    assert "target=in+the+garden&beam_size=2" in page.page.url
