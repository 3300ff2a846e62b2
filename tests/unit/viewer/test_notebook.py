import html
import re
import urllib.error
import urllib.request

import numpy as np
import pytest
import torch

import regard as rg
from regard.errors import SettingError
from regard.viewer import Document, OneAttention, page, show
from regard.viewer.notebook import parse_query

N, M = 3, 5


def summary(queries, keys):
    return rg.summarize(torch.randn(2, queries, 7), torch.randn(2, keys, 7))


def inner(page):
    """The page inside the frame."""
    frame = re.search(r'srcdoc="([^"]*)"', page._repr_html_())
    return html.unescape(frame[1])


def test_a_summary_of_other_keys_is_of_two_texts():
    example = show(summary(N, M), list("abcde")).document.examples[0]
    assert example.summaries[0].kind == "cross"
    assert (example.source, example.output) == ("a b c d e", "1 2 3")


def test_what_was_watched_is_shown_with_its_tokens(tmp_path):
    attention = [OneAttention("decoder", 0, (0, 1), summary(M, M))]
    drawn = show(attention, list("abcde"), title="Mine", label="x", height=300)
    assert drawn.document.title == "Mine"
    assert drawn.document.examples[0].label == "x"
    assert "height:300px" in drawn._repr_html_()
    assert inner(drawn) == page(drawn.document)
    drawn.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text("utf-8") == page(drawn.document)


def test_the_frame_can_reach_nothing_around_it():
    text = show(summary(N, N))._repr_html_()
    assert re.search(r'sandbox="([^"]*)"', text)[1] == "allow-scripts allow-downloads"
    assert text.count("<") == 2


def test_what_cannot_be_shown_is_refused():
    document = Document(title="", task="", model="", examples=())
    with pytest.raises(SettingError, match="tokens must be None for a document"):
        show(document, ["a"])
    with pytest.raises(SettingError, match=r"what must be a document, a summary, .*; got int"):
        show(3)
    with pytest.raises(SettingError, match="height must be at least 100; got 1"):
        show(document, height=1)


def test_rows_are_answered_to_who_knows_the_address():
    weights = np.arange(12, dtype=float).reshape(3, 4)

    def rows(example, kind, layer, head, queries):
        if kind == "cross":
            return None
        return weights[list(queries)] + head

    document = Document(title="", task="", model="", examples=())
    drawn = show(document, rows=rows)
    address = re.search(r'data-rows="([^"]*)"', inner(drawn))[1]
    assert f"connect-src {address.split('/rows')[0].rsplit('/', 1)[0]};" in inner(drawn)
    question = "example=0&kind=decoder&layer=0&head=2&queries=2,0"
    with urllib.request.urlopen(f"{address}?{question}") as answer:
        received = np.frombuffer(answer.read(), "<f4").reshape(2, 4)
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert received.tolist() == (weights[[2, 0]] + 2).tolist()
    for url, status in (
        (f"{address}?{question.replace('decoder', 'cross')}", 404),
        (f"{address}?{question.replace('2,0', '99')}", 400),
        (f"{address}?{question.replace('head=2', 'head=x')}", 400),
        (f"{address}?", 400),
        (f"{address}x?{question}", 404),
        (re.sub(r"/[^/]*/rows", "/rows", address) + f"?{question}", 404),
    ):
        with pytest.raises(urllib.error.HTTPError, match=str(status)):
            urllib.request.urlopen(url)
    drawn.close()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"{address}?{question}", timeout=2)
    assert inner(drawn) == page(document)


def test_long_texts_that_were_watched_have_a_server_of_rows():
    length = 520

    class Kept(list):
        def rows(self, layer, queries, kind):
            return torch.full((2, len(queries), length), 0.5)

    attention = Kept([OneAttention("decoder", 0, (0, 1), summary(length, length))])
    drawn = show(attention, ["a"] * length)
    assert 'data-rows="http://127.0.0.1:' in inner(drawn)
    drawn.close()
    assert 'data-rows=""' in inner(show(list(attention), ["a"] * length))


@pytest.mark.parametrize(
    "question",
    [
        "example=0&kind=cross&layer=0&head=0",
        "example=a&kind=cross&layer=0&head=0&queries=1",
        "example=0&kind=what&layer=0&head=0&queries=1",
        "example=0&kind=cross&layer=0&head=0&queries=" + ",".join(["1"] * 65),
        "example=0&kind=cross&layer=0&head=0&queries=-1",
        "example=0&kind=cross&layer=0&head=0&queries=",
    ],
)
def test_questions_that_cannot_be_answered_are_refused(question):
    with pytest.raises(ValueError, match=r"question must|invalid literal"):
        parse_query(question)


def test_a_page_is_served_to_who_knows_the_address():
    document = Document(title="Served", task="", model="", examples=())
    drawn = show(document, rows=lambda *_: np.eye(2))
    home = drawn.serve()
    assert home.startswith("http://127.0.0.1:")
    with urllib.request.urlopen(home) as answer:
        assert answer.headers["Content-Type"].startswith("text/html")
        assert answer.read().decode() == page(document, rows=f"{home}rows")
    for other in (f"{home}x", home.rsplit("/", 2)[0] + "/", home[:-2] + "/"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(other)
    drawn.close()
