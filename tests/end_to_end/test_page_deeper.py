"""Several tokens at once, pairs of texts, queries and keys, and what heads do, in a browser."""

from dataclasses import replace

import pytest
import torch
from tests.end_to_end.browsing import tokens
from tests.end_to_end.long_texts import long_document
from tests.end_to_end.test_views import addressed, entries, texts

from regard.viewer import Document, Example, HeadMap, HeadVectors, Token, pack, page, show

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FIRST, SECOND = "我爱你", "the cat sat"
NAMES = ["[CLS]", *FIRST, "[SEP]", *SECOND.split(), "[SEP]"]
SEGMENTS = (0,) * 5 + (1,) * 4
N, D, SCALE = len(NAMES), 7, 0.3


def products():
    draw = torch.Generator().manual_seed(3)
    return torch.randn(N, D, generator=draw) * 2, torch.randn(N, D, generator=draw) * 2


def weights(head=0):
    query, key = products()
    return (SCALE * query @ key.roll(head, 0).mT).softmax(-1)


def document():
    """A pair that an encoder of two heads read; queries and keys are of the first head."""
    text = f"{FIRST}\n{SECOND}"
    inner = tokens(text, [*FIRST, *SECOND.split()])
    signs = [Token(text=name, start=0, end=0) for name in ("[CLS]", "[SEP]")]
    all_tokens = (signs[0], *inner[:3], signs[1], *inner[3:], signs[1])
    query, key = products()
    example = Example(
        source=text,
        output="",
        source_tokens=all_tokens,
        output_tokens=(),
        maps=tuple(
            HeadMap(kind="encoder", layer=0, head=head, rows=weights(head).tolist())
            for head in (0, 1)
        ),
        segments=SEGMENTS,
        vectors=(
            HeadVectors(
                kind="encoder",
                layer=0,
                head=0,
                query=pack(query, bits=32),
                key=pack(key, bits=32),
                scale=SCALE,
            ),
        ),
    )
    return Document(title=FIRST, task="", model="", examples=(example,))


def opened(tab, state, page=None):
    return tab.open(page or document(), f"#{state}")


def near(numbers, expected, names):
    """Asserts that entries are the eight largest of these weights."""
    order = expected.argsort(descending=True)[:8].tolist()
    assert set(numbers) == {names[at] for at in order}
    for at in order:
        if names.count(names[at]) == 1:
            assert float(numbers[names[at]]) == pytest.approx(float(expected[at]), rel=6e-3)


# Several tokens.


def test_rows_that_are_chosen_with_shift_are_shown_by_their_mean(tab):
    opened(tab, "view=words&kind=encoder&layer=1&head=1")
    tab.click("th[data-row='1']").click("th[data-row='3']", modifiers=["Shift"])
    assert texts(tab, "th.marked") == ["我", "你"]
    assert "mean of their weights" in tab.text(".readout h3")
    near(entries(tab, "我, 你"), weights()[[1, 3]].mean(0), NAMES)
    addressed(tab, "picked=rows_2_4")
    assert texts(tab, ".reading .marked") == ["我", "你"]
    lit = "[...document.querySelectorAll('.arcs path.lit')].map(path => path.dataset.row)"
    assert set(tab.ask(lit)) == {"1", "3"}
    assert tab.page.locator(".band.row").count() == 2
    tab.click("th[data-row='1']", modifiers=["Shift"])
    assert texts(tab, "th.marked") == ["你"]
    addressed(tab, "row=4")
    tab.press("Escape")
    assert texts(tab, "th.marked") == []


def test_columns_that_are_chosen_with_shift_are_shown_by_their_sum(tab):
    opened(tab, "view=words&kind=encoder&layer=1&head=1&picked=columns_2_6")
    assert "sum of their weights" in tab.text(".readout h3")
    near(entries(tab, "我, the"), weights()[:, [1, 5]].sum(1), NAMES)
    tab.click("th[data-column='2']")  # alone again
    tab.wait("() => !location.hash.includes('picked')")
    assert "sum" not in tab.text(".readout h3")


def test_tokens_are_chosen_by_keyboard(tab):
    opened(tab, "view=words&kind=encoder&layer=1&head=1")
    tab.page.locator("td.cell").first.focus()
    tab.press("ArrowDown", "Shift+ArrowDown", "Shift+ArrowDown")
    assert texts(tab, "th.marked") == ["我", "爱", "你"]
    tab.press("ArrowDown")  # looks at another without letting these go
    assert "[SEP]" in texts(tab, "th.marked")
    tab.press("ArrowDown", "Shift+Enter")
    assert texts(tab, "th.marked") == ["我", "爱", "你", "the"]
    addressed(tab, "picked=rows_2_3_4_6")
    assert tab.text(".status") == "4 tokens chosen"
    tab.press("Shift+Enter", "Enter")
    assert texts(tab, "tbody th.marked") == ["the"]


@pytest.mark.parametrize("view", ["arcs", "text"])
def test_arcs_and_text_take_several_tokens_together(tab, view):
    opened(tab, f"view={view}&kind=encoder&layer=1&head=2")
    token = {"arcs": ".line.rows button[data-at='{}']", "text": ".prose span[data-at='{}']"}[view]
    tab.click(token.format(1)).click(token.format(5), modifiers=["Shift"])
    tab.page.locator(".readout h3", has_text="mean of their weights").wait_for()
    near(entries(tab, "mean of their weights"), weights(1)[[1, 5]].mean(0), NAMES)
    tab.page.locator(".readout h3", has_text="sum of their weights").wait_for()
    near(entries(tab, "sum of their weights"), weights(1)[:, [1, 5]].sum(1), NAMES)
    assert texts(tab, {"arcs": ".line.rows .marked", "text": ".prose .marked"}[view]) == [
        "我",
        "the",
    ]
    tab.press("Shift+ArrowRight")
    addressed(tab, "picked=rows_2_6_7")


def test_of_a_long_text_the_weights_that_were_kept_are_taken_together(tab):
    tab.open(long_document(2000, layers=1, heads=2), "#view=arcs&layer=1&head=1&picked=rows_3_9")
    tab.page.locator(
        ".readout .hint", has_text="what was not stored counts as zero"
    ).first.wait_for()


# Pairs of texts.


@pytest.mark.parametrize("pair", ["aa", "ab", "ba", "bb"])
def test_a_part_of_a_pair_is_shown_alone(tab, pair):
    opened(tab, "view=words&kind=encoder&layer=1&head=1&row=2")
    tab.click(f"[data-group=pair] input[value={pair}]")
    places = {"a": list(range(5)), "b": list(range(5, 9))}
    rows, columns = (places[side] for side in pair)
    assert texts(tab, "tbody th") == [NAMES[at] for at in rows]
    numbers = tab.ask("[...document.querySelectorAll('td.cell')].map(cell => +cell.dataset.weight)")
    expected = weights()[rows][:, columns]
    torch.testing.assert_close(torch.tensor(numbers).view_as(expected), expected, atol=1e-4, rtol=0)
    assert f"text {pair[0].upper()}" in tab.text("section:has(.matrix) .caption")
    tab.wait("() => !location.hash.includes('row=')")
    last = columns[-2]
    tab.page.locator(f".reading [data-at='{last}']").click()
    marked = tab.page.locator("thead th.marked" if pair[0] != pair[1] else "tbody th.marked")
    assert marked.inner_text() == NAMES[last]
    tab.click("[role=tab][data-view=arcs]")
    lines = [texts(tab, f".line.{side} button") for side in ("rows", "columns")]
    is_joined = pair[0] == pair[1]  # one line, with arcs
    assert [len(line) for line in lines] == [len(rows), 0 if is_joined else len(columns)]
    tab.click("[role=tab][data-view=map]")
    assert f"{len(rows)} × {len(columns)} tokens" in tab.text(".caption")
    tab.click("[role=tab][data-view=grid]")
    assert not tab.page.locator("[data-group=pair]").is_visible()
    tab.wait("() => !location.hash.includes('pair')")


@pytest.mark.parametrize("pair", ["aa", "ab", "ba", "bb"])
def test_a_part_of_a_pair_is_shown_as_text(tab, pair):
    opened(tab, f"view=text&kind=encoder&layer=1&head=1&pair={pair}")
    places = {"a": list(range(5)), "b": list(range(5, 9))}
    rows, columns = (places[side] for side in pair)
    assert f"text {pair[0].upper()}" in tab.text("section .caption")
    received = weights()[rows][:, columns].sum(0)
    shown = tab.ask(
        "Object.fromEntries([...document.querySelectorAll('.prose span')].map("
        "span => [span.dataset.at, Number(span.style.getPropertyValue('--w'))]))"
    )
    for at in range(N):
        part = received[columns.index(at)] / received.max() if at in columns else 0.0
        assert shown[str(at)] == pytest.approx(float(part), abs=1e-3)
    row, column = rows[1], columns[1]
    names = [NAMES[at] for at in columns]
    tab.click(f".prose span[data-at='{row}']")
    tab.page.locator(".readout h3", has_text="looks at").first.wait_for()
    near(entries(tab, "looks at"), weights()[row, columns], names)
    assert texts(tab, ".prose .marked") == [NAMES[row]]
    if pair[0] != pair[1]:
        tab.click(f".prose span[data-at='{column}']")
        tab.page.locator(".readout h3", has_text="is looked at by").wait_for()
        near(entries(tab, "is looked at by"), weights()[rows, column], [NAMES[at] for at in rows])


def test_a_text_alone_has_no_parts(tab):
    alone = replace(document(), examples=(replace(document().examples[0], segments=()),))
    opened(tab, "view=words&pair=ab", alone)
    assert not tab.page.locator("[data-group=pair]").is_visible()
    assert tab.page.locator("td.cell").count() == N * N


# Queries and keys.


def sums(tab):
    rows = tab.ask(
        "[...document.querySelectorAll('.sums [data-of]')].map(each => [each.dataset.of, each.lastChild.innerText])"  # noqa: E501
    )
    return {name: float(text.replace("−", "-")) for name, text in rows}


def test_products_of_a_query_and_a_key_sum_to_the_score(tab):
    opened(tab, "view=neurons&kind=encoder&layer=1&head=1&row=3&column=7")
    query, key = products()
    product = query[2] * key[6]
    expected = {"sum": product.sum(), "scale": SCALE, "score": SCALE * product.sum()}
    expected |= {"weight": weights()[2, 6]}
    assert sums(tab) == pytest.approx({name: float(each) for name, each in expected.items()}, 1e-3)
    listed = [row.split("\t") for row in texts(tab, ".dimensions tbody tr")]
    order = product.abs().argsort(descending=True)
    assert [int(row[0]) for row in listed] == [int(at) + 1 for at in order]
    for row, at in zip(listed, order, strict=True):
        numbers = [float(cell.replace("−", "-")) for cell in row[1:]]
        exact = [float(each) for each in (query[2, at], key[6, at], product[at])]
        assert numbers == pytest.approx(exact, rel=1e-3, abs=1e-6)
    assert tab.page.locator(".strips svg").count() == 3
    assert tab.page.locator(".strips svg rect:not(.here)").count() == 3 * D


def test_a_pair_is_chosen_token_by_token(tab):
    opened(tab, "view=neurons&kind=encoder&layer=1&head=1")
    headings = tab.page.locator(".strips h3")
    most = int(weights()[-1].argmax())  # the last token, and the one that it looks at most
    assert NAMES[-1] in headings.nth(0).inner_text()
    assert NAMES[most] in headings.nth(1).inner_text()
    tab.click(".line.columns button[data-at='6']").click(".line.rows button[data-at='2']")
    addressed(tab, "row=3&column=7")
    assert [headings.nth(at).inner_text().split()[1] for at in (0, 1)] == ["爱", "cat"]
    tab.press("ArrowRight")
    addressed(tab, "row=4&column=7")
    assert headings.nth(0).inner_text().split()[1] == "你"
    rows = tab.saved("CSV").decode().splitlines()
    assert len(rows) == D + 1
    assert "product" in rows[0]
    assert tab.saved("SVG").count(b"<rect") > 3 * D


def test_heads_without_queries_and_keys_name_those_that_have_them(tab):
    opened(tab, "view=neurons&kind=encoder&layer=1&head=2")
    assert "not in the page" in tab.text("main .hint")
    tab.click("main .hint button")
    addressed(tab, "head=1")
    assert sums(tab)
    bare = replace(document(), examples=(replace(document().examples[0], vectors=()),))
    opened(tab, "view=neurons", bare)
    assert "Neurons" not in texts(tab, "[role=tab]")


# What heads do, and their maps.


def shown_maps(tab):
    """The layer and head of each map, in order."""
    return list(
        tab.ask(
            """[...document.querySelectorAll('.heads button:has(canvas)')].map(
              button => `${button.dataset.layer} ${button.dataset.head}`)"""
        )
    )


@pytest.fixture(scope="module")
def many_heads():
    """144 heads of 8,192 tokens, with a score for each."""
    whole = long_document(8192)
    summaries = [
        replace(
            one,
            measures={
                **one.measures,
                "induction": tuple((7 * head + 5 * one.layer) % 144 / 144 for head in range(12)),
            },
        )
        for one in whole.examples[0].summaries
    ]
    return replace(whole, examples=(replace(whole.examples[0], summaries=tuple(summaries)),))


def test_all_maps_are_drawn_sorted_and_opened(tab, many_heads):
    assert len(page(many_heads).encode()) <= 3_000_000
    opened(tab, "view=grid&measure=map", many_heads)
    assert shown_maps(tab) == [f"{layer} {head}" for layer in range(12) for head in range(12)]
    sizes = """[...new Set([...document.querySelectorAll('.heads canvas')].map(
      canvas => `${canvas.width} ${canvas.height}`))]"""
    assert tab.ask(sizes) == ["32 32"]
    different = """new Set([...document.querySelectorAll('.heads canvas')].map(
      canvas => canvas.getContext('2d').getImageData(0, 0, 32, 32).data.join())).size"""
    assert tab.ask(different) == 144
    tab.page.locator("#order").select_option("induction")
    tab.settled()
    score = {
        f"{one.layer} {head}": one.measures["induction"][head]
        for one in many_heads.examples[0].summaries
        for head in range(12)
    }
    order = shown_maps(tab)
    assert [score[name] for name in order] == sorted(score.values(), reverse=True)
    assert "Induction" in tab.page.locator(".heads button").first.get_attribute("aria-label")
    tab.page.locator(".heads button").first.focus()
    tab.press("ArrowRight", "Enter")
    layer, head = (int(number) + 1 for number in order[1].split())
    addressed(tab, f"layer={layer}&head={head}")
    tab.press("g")
    assert shown_maps(tab) == order


def test_maps_of_a_head_are_its_weights(tab):
    heads = show(torch.stack([torch.eye(5), torch.full((5, 5), 0.2)]), ["a"] * 5).document
    opened(tab, "view=grid&measure=map", heads)
    alphas = """[...document.querySelectorAll('.heads canvas')].map(canvas => {
      const { data } = canvas.getContext('2d').getImageData(0, 0, 5, 5);
      return [...data.keys()].filter(at => at % 4 === 0).map(at => data[at]);
    })"""
    eye, even = tab.ask(alphas)
    assert len(set(even)) == 1
    assert [at for at, red in enumerate(eye) if red == even[0]] == [0, 6, 12, 18, 24]
