"""Arcs, text, flow and compare in a real browser, by mouse and by keyboard."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.end_to_end.browsing import one_text, tokens
from tests.end_to_end.long_texts import long_document

from regard.attention.inspect.alignment import words_from_tokens
from regard.viewer import (
    Change,
    Document,
    Example,
    HeadMap,
    SearchTree,
    Text,
    Token,
    pack,
    page,
    show,
)
from regard.viewer.document import beside
from regard.viewer.html import bundle
from regard.viewer.search import Beginning, Extension, SearchAnswer

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ROWS = (
    (0.9, 0.1, 0.0, 0.0),
    (0.2, 0.7, 0.1, 0.0),
    (0.0, 0.02, 0.54, 0.44),
    (0.0, 0.0, 0.3, 0.7),
    (0.25, 0.25, 0.25, 0.25),
)
END = "⟨end⟩"


# What a beam of two held at each step, and thought of: it writes 'I love China.', not 'We'.
STEPS: list[list[tuple[int, str, float, list[tuple[str, float, Any]]]]] = [
    [(-1, "", 0.0, [("I", 0.8, "kept"), ("We", 0.15, "kept"), ("My", 0.05, "dropped")])],
    [
        (0, "I", -0.22, [(" love", 0.9, "kept"), (" like", 0.05, "dropped")]),
        (0, "We", -1.9, [(" love", 0.7, "kept"), (" all", 0.1, "dropped")]),
    ],
    [
        (0, " love", -0.33, [(" China", 0.6, "kept"), (END, 0.01, "dropped")]),
        (1, " love", -2.25, [(" China", 0.6, "kept")]),
    ],
    [
        (0, " China", -0.84, [(".", 0.95, "kept"), (END, 0.04, "dropped")]),
        (1, " China", -2.76, [(".", 0.9, "kept")]),
    ],
    [(0, ".", -0.89, [(END, 0.97, "ended")]), (1, ".", -2.87, [(END, 0.97, "ended")])],
]


def search():
    steps = tuple(
        tuple(
            Beginning(
                parent=parent,
                text=text,
                log_prob=log_prob,
                extensions=tuple(
                    Extension(text=token, probability=chance, outcome=outcome)
                    for token, chance, outcome in options
                ),
            )
            for parent, text, log_prob, options in step
        )
        for step in STEPS
    )
    return SearchTree(
        beam_size=2,
        steps=steps,
        path=(0, 0, 0, 0, 0),
        probabilities=(0.8, 0.9, 0.6, 0.95, 0.97),
        answers=(
            SearchAnswer(text="I love China.", score=-0.6, log_prob=-0.92, is_finished=True),
            SearchAnswer(text="We love China.", score=-2.1, log_prob=-2.9, is_finished=False),
        ),
    )


def example():
    china = tokens("我爱中国", ["我", "爱", "中", "国"])
    english = tokens("I love China.", ["I", "▁love", "▁China", "."])
    end = Token(text=END, start=13, end=13)
    other = tuple(tuple(reversed(row)) for row in ROWS)
    return Example(
        source="我爱中国",
        output="I love China.",
        source_tokens=china,
        output_tokens=(*english, end),
        maps=(
            HeadMap(kind="cross", layer=0, head=0, rows=ROWS),
            HeadMap(kind="cross", layer=0, head=1, rows=other),
            HeadMap(kind="encoder", layer=0, head=0, rows=ROWS[:4]),
        ),
        score=-0.25,
        search=search(),
    )


def document(*examples):
    return Document(
        title="我爱中国",
        task="translation",
        model="none",
        examples=examples or (example(),),
        source_language="zh",
        output_language="en",
    )


def opened(tab, state, page=None):
    """The page in this state, once it is drawn."""
    return tab.open(page or document(), f"#{state}")


def opened_file(tab, file, state):
    tab.page.goto(f"{file.as_uri()}#{state}")
    return tab.settled()


def addressed(tab, state):
    """Waits until the page's address holds this; it is written a moment after the change."""
    tab.wait("state => location.hash.includes(state)", state)


def texts(tab, selector):
    return [text.strip() for text in tab.page.locator(selector).all_inner_texts()]


def entries(tab, heading):
    """The tokens and weights of one list of the readout."""
    return dict(
        tab.ask(
            """heading => {
              const head = [...document.querySelectorAll('.readout h3')].find(h => h.innerText.includes(heading));
              const items = head.nextElementSibling.querySelectorAll('li');
              return [...items].map(li => [li.querySelector('bdi').innerText, li.querySelector('data').innerText]);
            }""",  # noqa: E501
            heading,
        )
    )


# Arcs.


def test_arcs_tell_where_a_token_looks_and_who_looks_at_it(tab):
    opened(tab, "view=arcs&kind=cross&layer=1&head=1")
    tab.page.locator(".line.rows button", has_text="China").hover()
    tab.page.locator(".readout h3").wait_for()
    assert entries(tab, "looks at") == {"中": "0.54", "国": "0.44", "爱": "0.02"}
    assert texts(tab, ".line.columns .shaded") == ["爱", "中", "国"]
    tab.page.locator(".line.columns button", has_text="国").hover()
    tab.page.locator(".readout h3", has_text="is looked at by").wait_for()
    assert list(entries(tab, "is looked at by").items()) == [
        (".", "0.7"), ("▁China", "0.44"), (END, "0.25"),
    ]  # fmt: skip


def test_arcs_are_walked_by_keyboard_and_linked_to(tab):
    opened(tab, "view=arcs&kind=cross&layer=1&head=1")
    for key in ("ArrowRight", "ArrowRight", "ArrowUp", "ArrowRight"):
        tab.page.keyboard.press(key)
    focused = "document.activeElement.closest('.columns') && document.activeElement.innerText"
    assert tab.ask(focused) == "中"
    addressed(tab, "column=3")
    tab.reload()
    tab.page.locator(".readout h3", has_text="is looked at by").wait_for()
    assert entries(tab, "is looked at by")["▁China"] == "0.54"
    tab.page.keyboard.press("Escape")
    tab.page.locator(".readout .hint").wait_for()


def test_tokens_join_to_words(tab):
    opened(tab, "view=arcs&kind=cross&layer=1&head=1")
    tab.page.get_by_label("Join tokens to words").check()
    tab.page.locator(".line.columns button", has_text="中国").hover()
    tab.page.locator(".readout h3", has_text="中国").wait_for()
    assert entries(tab, "is looked at by")["China"] == "0.54"  # the larger of 0.54 and 0.44
    addressed(tab, "words=merged")


def test_a_token_of_one_text_shows_both_directions(tab):
    opened(tab, "view=arcs&kind=encoder&row=2")
    tab.page.locator(".readout h3", has_text="is looked at by").wait_for()
    assert entries(tab, "looks at") == {"爱": "0.7", "我": "0.2", "中": "0.1"}
    assert entries(tab, "is looked at by") == {"爱": "0.7", "我": "0.1", "中": "0.02"}


def arcs_of(tab, head):
    """The links of a head that is overlaid, as [row, column]; sorted."""
    return sorted(
        tab.ask(
            """head => [...document.querySelectorAll('.links path')]
              .filter(path => path.style.stroke === `var(--head-${head})`)
              .map(path => [Number(path.dataset.row), Number(path.dataset.column)])""",
            head,
        )
    )


def test_heads_of_a_layer_lie_over_each_other_in_colours_and_are_switched_one_by_one(tab):
    weights = torch.rand(2, 3, 6, 6, generator=torch.Generator().manual_seed(1)).pow(4)
    weights /= weights.sum(-1, keepdim=True)
    shown = show(weights, [f"w{at}" for at in range(6)]).document
    opened(tab, "view=arcs&layer=2", shown)
    tab.page.get_by_label("All heads of a layer in colours").check()
    tab.settled()
    expected = [(weights[1, head] >= 0.1).nonzero().tolist() for head in range(3)]
    assert [arcs_of(tab, head) for head in range(3)] == expected
    tab.click(".overlay button[title='head 2']")
    addressed(tab, "heads=1_3")
    assert [arcs_of(tab, head) for head in range(3)] == [expected[0], [], expected[2]]
    tab.page.locator(".line.rows button[data-at='4']").hover()
    tab.page.locator(".readout li").first.wait_for()
    best = [f"{weights[1, head, 4].max():.3g}" for head in (0, 2)]
    assert texts(tab, ".readout li data") == best
    tab.page.locator(".overlay button[title='head 3']").hover()
    lit = "[...document.querySelectorAll('.links path.lit')].map(path => path.style.stroke)"
    tab.wait(f"() => new Set({lit}).size === 1")
    assert set(tab.ask(lit)) == {"var(--head-2)"}
    svg = tab.saved("SVG").decode()
    assert svg.count("<path") == len(expected[0]) + len(expected[2]) + 2  # two in the legend
    assert tab.saved("CSV").decode("utf-8-sig").startswith("head,row,token")
    tab.press("h")  # the next head alone
    assert arcs_of(tab, 0) == []


def test_heads_of_a_layer_lie_over_each_other_in_words_too(tab):
    weights = torch.rand(2, 3, 6, 6, generator=torch.Generator().manual_seed(1)).pow(4)
    weights /= weights.sum(-1, keepdim=True)
    opened(
        tab, "view=words&layer=2&heads=1_3", show(weights, [f"w{at}" for at in range(6)]).document
    )
    expected = [(weights[1, head] >= 0.1).nonzero().tolist() for head in range(3)]
    assert [arcs_of(tab, head) for head in range(3)] == [expected[0], [], expected[2]]
    tab.click(".overlay button[title='head 2']")
    tab.settled()
    assert [arcs_of(tab, head) for head in range(3)] == expected
    tab.page.get_by_label("All heads of a layer in colours").uncheck()
    tab.settled()
    assert [arcs_of(tab, head) for head in range(3)] == [[], [], []]


def test_a_text_that_looks_at_itself_is_one_line_under_arcs_and_over_them(tab):
    weights = torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    opened(tab, "view=arcs", show(weights, ["a", "b", "c"]).document)
    assert tab.page.locator(".line:visible").count() == 1
    line = tab.page.locator(".line.rows").bounding_box()
    boxes = {
        name: tab.page.locator(
            f".links path[data-row='{row}'][data-column='{column}']"
        ).bounding_box()
        for name, (row, column) in {"back": (2, 0), "ahead": (1, 2), "itself": (0, 0)}.items()
    }
    middles = {name: box["y"] + box["height"] / 2 for name, box in boxes.items()}
    assert max(middles["back"], middles["itself"]) < line["y"]
    assert middles["ahead"] > line["y"] + line["height"]
    assert boxes["back"]["height"] > boxes["itself"]["height"]


@pytest.fixture(scope="module")
def long_page(tmp_path_factory):
    file = tmp_path_factory.mktemp("long") / "page.html"
    long = long_document(4096, layers=1, heads=2)
    file.write_text(page(long), encoding="utf-8")
    return file


def test_arcs_of_a_long_text_keep_few_elements_and_reach_every_token(tab, long_page):
    opened_file(tab, long_page, "view=arcs&kind=decoder&layer=1&head=1")
    count = "document.querySelectorAll('.lines button').length"
    assert 10 < tab.ask(count) < 200
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("End")
    tab.page.locator(".line.rows button[data-at='4095']:focus").wait_for()
    assert 10 < tab.ask(count) < 200
    place = tab.page.locator(".line.rows button[data-at='4095']").bounding_box()
    assert 0 < place["x"] < 1280
    tab.page.locator(".readout h3", has_text="is looked at by").wait_for()
    target = tab.page.locator(".readout li button").first
    name = str(target.get_attribute("title")).removeprefix("Go to token ")
    target.click()
    tab.page.locator(f".line.rows button[data-at='{int(name) - 1}'].marked").wait_for()


# Text.


def test_text_is_shaded_by_what_it_receives_and_by_where_a_token_looks(tab):
    opened(tab, "view=text&kind=cross&layer=1&head=1")
    shares = (
        "[...document.querySelectorAll('.prose:lang(zh) span')]"
        ".map(span => [span.innerText, Number(span.style.getPropertyValue('--w'))])"
    )
    received = [sum(row[key] for row in ROWS) for key in range(4)]
    assert dict(tab.ask(shares)) == pytest.approx(
        {text: mass / max(received) for text, mass in zip("我爱中国", received, strict=True)},
        abs=1e-3,
    )
    tab.page.locator(".prose:lang(en) span", has_text="China").hover()
    tab.page.locator(".readout h3", has_text="looks at").wait_for()
    assert dict(tab.ask(shares))["国"] == pytest.approx(0.44 / 0.54, abs=1e-3)
    assert texts(tab, ".prose .marked") == ["China"]


def test_text_is_read_by_keyboard_and_by_other_measures(tab):
    opened(tab, "view=text&kind=cross&layer=1&head=1")
    for key in ("ArrowRight", "ArrowRight", "ArrowRight"):
        tab.page.keyboard.press(key)
    tab.page.locator(".prose .marked", has_text="love").wait_for()
    addressed(tab, "row=2")
    tab.page.keyboard.press("Escape")
    tab.page.locator(".strip label", has_text="Entropy").click()
    tab.page.locator(".prose:lang(en) .shaded").first.wait_for()
    even = tab.page.locator(".prose:lang(en) span", has_text=END)
    assert even.evaluate("span => span.style.getPropertyValue('--w')") == "1.0000"


def test_right_to_left_text_runs_from_the_right(tab):
    text = "السلام عليكم جميعا"
    sentence = one_text(Text.of(text.split(" "), text), [[0.5, 0.3, 0.2]] * 3)
    opened(tab, "view=text", document(sentence))
    left = "(selector) => document.querySelector(selector).getBoundingClientRect().left"
    assert tab.ask(left, "[data-at='0']") > tab.ask(left, "[data-at='2']")
    tab.page.locator("[role=tab]", has_text="Arcs").click()
    tab.page.locator(".lines button").first.wait_for()
    rows = ".line.rows button[data-at='{}']"
    assert tab.ask(left, rows.format(0)) < tab.ask(left, rows.format(2))  # as the document says: zh
    opened(tab, "view=arcs", replace(document(sentence), source_language="ar"))
    assert tab.ask(left, rows.format(0)) > tab.ask(left, rows.format(2))


def test_a_long_text_has_elements_where_it_is_read_only(tab, long_page):
    opened_file(tab, long_page, "view=text&kind=decoder&layer=1&head=1")
    assert len(tab.ask("document.querySelector('.prose').innerText").split()) >= 4096
    assert 100 < tab.ask("document.querySelectorAll('.prose span').length") < 2500
    tab.page.locator(".prose").focus()
    tab.page.keyboard.press("End")
    tab.page.locator(".prose span[data-at='4095'].marked").wait_for()
    assert tab.page.locator(".prose span[data-at='4095']").is_visible()
    for share in range(12):  # read through, and what was left is plain text again
        tab.ask(f"scrollTo(0, document.body.scrollHeight * {share / 12})")
        tab.ask("new Promise(done => requestAnimationFrame(() => setTimeout(done, 30)))")
    assert tab.ask("document.querySelectorAll('.prose span').length") < 2500


# Flow.


def test_flow_tells_what_was_looked_at_and_chosen_at_each_step(tab):
    opened(tab, "view=flow&kind=cross&layer=1&head=1")
    assert texts(tab, ".answers bdi") == ["I love China.", "We love China."]
    assert "cut at the longest length" in texts(tab, ".answers small")[1]
    for _ in range(3):
        tab.page.keyboard.press("ArrowRight")
    sentence = "After “I love” it looked most at 中 (0.54), 国 (0.44), 爱 (0.02) and wrote “China”"
    assert texts(tab, ".reading") == [f"{sentence}, which it gave a probability of 0.6."]
    assert texts(tab, ".beam tbody td:nth-child(2)") == ["I love", "We love"]
    assert texts(tab, ".beam .path .chip.taken") == ["China\n0.6"]
    assert texts(tab, ".beam .path .chip.dropped") == [f"{END}\n0.01"]
    assert texts(tab, ".line.rows .faded") == [".", END]
    addressed(tab, "row=3")


def test_flow_goes_to_the_end_by_slider_and_tells_finished_answers(tab):
    opened(tab, "view=flow")
    slider = tab.page.get_by_role("slider", name="Step")
    slider.focus()
    tab.page.keyboard.press("End")
    assert slider.get_attribute("aria-valuetext") == f"step 5 of 5: {END}"
    assert texts(tab, ".beam .chip.ended") == [f"{END}\n0.97"] * 2
    assert texts(tab, ".beam .chip.taken") == [f"{END}\n0.97"]
    tab.page.keyboard.press("Home")
    assert not tab.page.locator(".beam").is_visible()


def test_flow_plays_by_itself_and_stops(tab):
    tab.page.clock.install()
    opened(tab, "view=flow")
    tab.page.keyboard.press("Space")
    for step in range(1, 4):
        tab.page.clock.run_for(900)
        assert texts(tab, ".steps .count") == [f"{step} of 5"]
    tab.page.keyboard.press("Space")
    tab.page.clock.run_for(5000)
    assert texts(tab, ".steps .count") == ["3 of 5"]


def test_flow_without_a_search_still_shows_where_the_model_looked(tab):
    plain = replace(example(), search=None, score=None)
    opened(tab, "view=flow&row=2&kind=cross&layer=1&head=1", document(plain))
    assert texts(tab, ".reading") == [
        "After “I” it looked most at 爱 (0.7), 我 (0.2), 中 (0.1) and wrote “love”."
    ]
    assert not tab.page.locator(".beam, .answers").first.is_visible()


# Compare.


def test_heads_are_compared_and_their_difference_is_described(tab):
    opened(tab, "view=compare&kind=cross&layer=1&head=1")
    assert texts(tab, ".sides figcaption") == ["A", "B", "B − A"]
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        tab.page.keyboard.press(key)
    tab.page.locator(".reading", has_text="A love").wait_for()
    assert texts(tab, ".reading") == ["A love → 爱: 0.7; B love → 爱: 0.1, a difference of −0.6."]
    box = tab.page.locator("canvas[data-side=change]").bounding_box()
    tab.page.mouse.move(box["x"] + box["width"] / 8, box["y"] + box["height"] / 10)
    tab.page.locator(".reading", has_text="A I").wait_for()
    assert texts(tab, ".reading") == ["A I → 我: 0.9; B I → 我: 0, a difference of −0.9."]
    colour = tab.ask(
        "(() => { const c = document.querySelector('canvas[data-side=change]');"
        "return [...c.getContext('2d').getImageData(c.width / 8, c.height / 10, 1, 1).data]; })()"
    )
    assert colour[:3] == [176, 84, 0]  # the deepest orange: A has more


def test_two_documents_stand_side_by_side(tab):
    changed = replace(
        example(), output="I like China.", output_tokens=example().output_tokens, score=-0.5
    )
    other = replace(document(changed), model="muted")
    opened(tab, "view=compare", beside(document(), other))
    assert texts(tab, ".versions mark") == ["love", "like"]
    assert [text.split(" · ")[0] for text in texts(tab, ".versions small")] == ["none", "muted"]
    before = tab.ask("location.hash")
    tab.page.get_by_role("button", name="⇄ swap").click()
    tab.page.locator(".versions mark", has_text="like").first.wait_for()
    assert texts(tab, ".versions mark") == ["like", "love"]
    tab.wait("before => location.hash !== before", before)


def test_texts_of_other_lengths_have_no_difference_and_edits_are_listed(tab):
    short = Example(
        source="我",
        output="I",
        source_tokens=tokens("我", ["我"]),
        output_tokens=tokens("I", ["I"]),
        maps=(HeadMap(kind="cross", layer=0, head=0, rows=((1.0,),)),),
    )
    change = Change(edit="layer 1, head 1 muted", output="We love China.", score=-1.5)
    edited = replace(example(), changes=(change,))
    opened(tab, "view=compare&kind=cross", document(edited, short))
    assert "no map of differences" in texts(tab, "section[aria-label=Compare] .caption")[0]
    assert not tab.page.locator("canvas[data-side=change]").is_visible()
    assert texts(tab, ".versions dt") == ["A", "B", "layer 1, head 1 muted"]
    assert "We" in texts(tab, ".versions mark")
    assert "score −1.500" in texts(tab, ".versions small")


def test_probabilities_before_and_after_an_edit_are_shown_with_the_maps(tab):
    whole = example()
    muted = replace(whole.search, probabilities=(0.8, 0.1, 0.6, 0.95, None))
    pair = (replace(whole, label="whole"), replace(whole, label="muted", search=muted))
    opened(tab, "view=compare&kind=cross", document(*pair))
    changes = dict(
        zip(texts(tab, ".chances-compared bdi"), texts(tab, ".chances-compared small"), strict=True)
    )
    assert changes["▁love"] == "0.9 → 0.1"
    assert changes[END] == "0.97 → –"
    assert [text.split(" · ")[0] for text in texts(tab, ".versions small")] == ["whole", "muted"]
    assert "the same in every cell" in texts(tab, "section[aria-label=Compare] .caption")[0]
    assert not tab.page.locator(".diverging").is_visible()


def test_long_texts_are_compared_by_buckets(tab, long_page):
    opened_file(tab, long_page, "view=compare&kind=decoder&layer=1&head=1&row=4096&column=1")
    sentence = texts(tab, "section[aria-label=Compare] .reading")[0]
    assert sentence.startswith("A tokens 4,033–4,096 → tokens 1–64: ")
    assert texts(tab, ".sides figcaption") == ["A", "B", "B − A"]


@pytest.mark.parametrize("bits", [8, 16])
def test_rounding_is_drawn_as_no_difference(tab, bits):
    draw = torch.Generator().manual_seed(7)
    sums = torch.rand(1, 8, 8, generator=draw) + 0.01
    change = 1 + 0.004 * torch.rand(8, 8, generator=draw)
    change[:4] = 1 + 1e-6
    pooled = torch.cat([sums, sums * change])
    read = long_document(600, layers=1, heads=2)
    (layer,) = read.examples[0].summaries
    layer = replace(layer, pooled=pack(pooled, bits=bits, scale="log"), bucket=(75, 75))
    tab.open(
        replace(read, examples=(replace(read.examples[0], summaries=(layer,)),)),
        "#view=compare&kind=decoder&layer=1&head=1&row=1&column=1",
    )
    assert "no difference beyond rounding" in tab.text(".reading")
    shares = pooled / pooled.sum(-1, keepdim=True)
    expected = (shares[1] - shares[0]).flatten()
    rows = tab.saved("CSV").decode("utf-8").splitlines()[1:]
    drawn = torch.tensor([float(row.rpartition(",")[2]) for row in rows])
    assert drawn[:32].eq(0).all()
    if bits == 8:  # as documents of old have it
        assert "the same in every cell, up to rounding" in tab.text(".caption")
    else:
        assert torch.corrcoef(torch.stack([expected, drawn]))[0, 1] > 0.99


def test_words_have_the_weights_that_python_gives_them(tab):
    source = "他不喜欢北京的 Summer,don't you?"
    pieces = ["他", "不", "喜", "欢北", "京", "的", "Sum", "mer", ",", "don", "'", "t", "you", "?"]
    columns = tokens(source, pieces)
    target = "Understanding 中国 well."
    rows = tokens(target, ["Under", "stand", "ing", "中", "国", "we", "ll", "."])
    weights = torch.rand(len(rows), len(columns)).softmax(-1)
    result = tab.ask(
        f"""([weights, rows, target, columns, source]) => {{
          {bundle("parts/attention.js")}
          const merged = {{ rows: wordsOf(rows, target, 'en'), columns: wordsOf(columns, source, 'zh') }};
          const reader = {{ axes: () => ({{ rows }}), map: async () => ({{ weights }}) }};
          const attention = createAttention(reader, {{}}, merged);
          return attention.topKeys(merged.rows.words.map((_, at) => at), 99).then(lists => ({{
            lists, rows: spansOf(target, 'en'), columns: spansOf(source, 'zh'),
            words: merged.rows.words.map(word => word.text), seen: merged.columns.words.map(word => word.text),
          }}));
        }}""",  # noqa: E501
        [weights.tolist(), as_plain(rows), target, as_plain(columns), source],
    )
    assert result["words"] == ["Understanding", "中国", "well", "."]
    assert "don't" in result["seen"]
    spans = [[(t.start, t.end) for t in side] for side in (columns, rows)]
    words = [[(start, end) for start, end in result[side]] for side in ("columns", "rows")]
    by_words = words_from_tokens(weights, *spans, *words)
    expected = by_words[:, by_words.amax(0) > 0]  # a word without a token has no column on the page
    dense = torch.zeros_like(expected)
    for row, list_ in enumerate(result["lists"]):
        for entry in list_:
            dense[row, entry["at"]] = entry["weight"]
    torch.testing.assert_close(dense, expected)


def as_plain(tokens):
    return [{"text": token.text, "start": token.start, "end": token.end} for token in tokens]
