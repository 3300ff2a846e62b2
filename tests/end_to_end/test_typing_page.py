"""The page with the model inside: it answers as Python does, and works as one types."""

import tomllib

import pytest
from tests.end_to_end.browsing import CHOSEN
from tests.end_to_end.conftest import RECIPE
from tests.live_models import TRANSFORMER, classifier, language_model

from regard.config import write_toml
from regard.inference import Predictor
from regard.inference.live import live_page, rounded
from regard.kernels import why_not
from regard.kernels.products.int8 import HAS_BYTES
from regard.text.phrasebook import handwritten, phrases

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SENTENCES = 100
ASK = "([texts, options]) => texts.map((text) => regardLive.translate(text, options))"
TEACHER = TRANSFORMER | {"model_dim": 32, "ffn_dim": 64, "norm": "pre", "dropout": 0.0}
TEACHER |= {"tie_embeddings": "target", "values": "embeddings"}


@pytest.fixture(scope="session")
def transformer_run(regard, corpus):
    """A Transformer trained by command for some seconds."""
    table = tomllib.loads(RECIPE.format(updates=150)) | {"model": TEACHER}
    table["data"]["source_end"] = False
    table["training"] |= {"learning_rate": 0.01, "warmup": 20, "validate_every": 150}
    (corpus / "teacher.toml").write_text(write_toml(table), "utf-8")
    trained = regard("train", corpus / "teacher.toml", "--run", corpus / "transformer")
    assert trained.code == 0, trained
    return corpus / "transformer"


def sentences():
    """A hundred sentences, most of which no training has seen."""
    drawn = [*phrases("test"), *phrases("new"), *phrases("valid"), *phrases("train")]
    texts = list(dict.fromkeys(phrase.source for phrase in [*handwritten(), *drawn]))
    return texts[:SENTENCES]


def opened(tab, predictor, texts=[]):  # noqa: B006
    file = tab.folder / "live.html"
    file.write_text(live_page(predictor, texts), encoding="utf-8")
    tab.page.goto(file.as_uri())
    tab.wait("() => window.regardLive")
    return tab


@pytest.mark.parametrize(("beam", "count"), [(1, 50), (4, SENTENCES)])
def test_it_answers_as_int8_does_in_python(tab, transformer_run, beam, count):
    texts, ours = sentences()[:count], Predictor.load(transformer_run, device="cpu")
    answers = opened(tab, ours).ask(ASK, [texts, {"beam": beam}])
    outputs = [one["output"] for one in answers]
    assert len(set(outputs)) > count / 3  # it has learned something
    reference = Predictor(rounded(ours.model), ours.task)
    expected = reference.translate(texts, beam_size=beam)
    # Sums are in another order there: only what scores the same may be another output.
    for one, other in zip(answers, expected, strict=True):
        assert one["output"] == other.best.text or one["score"] == pytest.approx(
            other.best.score, abs=1e-5
        )
    if why_not() is None:
        # States are rounded as well there, to as many bits as the processor adds up at once, eight
        # or sixteen: of this half-trained model some outputs are nearly as likely as others.
        int8 = Predictor.load(transformer_run, precision="int8").translate(texts, beam_size=beam)
        same = sum(a == b.best.text for a, b in zip(outputs, int8, strict=True))
        assert same >= (0.8 if HAS_BYTES else 0.95) * count


def test_a_recurrent_translator_answers_as_the_rounded_one_does(tab, run):
    texts, ours = sentences(), Predictor.load(run)
    answers = opened(tab, ours).ask(ASK, [texts, {"beam": 4}])
    expected = Predictor(rounded(ours.model), ours.task).translate(texts, beam_size=4)
    assert [one["output"] for one in answers] == [one.best.text for one in expected]
    for one, other in zip(answers, expected, strict=True):
        assert one["score"] == pytest.approx(other.best.score, abs=1e-4)


def test_a_language_model_samples_and_goes_on_by_one_token_or_by_all(tab):
    ours, lines = language_model("rotary")
    opened(tab, ours, lines[:1])
    tab.page.wait_for_selector(".likely li")
    text = tab.page.locator("#typed")
    assert tab.page.locator(".likely li").count() == 10
    assert tab.page.locator(".knobs input").count() == 0
    tab.page.locator(".knobs select").select_option(label="sampled")
    tab.page.locator("[data-knob=top_k]").fill("4")
    tab.page.locator("[data-knob=seed]").fill("3")
    chances = [float(each) for each in tab.page.locator(".likely .chance").all_inner_texts()]
    assert sum(chances) == pytest.approx(1, abs=0.01)
    assert [each > 0 for each in chances] == [True] * 4 + [False] * 6
    answer = tab.ask(
        "([text, sampling]) => regardLive.translate(text, {sampling})",
        [lines[0], {"temperature": 1, "top_k": 4, "top_p": 1, "seed": 3}],
    )
    assert tab.text(".written p") == answer["output"].strip()
    tab.click(".knobs button")
    tab.click(".knobs button")
    assert text.input_value().startswith(lines[0])
    tab.page.locator(".knobs button").nth(1).click()
    tab.settled()
    assert text.input_value().startswith(lines[0] + answer["output"].split("\n")[0])


def test_a_classifier_says_the_label_of_what_is_typed(tab):
    ours, known = classifier("query")
    opened(tab, ours, known[:2]).settled()
    (expected,) = ours.predict(known[:1])
    assert tab.text(".written p") == expected.label


def test_translation_and_attention_follow_what_is_typed(tab, transformer_run):
    ours = Predictor.load(transformer_run)
    opened(tab, ours, ["我爱中国", "他昨天去北京了"]).settled()
    (expected,) = ours.translate(["我爱你"])
    assert tab.ask("document.querySelectorAll('.tries button').length") == 2
    tab.page.fill("#typed", "")
    tab.wait("() => document.querySelector('.note').textContent !== ''")
    tab.page.locator("#typed").press_sequentially("我爱你")
    tab.wait(
        "(text) => document.querySelector('.written p')?.textContent === text", expected.best.text
    )
    tab.settled()
    assert "你" in tab.text("main.view")
    assert tab.ask("document.activeElement.id") == "typed"  # the viewer takes no focus, nor keys
    assert tab.ask("document.querySelector('main.view').dataset.view") == "words"
    tab.page.fill("#typed", "我" * 40)
    tab.wait("() => /40.*24/.test(document.querySelector('.note').textContent)")
    tab.page.fill("#typed", "我爱龘")
    tab.wait("() => document.querySelector('.note').textContent.includes('龘')")


def test_a_head_is_muted_by_keyboard_and_both_outputs_stand_side_by_side(tab, transformer_run):
    opened(tab, Predictor.load(transformer_run), ["我爱中国"]).settled()
    tab.page.focus(".typing summary")
    tab.press("Enter")
    tab.page.focus('[data-head="cross 1 0"]')
    tab.press("Space")
    assert tab.ask("document.activeElement.dataset.head") == "cross 1 0"
    assert tab.ask("document.activeElement.getAttribute('aria-pressed')") == "true"
    assert tab.ask("document.querySelectorAll('.written > div').length") == 2
    assert tab.text(".written .hint").startswith("score −")
    assert tab.ask("document.querySelector('main.view').dataset.view") == "compare"
    tab.click(".mutes .clear")
    assert tab.ask("document.querySelectorAll('.written > div').length") == 1
    assert tab.ask("document.querySelector('main.view').dataset.view") == "words"
    assert tab.ask(CHOSEN)
