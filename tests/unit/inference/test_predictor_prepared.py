"""A predictor answers with its prepared model, whatever the amount of work."""

import pytest
from tests.unit.inference.conftest import LETTERS, letters_predictor, untrained

from regard.inference import Predictor
from regard.models import Transformer
from regard.runtime.transformer.decoder import DecoderStack
from regard.runtime.transformer.encoder import EncoderLoop
from regard.runtime.transformer.models import PreparedTransformer
from regard.tasks.labels.classification import LabelledText

pytestmark = pytest.mark.usefixtures("as_users_have_it")

SENTENCES = ["".join(LETTERS[(7 * i + j * j) % 20] for j in range(7)) for i in range(32)]


def predictor(**decoding):
    decoding = {"beam_size": 4, "max_ratio": 0.5} | decoding
    return letters_predictor(decoding=decoding, num_encoder_layers=1, num_decoder_layers=2)


@pytest.fixture
def ran(monkeypatch):
    calls = set()
    step = Transformer.step
    for name in ("_advance", "write"):
        loop = getattr(DecoderStack, name)
        monkeypatch.setattr(
            DecoderStack, name, lambda *all, loop=loop: calls.add("loop") or loop(*all)
        )
    monkeypatch.setattr(Transformer, "step", lambda *all: calls.add("model") or step(*all))
    return calls


def check_same(outputs, expected):
    for answers, references in zip(outputs, expected, strict=True):
        for output, reference in zip(answers, references, strict=True):
            assert (output.text, output.tokens) == (reference.text, reference.tokens)
            assert output.score == pytest.approx(reference.score, abs=1e-4)


def plainly(translator, texts, **settings):
    """The model's own answers."""
    plain = Predictor(translator.model, translator.task)
    plain.preparation.of = lambda model: model.eval()
    return plain.translate(texts, **settings)


@pytest.mark.parametrize("texts", [1, 32])
@pytest.mark.parametrize("settings", [{}, {"beam_size": 1}])
def test_compiled_steps_translate_one_text_as_they_do_many(texts, settings, ran):
    translator = predictor()
    outputs = translator.translate(SENTENCES[:texts], **settings)
    assert ran == {"loop"}
    ran.clear()
    check_same(outputs, plainly(translator, SENTENCES[:texts], **settings))
    assert ran == {"model"}
    for text, output in zip(SENTENCES[:3], outputs[:3], strict=False):
        (single,) = translator.translate([text], **settings)
        assert [(each.text, each.score) for each in single] == [(e.text, e.score) for e in output]


def test_in_bfloat16_each_text_is_answered_by_itself(monkeypatch):
    translator, sizes, start = predictor(), [], Transformer.start
    translator.model.bfloat16()
    monkeypatch.setattr(Transformer, "start", lambda *all: sizes.append(len(all[1])) or start(*all))
    translator.translate(SENTENCES[:3])
    assert sizes == [1, 1, 1]


def test_a_prepared_model_that_cannot_be_is_the_model(ran, monkeypatch):
    monkeypatch.setattr(PreparedTransformer, "refuse", staticmethod(lambda model: "so it is"))
    translator = predictor()
    model = translator.model
    translator.warm_up()
    assert translator.model is model
    translator.translate(SENTENCES)
    assert ran == {"model"}


TEXTS = [" ".join("abcdefgh"[(7 * i + j * j) % 8] for j in range(1 + i)) for i in range(9)]


def labeller():
    sizes = {"model_dim": 12, "num_heads": 3, "num_layers": 2, "ffn_dim": 17}
    model = {"type": "transformer", "dropout": 0.0, **sizes}
    table = {"task": "classification", "tokenizer": {"type": "words"}, "model": model}
    texts = [*TEXTS, "no label is like this"]
    examples = [
        LabelledText(text, text[0], None, f"a.tsv:{line}") for line, text in enumerate(texts, 1)
    ]
    return untrained(table, examples)


def test_a_compiled_loop_labels_one_text_as_it_does_many(monkeypatch):
    classifier, calls, read = labeller(), [], EncoderLoop.__call__
    plain = Predictor(classifier.model, classifier.task)
    plain.preparation.of = lambda model: model.eval()
    expected = plain.predict(TEXTS)
    monkeypatch.setattr(EncoderLoop, "__call__", lambda *all: calls.append(0) or read(*all))
    classifier.warm_up()
    assert len(calls) == 1
    outputs = classifier.predict(TEXTS)
    assert len(calls) == 2
    assert [classifier.predict([text])[0] for text in TEXTS] == outputs
    for output, reference in zip(outputs, expected, strict=True):
        assert output.label == reference.label
        assert output.probabilities == pytest.approx(reference.probabilities, abs=1e-5)
