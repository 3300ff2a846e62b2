"""The temperature of classifiers: found, stored, and in all that answers."""

import json

import pytest
import torch

from regard.inference import Predictor
from regard.models import (
    Classifier,
    ClassifierConfig,
    Encoder,
    EncoderConfig,
    Esim,
    EsimConfig,
    MultipleChoice,
    VisionTransformer,
    VisionTransformerConfig,
)
from regard.runs import Run
from regard.tasks import TASKS
from regard.training import train
from regard.training.calibration import Scales, fit_scales, fit_temperature

SIZES = EncoderConfig(model_dim=8, num_heads=2, num_layers=1, ffn_dim=16)


def likelihood(rows, right, temperature):
    log_probs = (rows.log() / temperature).log_softmax(-1)
    return log_probs[torch.arange(len(rows)), torch.tensor(right)].mean()


@pytest.mark.parametrize("true", [0.5, 1.0, 3.0])
def test_logits_that_are_too_large_or_too_small_are_put_right(true):
    torch.manual_seed(1)
    logits = 2 * torch.randn(20_000, 5, dtype=torch.float64)
    right = torch.multinomial(logits.softmax(-1), 1).flatten().tolist()
    found = fit_temperature((true * logits).softmax(-1).tolist(), right)
    assert found == pytest.approx(true, rel=0.05)


def test_no_other_temperature_is_likelier_whatever_the_numbers_of_choices():
    torch.manual_seed(2)
    rows = (4 * torch.randn(5000, 3, dtype=torch.float64)).softmax(-1)
    right = torch.multinomial(rows.sqrt(), 1).flatten().tolist()
    found = fit_temperature(rows.tolist(), right)
    best = likelihood(rows, right, found)
    assert all(best >= likelihood(rows, right, found * factor) for factor in (0.9, 1.1))
    padded = [[*row, 1e-30] if index % 2 else row for index, row in enumerate(rows.tolist())]
    assert fit_temperature(padded, right) == pytest.approx(found, rel=0.05)


def test_a_few_examples_that_are_all_right_give_no_certainty():
    temperature = fit_temperature([[0.9, 0.1], [0.2, 0.8]] * 5, [0, 1] * 5)
    after = (torch.tensor([0.9, 0.1]).log() / temperature).softmax(-1)
    assert 0.9 < after[0] < 0.99


def test_probabilities_that_are_zero_or_all_the_same_are_no_problem():
    assert 1 < fit_temperature([[1.0, 0.0]] * 3, [0, 1, 0]) <= 20
    assert 0 < fit_temperature([[0.5, 0.5]] * 3, [0, 1, 0]) <= 20


def ids(*shape):
    return torch.randint(4, 11, shape)


def make_models():
    torch.manual_seed(3)
    lengths = torch.tensor([5, 2])
    classifier = Classifier(
        ClassifierConfig(pooler=True, ngram_scores=True),
        Encoder(SIZES, vocab_size=11),
        num_classes=3,
        num_features=2,
        num_ngrams=11,
    )
    classifier.ngrams.set(torch.randn(11, 3), torch.randn(3))
    beside = {"overlap": torch.rand(2, 2), "ngrams": ids(2, 5), "ngram_values": torch.rand(2, 5)}
    yield classifier, lambda model: model(ids_of_two, lengths, **beside)
    choice = MultipleChoice(ClassifierConfig(), Encoder(SIZES, vocab_size=11))
    counts = torch.tensor([[5, 2, 3], [4, 5, 0]])
    yield choice, lambda model: model(ids_of_choices, counts)
    esim = Esim(EsimConfig(embed_dim=6, hidden_dim=4), vocab_size=11, num_features=2)
    yield (
        esim,
        lambda model: model(
            ids_of_two, lengths, ids_of_two[:, :3], torch.tensor([1, 3]), overlap=beside["overlap"]
        ),
    )
    picture = VisionTransformer(
        VisionTransformerConfig(model_dim=8, num_heads=2, num_layers=1, ffn_dim=16, patch=4),
        size=(8, 8),
        channels=1,
        num_classes=3,
    )
    yield picture, lambda model: model(pictures)


torch.manual_seed(4)
ids_of_two, ids_of_choices, pictures = ids(2, 5), ids(2, 3, 5), torch.rand(2, 1, 8, 8)


@pytest.mark.parametrize("number", range(4))
def test_all_that_is_summed_to_logits_is_divided(number):
    model, call = list(make_models())[number]
    with torch.no_grad():
        before = call(model.eval())
        model.divide_logits(2.5)
        torch.testing.assert_close(call(model), before / 2.5)


def test_a_run_has_its_temperature_and_answers_in_the_same_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # One label in four is wrong, so that a model that learns them by heart is too sure.
    words = [f"w{number % 7} x{number % 11} y{number % 13}" for number in range(200)]
    rows = [(text, "ab"[(n % 7 > 3) ^ (n % 4 == 0)]) for n, text in enumerate(words)]
    settings = {"training.least_updates": 120, "training.precision": "float32"}
    trained = train("classification-bag", "run", data=rows, settings=settings)
    summary = json.loads((tmp_path / "run/run.json").read_text())["summary"]
    assert summary["temperature"] != 1
    candidate = summary["candidates"][summary["weights"]]
    assert summary["validation"]["loss"] < candidate["loss"]
    assert summary["validation"]["accuracy"] == candidate["accuracy"]
    run, task = Run.open("run"), trained.predictor.task
    saved = {each.step: each for each in run.checkpoints()}
    step = max(saved) if summary["weights"] == "last" else min(saved)
    model = TASKS["classification"].task.build_model(task)
    model.load_state_dict(saved[step].load_model())
    raw = Predictor(model, task).predict(words)
    for one, other in zip(raw, trained.predictor.predict(words), strict=True):
        assert one.label == other.label
        expected = one.log_odds(one.label) / summary["temperature"]
        assert other.log_odds(one.label) == pytest.approx(expected, abs=1e-3)


def mixture(num_examples, told_by_network):
    """Probabilities of a network, of n-grams, of both; and the true labels, in two classes."""
    generator = torch.Generator().manual_seed(1)
    right = torch.randint(2, (num_examples,), generator=generator)
    signs = torch.stack([1.0 - right, right.float()], 1)
    network = 8 * (signs * told_by_network + torch.rand(num_examples, 2, generator=generator))
    scores = signs + torch.rand(num_examples, 2, generator=generator)
    both = (network + scores).softmax(-1)
    return network.softmax(-1).tolist(), both.tolist(), right.tolist()


def test_a_network_counts_where_enough_examples_say_so():
    assert fit_scales(*mixture(20, 0.0)).network == 0.0
    assert fit_scales(*mixture(500, 0.0)).network < 0.1
    assert fit_scales(*mixture(500, 0.7)).network > 0.1


def test_of_few_examples_the_scores_of_ngrams_stay_as_they_were_fitted():
    rows, both, right = mixture(12, 0.0)
    assert fit_scales(rows, both, right) == Scales(network=0.0, ngrams=1.0)


def test_the_scales_are_those_of_the_sum():
    classifier, call = next(make_models())
    classifier.overlap = None
    with torch.no_grad():
        both = call(classifier.eval())
        classifier.ngrams.scale.zero_()
        network = call(classifier)
        classifier.scale_logits(network=0.5, ngrams=2.0)
        torch.testing.assert_close(call(classifier), 0.5 * network + 2 * (both - network))
