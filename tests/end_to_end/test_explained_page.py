"""Why, predictions by layer and surprise on the page, in a real browser."""

import re
from dataclasses import replace

import pytest
import torch
from tests.end_to_end.browsing import written
from tests.end_to_end.test_views import texts

from regard.viewer import (
    Document,
    Example,
    HeadCircuit,
    Importance,
    Lens,
    LogitSum,
    ScoreSum,
    StreamSums,
    StrongNeuron,
    Text,
    pack,
    pack_integers,
)

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WORDS = ["the", "cat", "sat", "on", "a"]


def example():
    """A language model's text: two layers of one head."""
    text = Text.of(WORDS)
    weights = torch.ones(2, 1, 5, 5).tril()
    why = {"target": "mat", "against": "rug", "position": 4}
    values = (0.5, -1.2, 0.25, 0.1, 2.0)
    complete = {"correlation": -0.3, "total": 1.65, "change": 1.5}
    chances = torch.tensor([[0.6, 0.3, 0.1], [0.9, 0.06, 0.04]])[:, None].expand(2, 5, 3)
    ids = torch.tensor([[0, 1, 2], [1, 2, 0]])[:, None].expand(2, 5, 3)
    return replace(
        written(text, weights / weights.sum(-1, keepdim=True)),
        importances=(
            Importance(method="attention", values=(0.2,) * 5, **why),
            Importance(method="gradient × input", values=values, correlation=0.9, **why),
            Importance(method="integrated gradients", values=values, **complete, **why),
        ),
        surprise=(None, 2.0, 1.0, 0.5, 0.5),
        lens=Lens(
            words=("mat", "sat", "rug"),
            tokens=pack_integers(ids.numpy()),
            probabilities=pack(chances.numpy(), bits=16, scale="log"),
            ahead=1,
        ),
        stream=stream(),
    )


def stream():
    """A logit by seven parts, and two scores."""
    pairs = (("position", "token", -3.0), ("layer 0 head 0", "token", 1.5))
    score = ScoreSum(
        kind="decoder",
        layer=1,
        head=0,
        query=3,
        key=1,
        score=-1.75,
        weight=0.25,
        bias=0.25,
        pairs=pairs,
        rows=("position", "layer 0 heads"),
        columns=("token", "biases"),
        values=((-3.0, 0.5), (1.5, -1.0)),
    )
    names = ("token", "layer 0 head 0", "layer 0 head 1", "layer 0 feed-forward", "biases")
    return StreamSums(
        parts=names,
        logits=(
            LogitSum(values=(0.5, -2.0, 1.0, 4.0, 0.25), total=3.75, target="mat", against="rug"),
        ),
        scores=(replace(score, layer=0, key=0, score=-2.0), score),
    )


def circuits():
    """Circuits of two heads, of which the first has words, and three neurons in two layers."""
    words = (("mat", 0.5), ("rug", 0.25))
    whole = HeadCircuit(
        kind="decoder",
        layer=0,
        head=0,
        queries=("the", "cat"),
        keys=("the", "cat"),
        scores=((1.5, -0.5), (0.25, 2.0)),
        key_scores=(0.75, -1.25),
        liked=(words, words),
        promoted=(words, words),
        suppressed=((("on", -0.5),),) * 2,
        own=((0.125, 3), (0.25, 0)),
        copying=0.4,
    )
    bare = replace(
        whole, layer=1, liked=(), promoted=(), suppressed=(), own=(), copying=None, key_scores=()
    )
    strong = {"kind": "decoder", "activation": -1.5, "promoted": words}
    neurons = tuple(
        StrongNeuron(layer=layer, position=at, token=WORDS[at], number=number, size=size, **strong)
        for layer, at, number, size in ((0, 1, 17, 3.0), (1, 1, 5, 2.5), (1, 2, 6, 2.0))
    )
    return {"circuits": (whole, bare), "feed_forward": neurons}


def document(*examples):
    return Document(title="Why", task="", model="test", examples=examples or (example(),))


def test_contributions_stand_beside_the_attention_with_their_numbers_and_signs(tab):
    tab.open(document(), "#view=trust")
    assert texts(tab, "main h2") == ["Why “mat” next, not “rug”?"]
    assert texts(tab, ".measure:last-child data") == ["0.5", "−1.2", "0.25", "0.1", "2"]
    assert texts(tab, ".measure:last-child .negative") == ["cat"]
    assert texts(tab, ".measure [role=rowheader]") == ["attention", "gradient × input"]
    assert "0.9 with the attention" in tab.text("dl.facts")
    assert "Jain & Wallace, 2019" in tab.text(".caption")
    tab.page.locator("input[name=trust-method]:checked").focus()
    tab.press("ArrowRight")
    assert texts(tab, ".measure [role=rowheader]") == ["attention", "integrated gradients"]
    assert tab.ask("document.activeElement.value") == "integrated gradients"
    assert "1.65 beside 1.5" in tab.text("dl.facts")
    assert "−0.3 with the attention" in tab.text("dl.facts")
    tab.wait("() => location.hash.includes('method=integrated')")
    assert b"gradient" in tab.saved("CSV")


def test_an_output_token_can_be_chosen_and_long_texts_list_the_largest(tab):
    made = example()
    several = tuple(
        Importance(method="attention", values=(float(n), 1.0, 0.0, 0.0, 0.0), output=n, target=word)
        for n, word in enumerate(WORDS)
    )
    long = Text.of([f"w{n}" for n in range(300)])
    value = tuple(float(n % 7 - 3) for n in range(300))
    other = Example(
        source=long.text,
        output="",
        source_tokens=long.tokens,
        output_tokens=(),
        importances=(Importance(method="gradient × input", values=value, target="good"),),
    )
    tab.open(document(replace(made, importances=several), other), "#view=trust")
    tab.page.locator(".strip label", has_text="sat").click()
    tab.page.locator("main h2", has_text="Why “sat”?").wait_for()
    assert texts(tab, ".measure:last-child data")[0] == "2"
    tab.open(document(replace(made, importances=several), other), "#view=trust&example=2")
    assert texts(tab, "main h2") == ["Why “good”?"]
    assert len(texts(tab, ".contribution")) == 24
    assert tab.page.locator(".prose .negative").count() > 50


def test_layers_predictions_are_a_table_that_is_walked_by_keys(tab):
    tab.open(document(), "#view=lens")
    assert tab.ask("document.querySelectorAll('.lens tbody tr').length") == 5
    assert texts(tab, ".lens tbody tr:nth-child(1) th") == ["the", "cat"]
    assert texts(tab, ".lens tbody tr:nth-child(5) th") == ["a", "?"]
    assert texts(tab, ".lens tbody tr:nth-child(2) .hit .token") == ["sat"]
    assert texts(tab, ".readout h3") == ["Position 5, layer 2"]
    assert texts(tab, ".readout li .token") == ["sat", "rug", "mat"]
    assert texts(tab, ".readout data")[0] == "0.9"
    tab.page.locator(".lens button[aria-current]").focus()
    tab.press("ArrowLeft", "ArrowUp")
    assert texts(tab, ".readout h3") == ["Position 4, layer 1"]
    assert texts(tab, ".readout li .token") == ["mat", "sat", "rug"]
    tab.click(".lens button >> nth=0")
    assert texts(tab, ".readout h3") == ["Position 1, layer 1"]
    assert len(tab.saved("CSV").splitlines()) == 1 + 5 * 2 * 3


def test_parts_of_a_logit_and_of_a_score_are_tables_with_their_sums(tab):
    tab.open(document(), "#view=stream")
    assert texts(tab, "main h2") == ["What makes “mat”, not “rug”", "Why this head looks there"]
    assert texts(tab, ".parts >> nth=1 >> th") == ["head 1", "head 2", "feed-forward", "layer 1"]
    assert texts(tab, ".parts >> nth=1 >> td.negative") == ["−2"]
    parts = ["layer 1 feed-forward", "layer 1 head 1", "layer 1 head 2", "token", "biases"]
    assert texts(tab, ".readout >> nth=0 >> li span") == parts
    assert texts(tab, ".readout >> nth=0 >> li data") == ["4", "−2", "1", "0.5", "0.25"]
    assert texts(tab, ".readout >> nth=0 >> dt") == ["sum: the difference of the logits"]
    assert texts(tab, ".readout >> nth=0 >> dd") == ["3.75"]
    assert texts(tab, ".made bdi") == ["on", "the"]
    tab.page.locator("input[name=stream-cell]:checked").focus()
    tab.press("ArrowRight")
    assert texts(tab, ".made bdi") == ["on", "cat"]
    assert "score −1.75, weight 0.25" in tab.text(".made")
    assert texts(tab, ".parts >> nth=2 >> td.shaded") == ["−3", "0.5", "1.5", "−1"]
    assert texts(tab, ".readout >> nth=1 >> dl dd") == ["0.25", "−1.75"]
    assert tab.ask("document.activeElement.value") == "1"
    lines = tab.saved("CSV").decode().splitlines()
    assert len(lines) == 1 + 5 + 2
    assert "layer 1 feed-forward" in lines[4]
    # The head that is looked at is the one whose score is opened.
    tab.open(document(), "#view=stream&kind=decoder&layer=2&head=1")
    assert texts(tab, ".made bdi") == ["on", "cat"]


def test_surprise_colours_the_text_and_says_the_loss(tab):
    tab.open(document(), "#view=text&shade=surprise")
    shares = (
        "[...document.querySelectorAll('.prose span')].map(s => s.style.getPropertyValue('--w'))"
    )
    assert tab.ask(shares) == ["", "1.0000", "0.5000", "0.2500", "0.2500"]
    assert "Together 4 nats for 4 tokens: 1 nats (1.44 bits) a token" in tab.text("main .caption")


@pytest.mark.parametrize(
    ("view", "expected", "colours"),
    [
        ("trust", ["attention", "gradient × input", "cat", "−1.2", "Blue speaks for"], 6),
        ("lens", ["the cat", "sat", "0.9", "1", "2"], 2),
        ("stream", ["layer 1", "head 2", "feed-forward", "−2", "biases"], 6),
        ("text&shade=surprise", [*WORDS, "The deeper a token"], 3),
    ],
)
def test_views_of_texts_save_as_pictures(tab, view, expected, colours):
    tab.open(document(), f"#view={view}")
    svg = tab.saved("SVG").decode()
    drawn = " ".join(re.sub(r"\s+", " ", part) for part in re.findall(r"<text[^>]*>([^<]*)", svg))
    assert all(part in drawn for part in expected), drawn
    assert len(set(re.findall(r'<rect [^>]*fill="(rgb[^"]*)"', svg))) >= colours
    assert tab.saved("PNG")[:4] == b"\x89PNG"


def test_circuits_and_neurons_stand_in_words_and_are_chosen_by_head_layer_and_token(tab):
    tab.open(document(replace(example(), **circuits())), "#view=stream&circuit=0")
    circuit = "section[aria-label^='What a head looks for']"
    assert "Copying score 0.4" in tab.text(f"{circuit} .made")
    assert texts(tab, f"{circuit} .worded tbody th") == ["the", "cat", "the", "cat"]
    assert texts(tab, f"{circuit} .worded .effect")[:3] == ["mat", "rug", "on"]
    assert "0.25 rank 1" in tab.text(f"{circuit} .worded tbody tr:nth-child(2) td:last-child")
    assert texts(tab, f"{circuit} .parts tbody tr:last-child td") == ["0.75", "−1.3"]
    lines = tab.saved("CSV").decode("utf-8-sig").splitlines()
    assert "promotes,1.1,the,mat,0.5" in lines
    assert "content score,1.1,cat,the,0.25" in lines
    tab.page.locator("input[name=stream-circuit]").nth(1).check(force=True)
    assert "No logits are made" in tab.text(circuit)
    neurons = "section[aria-label='Feed-forward neurons']"
    numbers = f"{neurons} .worded tbody td:nth-child(3)"
    assert texts(tab, numbers) == ["17", "5", "6"]
    tab.page.locator("input[name=stream-ffn]").nth(2).check(force=True)
    assert texts(tab, numbers) == ["5", "6"]
    tab.page.locator("input[name=stream-neuron]").nth(2).check(force=True)
    assert texts(tab, numbers) == ["6"]
    tab.wait("() => location.hash.includes('neuron=2')")
