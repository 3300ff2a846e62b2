"""A predictor prepares its model for a search where that is worth it."""

import pytest
import torch

from regard.inference import Predictor
from regard.models import Transformer
from regard.models.prepared import (
    PreparedTransformer,
    encoder_kernels,
    kernels,
    recurrent_kernels,
)
from regard.tasks import TASKS, recipe_from_table
from regard.tasks.classification import LabelledText
from regard.tasks.translation import TranslationTask
from regard.text import train_pair_tokenizer

pytestmark = pytest.mark.usefixtures("as_users_have_it")

LETTERS = "abcdefghijklmnopqrst ."
MODEL = {
    "type": "transformer",
    "model_dim": 12,
    "num_heads": 3,
    "ffn_dim": 17,
    "num_encoder_layers": 1,
    "num_decoder_layers": 2,
}
RECURRENT = {"type": "rnn_seq2seq", "embed_dim": 12, "hidden_dim": 17, "attention_dim": 13}
# 8 tokens to read with the end of the sentence, and a beam of 4: 32 of the 1,024 from which it is
# worth it.
SENTENCES = ["".join(LETTERS[(7 * i + j * j) % 20] for j in range(7)) for i in range(32)]


def predictor(model=MODEL, **decoding):
    recipe = recipe_from_table(
        {
            "data": {"max_length": 20},
            "tokenizer": {"type": "characters"},
            "model": model,
            "decoding": {"beam_size": 4, "max_ratio": 0.5} | decoding,
        }
    )
    tokenizer = train_pair_tokenizer([LETTERS], [LETTERS], recipe.tokenizer)
    task = TranslationTask(recipe, tokenizer)
    torch.manual_seed(5)
    made = Predictor(task.build_model(), task)
    for parameter in made.model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return made


@pytest.fixture
def ran(monkeypatch):
    """Which steps were run: the compiled one, the model's own."""
    calls = set()
    whole_step, step = kernels.whole_step, Transformer.step
    monkeypatch.setattr(kernels, "whole_step", lambda *all: calls.add("loop") or whole_step(*all))
    monkeypatch.setattr(Transformer, "step", lambda *all: calls.add("model") or step(*all))
    return calls


def check_same(found, right):
    for answers, others in zip(found, right, strict=True):
        for one, other in zip(answers, others, strict=True):
            assert (one.text, one.tokens) == (other.text, other.tokens)
            assert one.score == pytest.approx(other.score, abs=1e-4)


def plainly(made, texts, **settings):
    """Each answer by itself, for which nothing is prepared."""
    return [made.translate([text], **settings)[0] for text in texts]


def test_many_texts_are_translated_by_compiled_steps(ran):
    made = predictor()
    found = made.translate(SENTENCES)
    assert ran == {"loop"}
    ran.clear()
    check_same(found, plainly(made, SENTENCES))
    assert ran == {"model"}


@pytest.mark.parametrize(
    ("texts", "settings", "way"),
    [
        (32, {}, "loop"),
        (31, {}, "model"),
        (32, {"beam_size": 3}, "model"),
        (1, {}, "model"),
    ],
)
def test_the_work_decides(texts, settings, way, ran):
    predictor().translate(SENTENCES[:texts], **settings)
    assert ran == {way}


def test_what_is_warm_answers_one_text_by_compiled_steps(ran):
    made = predictor()
    right = plainly(made, SENTENCES[:3])
    made.warm_up()
    ran.clear()
    check_same(plainly(made, SENTENCES[:3]), right)
    assert ran == {"loop"}


def test_warming_up_leaves_the_model():
    made = predictor()
    model = made.model
    made.warm_up()
    assert made.model is model
    assert isinstance(model, Transformer)


@pytest.mark.parametrize("is_warm", [False, True])
def test_what_is_learned_between_two_answers_counts(is_warm):
    made = predictor()
    if is_warm:
        made.warm_up()
    before = made.translate(SENTENCES)
    made.model.train()
    target = torch.randint(4, 20, (3, 5))
    states, _ = made.model(target, torch.full((3,), 5), target)
    made.model.project(states).logsumexp(-1).sum().backward()
    with torch.no_grad():
        for parameter in made.model.parameters():
            parameter.sub_(0.05 * parameter.grad)
    after = made.translate(SENTENCES)
    assert [each[0].tokens for each in after] != [each[0].tokens for each in before]
    made._is_warm = False
    check_same(after, plainly(made, SENTENCES))


def test_a_prepared_model_that_cannot_be_is_the_model(ran, monkeypatch):
    monkeypatch.setattr(PreparedTransformer, "refuse", staticmethod(lambda model: "so it is"))
    made = predictor()
    made.warm_up()
    made.translate(SENTENCES)
    assert ran == {"model"}


@pytest.mark.parametrize(
    "settings",
    [{"beam_size": 1}, {}, {"n_best": 3}, {"coverage_penalty": 0.3}, {"no_repeat_ngram": 2}],
    ids=str,
)
def test_every_search_finds_the_same_when_warm(settings):
    right = plainly(predictor(**settings), SENTENCES[:9])
    made = predictor(**settings)
    made.warm_up()
    check_same(made.translate(SENTENCES[:9]), right)


@pytest.mark.parametrize("settings", [{"beam_size": 1}, {}, {"n_best": 3, "groups": 2}], ids=str)
@pytest.mark.parametrize("layers", [None, [1]])
def test_what_was_looked_at_is_the_same_when_warm(settings, layers):
    right = plainly(predictor(**settings), SENTENCES[:9], attention=True, layers=layers)
    made = predictor(**settings)
    made.warm_up()
    found = made.translate(SENTENCES[:9], attention=True, layers=layers)
    check_same(found, right)
    uneven = 0.0
    for (one, *_), (other, *_) in zip(found, right, strict=True):
        weights, others = one.alignment.weights, other.alignment.weights
        torch.testing.assert_close(weights, others, atol=1e-5, rtol=0)
        uneven = max(uneven, float(weights.max() - weights.min()))
    assert uneven > 0.2  # or the rows could be anyone's


def test_recurrent_models_are_prepared_too_and_their_alignments_are_seen(monkeypatch):
    calls, step = set(), recurrent_kernels.step
    monkeypatch.setattr(recurrent_kernels, "step", lambda *all: calls.add("loop") or step(*all))
    made = predictor(RECURRENT)
    right = plainly(made, SENTENCES, attention=True)
    assert not calls
    for wants_attention in (False, True):
        found = made.translate(SENTENCES, attention=wants_attention)
        check_same(found, right)
        assert calls == {"loop"}
        calls.clear()
    for (one, *_), (other, *_) in zip(found, right, strict=True):
        torch.testing.assert_close(
            one.alignment.weights, other.alignment.weights, atol=1e-5, rtol=0
        )


TEXTS = [" ".join("abcdefgh"[(7 * i + j * j) % 8] for j in range(32)) for i in range(64)]


def labeller():
    sizes = {"model_dim": 12, "num_heads": 3, "num_layers": 2, "ffn_dim": 17}
    model = {"type": "transformer", "dropout": 0.0, **sizes}
    recipe = recipe_from_table(
        {"task": "classification", "tokenizer": {"type": "words"}, "model": model}
    )
    texts = [*TEXTS, "no label is like this"]
    examples = [
        LabelledText(text, text[0], None, f"a.tsv:{line}") for line, text in enumerate(texts, 1)
    ]
    task = TASKS["classification"].task.learn(recipe, examples)
    torch.manual_seed(5)
    return Predictor(task.build_model().eval(), task)


@pytest.mark.parametrize(
    ("texts", "is_warm", "is_read"), [(64, False, True), (60, False, False), (1, True, True)]
)
def test_many_texts_are_labelled_by_a_compiled_loop(texts, is_warm, is_read, monkeypatch):
    made, loop, calls = labeller(), encoder_kernels.read_texts, []
    right = [made.predict([text])[0] for text in TEXTS[:texts]]
    monkeypatch.setattr(encoder_kernels, "read_texts", lambda *all: calls.append(0) or loop(*all))
    if is_warm:
        made.warm_up()
        assert len(calls) == 1
    found = made.predict(TEXTS[:texts])
    assert bool(calls[is_warm:]) == is_read
    for one, other in zip(found, right, strict=True):
        assert one.label == other.label
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-5)
