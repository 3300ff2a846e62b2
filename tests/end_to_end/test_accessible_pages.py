"""Every view of every page keeps axe's rules in both languages and themes, and fits a phone."""

import re
from dataclasses import replace

import pytest
import torch
from tests.end_to_end.browsing import open_tab
from tests.end_to_end.long_texts import long_document
from tests.end_to_end.server_clients import serving
from tests.end_to_end.test_comparing_page import two_models
from tests.end_to_end.test_explained_page import document as explained_document
from tests.end_to_end.test_page_deeper import document as pair_document
from tests.end_to_end.test_page_languages import opinion, unlike_heads
from tests.end_to_end.test_typing_page import opened as typed
from tests.end_to_end.test_views import document as translation
from tests.end_to_end.test_views import example
from tests.live_models import untrained
from tests.unit.interop.tiny_folders import save_bert, save_gpt2

from regard.viewer import Change, Image, Prediction

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LOOKS = [("light", "en", 1280), ("dark", "zh", 400)]
SEARCHED = "kind=cross&layer=1&head=1&row=3&column=2"


def labelled():
    """A text with a label, a value of each token, and edits that changed its output."""
    whole = example()
    answer = Prediction(
        labels=(("good", 0.7), ("bad", 0.3)),
        tags=(),
        values=(0.9, 0.1, 0.4, 0.2),
        measure="the more the query of the pooling looks at it",
    )
    edited = Change(edit="layer 1, head 1 muted", output="We love China.", score=-1.5)
    maps = tuple(map_ for map_ in whole.maps if map_.kind == "encoder")
    written = {"output": "", "output_tokens": (), "search": None, "score": None}
    read = replace(whole, **written, maps=maps, answer=answer)
    return translation(read, replace(whole, changes=(edited,)))


def tagged():
    """A text whose words have tags, two of them of one kind."""
    (read, *_) = labelled().examples
    answer = replace(read.answer, labels=(), tags=("B-LOC", "I-LOC", "O", "B-PER"), values=())
    return translation(replace(read, answer=answer))


def pictured():
    """A picture of four parts that look at each other evenly."""
    (read, *_) = labelled().examples
    boxes = tuple((top, left, 2, 2) for top in (0, 2) for left in (0, 2))
    pixels = torch.linspace(0, 1, 16).view(4, 4, 1).tolist()
    return translation(replace(read, image=Image(pixels=pixels, boxes=boxes)))


PAGES = {
    **{
        f"{view} of a translation": (translation, f"view={view}&{SEARCHED}")
        for view in ("words", "map", "arcs", "text", "flow", "grid", "compare")
    },
    "maps of heads": (translation, "view=grid&measure=map"),
    "heads of a measure": (pair_document, "view=grid&measure=induction"),
    "several words": (pair_document, "view=words&picked=rows_2_4"),
    "a pair": (pair_document, "view=words&pair=ab&picked=rows_2_4"),
    "a pair as arcs": (pair_document, "view=arcs&picked=columns_2_4&pair=bb"),
    "a pair as text": (pair_document, "view=text&pair=ba&column=2"),
    "neurons": (pair_document, "view=neurons&layer=1&head=1&row=3&column=2"),
    "no neurons": (pair_document, "view=neurons&layer=1&head=2"),
    "trust": (explained_document, "view=trust"),
    "stream": (explained_document, "view=stream"),
    "lens": (explained_document, "view=lens"),
    "surprise": (explained_document, "view=text&shade=surprise&row=2"),
    "a label": (labelled, "view=answer"),
    "edits": (labelled, "view=trust&example=2"),
    "tags": (tagged, "view=answer"),
    "a picture": (pictured, "view=image&row=2"),
    "a long text": (lambda: long_document(2000, layers=2, heads=12), "view=arcs&layer=1&head=1"),
    "heads of a long text": (lambda: long_document(2000, layers=2, heads=12), "view=grid"),
    "two texts": (lambda: translation(example(), replace(example(), score=-2.0)), "view=compare"),
    "two models": (two_models, "view=compare"),
    "a label of a text": (opinion, "view=answer"),
    **{f"{view} of unlike heads": (unlike_heads, f"view={view}") for view in ("words", "grid")},
}
# What is no Chinese on a Chinese page: words of the documents, names, files, the other language.
KNOWN = (
    "A long text|Show in English|Wiegreffe|transformer|attention|nostalgebraist|every|token|turn|"
    "direct logit attribution|logit lens|logit|scores|English|softmax|Wallace|Pinter|Olsson|newest|"
    "large|small|looks|heads|model|words|"
    "China|Enter|Shift|B-LOC|I-LOC|B-PER|Jain|Home|good|hard|soft|cold|room|like|love|none|test|"
    "np|in|CSV|CLS|Esc|PNG|SEP|SVG|bad|cat|dog|end|est|mat|new|rug|sat|the|was|why|Why|all|We|My|"
    "at|of|on"
)
SAID = """[document.body.innerText, ...[...document.querySelectorAll('#regard *')].flatMap(node =>
  ['title', 'aria-label', 'placeholder', 'aria-valuetext'].map(name => node.getAttribute(name)))
].join('\\n')"""
MOVING = "document.getAnimations().filter(one => one.effect.getTiming().duration > 1).length"
UNNAMED = (
    "[...document.querySelectorAll('main canvas[tabindex]')].filter(node => node.offsetParent "
    "&& !node.ariaLabel).map(node => node.outerHTML)"
)


@pytest.fixture(params=LOOKS, ids=lambda look: f"{look[0]}-{look[1]}-{look[2]}")
def tab(request, chromium, tmp_path):
    """A page in one theme, language and width."""
    scheme, language, width = request.param
    context = chromium.new_context(
        viewport={"width": width, "height": 900},
        color_scheme=scheme,
        locale={"en": "en-US", "zh": "zh-CN"}[language],
        reduced_motion="reduce",
    )
    opened = open_tab(context, tmp_path)
    yield opened
    context.close()
    assert not opened.complaints, opened.complaints


def violations(tab):
    """Each broken rule with the elements that break it."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    found = axe.Axe().run(tab.page).response["violations"]
    return [
        f"{rule['id']}: {node['html'][:160]}\n{node['failureSummary']}"
        for rule in found
        for node in rule["nodes"][:4]
    ]


def keeps_the_rules(tab):
    fits(tab)
    assert tab.ask(MOVING) == 0
    assert tab.ask(UNNAMED) == []
    broken = violations(tab)
    assert not broken, "\n\n".join(broken)


def fits(tab):
    assert tab.ask("document.documentElement.scrollWidth") <= tab.page.viewport_size["width"]


def speaks_chinese(tab):
    if tab.ask("document.documentElement.lang") == "zh":
        said = re.sub(KNOWN, "", tab.ask(SAID))
        assert re.findall("[^\n]*[A-Za-z]{2,}[^\n]*", said) == []


@pytest.mark.parametrize("name", PAGES)
def test_a_view_fits_a_telephone_speaks_and_keeps_the_rules(tab, name):
    make, state = PAGES[name]
    speaks_chinese(tab.open(make(), f"#{state}"))
    keeps_the_rules(tab)
    tab.page.set_viewport_size({"width": 400, "height": 900})
    tab.wait("() => document.documentElement.scrollWidth <= 400")


def test_the_keys_keep_the_rules(tab):
    speaks_chinese(tab.open(translation(), "#view=words").press("?"))
    keeps_the_rules(tab)


@pytest.mark.parametrize("width", [400, 1280])
def test_a_typed_sentence_keeps_the_rules_at_any_width(tab, width):
    tab.page.set_viewport_size({"width": width, "height": 900})
    typed(tab, untrained("transformer"), ["我爱中国", "他昨天去北京了"]).settled()
    keeps_the_rules(tab)
    tab.page.click(".typing summary")
    keeps_the_rules(tab.click('[data-head="cross 0 1"]'))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    save_gpt2(folder / "gpt2")
    save_bert(folder / "reviews", "BertForSequenceClassification")
    with serving(folder / "gpt2", folder / "reviews") as found:
        yield found


def test_a_served_page_keeps_the_rules(tab, server):
    tab.page.goto(f"http://127.0.0.1:{server.port}/")
    tab.page.wait_for_selector("#status:not(:empty)")
    keeps_the_rules(tab)
    for name in ("gpt2", "reviews"):
        tab.page.select_option("#run", name)
        tab.page.fill("#text", "the cat sat")
        tab.page.press("#text", "Enter")
        tab.page.wait_for_selector("#regard main")
        tab.wait("() => !document.querySelector('#status').innerText")
        keeps_the_rules(tab.settled())
    tab.page.click(".muting summary")
    tab.page.click('[data-head="encoder 0 0"]')
    tab.page.wait_for_selector("main.view[data-view=compare]")
    keeps_the_rules(tab.settled())
