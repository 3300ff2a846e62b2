"""The page with the model inside: it answers as Python does, and works as one types."""

import random
import tomllib

import pytest
import torch
from tests.end_to_end.browsing import CHOSEN
from tests.end_to_end.conftest import RECIPE
from tests.live_models import (
    CLASSIFIERS,
    LANGUAGE_MODELS,
    MODELS,
    ODD,
    RECURRENT,
    TRANSFORMER,
    classifier,
    language_model,
    untrained,
)
from tests.looking import look_at

import regard
from regard.config import write_toml
from regard.inference import Predictor
from regard.inference.live import MOST_TOKENS, live_page, rounded
from regard.inference.look import attention_to_source
from regard.kernels import why_not
from regard.kernels.products.int8 import HAS_BYTES
from regard.tasks import recipe_from_table
from regard.tasks.sequences.translation import TranslationTask
from regard.text import Pair, TokenizerConfig, train_tokenizer
from regard.text.phrasebook import handwritten, phrases

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SENTENCES = 200
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
    """Two hundred sentences, most of which no training has seen."""
    drawn = [*phrases("test"), *phrases("new"), *phrases("valid"), *phrases("train")]
    texts = list(dict.fromkeys(phrase.source for phrase in [*handwritten(), *drawn]))
    return texts[:SENTENCES]


def opened(tab, predictor, texts=[]):  # noqa: B006
    file = tab.folder / "live.html"
    file.write_text(live_page(predictor, texts), encoding="utf-8")
    tab.page.goto(file.as_uri())
    tab.wait("() => window.regardLive")
    return tab


@pytest.mark.parametrize(("beam", "count"), [(1, 100), (4, SENTENCES)])
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


@pytest.mark.parametrize("name", MODELS)
def test_every_option_gives_the_same_output_and_attention(tab, name):
    texts = [*(phrase.source for phrase in phrases("valid")[:12]), *ODD]
    ours = untrained(name)
    reference = Predictor(rounded(ours.model), ours.task)
    answers = opened(tab, ours).ask(ASK, [texts, {}])
    for text, one, other in zip(texts, answers, reference.translate(texts), strict=True):
        assert tuple(one["tokens"]) == other.best.tokens, text
        assert one["output"] == other.best.text
        assert one["score"] == pytest.approx(other.best.score, abs=1e-3)
        look = attention_to_source(reference.model, reference.task, text, other.best.tokens)
        maps = {(m["kind"], m["layer"], m["head"]): m["rows"] for m in one["example"]["maps"]}
        expected = {
            (each.kind, each.layer, head): rows
            for each in look.maps
            for head, rows in enumerate(each.weights)
        }
        assert set(maps) == set(expected)
        for key, rows in expected.items():
            torch.testing.assert_close(torch.tensor(maps[key]).float(), rows, rtol=0, atol=2e-3)
        for side, pieces in (("source", look.source_pieces), ("output", look.output_pieces)):
            tokens = one["example"][f"{side}_tokens"][: len(pieces)]
            spans = [(token["text"], token["start"], token["end"]) for token in tokens]
            assert spans == [(piece.text, piece.start, piece.end) for piece in pieces]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "words", "characters"])
def test_text_is_cut_as_in_python(tab, kind):
    lines = [text for phrase in phrases("train")[:2000] for text in (phrase.source, phrase.target)]
    settings = {"vocab_size": 1500, "may_shrink": True}
    tokenizer = train_tokenizer(lines[:1500], TokenizerConfig(type=kind, **settings))
    pairs = [Pair("我", "I", ("I",), "test")]
    task = TranslationTask.learn(recipe_from_table({"tokenizer": {"type": "words"}}), pairs)
    task = TranslationTask(task.recipe, type(task.tokenizer)(tokenizer, tokenizer))
    small = recipe_from_table({"model": RECURRENT}).model
    built = regard.models.RnnSeq2Seq(
        small, source_vocab=tokenizer.vocab_size, target_vocab=tokenizer.vocab_size
    )
    texts = [*random.Random(0).sample(lines, SENTENCES), *ODD, "", "  ", "\u2581 a"]
    opened(tab, Predictor(built.eval(), task))
    cut = tab.ask("(texts) => texts.map((text) => regardLive.read(text).pieces)", texts)
    for text, pieces in zip(texts, cut, strict=True):
        expected = [(each.id, each.text, each.start, each.end) for each in tokenizer.pieces(text)]
        assert [(p["id"], p["text"], p["start"], p["end"]) for p in pieces] == expected, text


@pytest.mark.parametrize(
    ("name", "head"),
    [("rotary", ("cross", 1, 2)), ("t5", ("encoder", 0, 0)), ("bahdanau", ("cross", 0, 0))],
)
def test_a_muted_head_mixes_zeros(tab, name, head):
    texts = [phrase.source for phrase in phrases("valid")[:10]]
    ours = untrained(name)
    reference = Predictor(rounded(ours.model), ours.task)
    answers = opened(tab, ours).ask(ASK, [texts, {"muted": [" ".join(map(str, head))]}])
    plain = reference.translate(texts)
    with regard.edit(reference.model) as edits:
        edits.mute(layer=head[1], head=head[2], kind=head[0])
        expected = reference.translate(texts)
    assert [one["output"] for one in answers] == [one.best.text for one in expected]
    assert [one.best.text for one in plain] != [one.best.text for one in expected]


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_a_language_model_continues_what_is_typed(tab, name):
    ours, lines = language_model(name)
    task = ours.task
    reference = Predictor(rounded(ours.model), task)
    texts = [*lines[:10], "Where", "I 龘"]
    expected = reference.predict(texts, method="greedy", max_tokens=MOST_TOKENS)
    answers = opened(tab, ours).ask(ASK, [texts, {}])
    for text, one, other in zip(texts, answers, expected, strict=True):
        assert tuple(one["tokens"]) == other.best.tokens, text
        assert one["output"] == other.best.text
        example = look_at(reference, text)
        for mine, theirs in zip(one["example"]["maps"], example.maps, strict=True):
            torch.testing.assert_close(
                torch.tensor(mine["rows"]), torch.tensor(theirs.rows), rtol=0, atol=1e-3
            )
        values = one["example"]["answer"]["values"]
        assert values == pytest.approx(example.answer.values, rel=1e-3, abs=1e-3)
        pieces = [token["text"] for token in one["example"]["output_tokens"]]
        assert pieces == [token.text for token in example.output_tokens]
    tab.page.fill("#typed", lines[0])
    tab.wait("() => document.querySelector('.written p')?.textContent?.length > 3")
    tab.settled()


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


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_classifier_says_the_label_of_what_is_typed(tab, name):
    ours, known = classifier(name)
    reference = Predictor(rounded(ours.model), ours.task)
    texts = [*known[:10], "Where", "I 龘"]
    answers = opened(tab, ours, texts[:2]).ask(ASK, [texts, {}])
    for text, one, expected in zip(texts, answers, reference.predict(texts), strict=True):
        assert one["output"] == expected.label
        assert dict(one["labels"]) == pytest.approx(expected.probabilities, abs=1e-4)
        example = look_at(reference, text)
        assert one["example"]["answer"]["measure"] == example.answer.measure
        values = one["example"]["answer"]["values"]
        assert values == pytest.approx(example.answer.values, rel=1e-3, abs=1e-3)
        maps = {(m["kind"], m["layer"], m["head"]): m["rows"] for m in one["example"]["maps"]}
        assert set(maps) == {(m.kind, m.layer, m.head) for m in example.maps}
        for theirs in example.maps:
            mine = torch.tensor(maps[theirs.kind, theirs.layer, theirs.head])
            torch.testing.assert_close(mine, torch.tensor(theirs.rows), rtol=0, atol=1e-3)
        tokens = [token["text"] for token in one["example"]["source_tokens"]]
        assert tokens == [token.text for token in example.source_tokens]
    tab.settled()
    assert tab.text(".written p") == answers[0]["output"]


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
