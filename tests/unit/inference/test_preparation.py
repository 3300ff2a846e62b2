"""A model is made ready once, until it is another."""

import pickle
from copy import deepcopy

import pytest
import torch
from tests.unit.inference.conftest import letters_predictor, untrained
from torch import nn

from regard.attention import observe
from regard.inference import preparation
from regard.inference.preparation import Preparation
from regard.tasks.labels.label_task import LabelledText
from regard.text import batched


class Made(nn.Module):
    """Stand-in for a prepared model."""


@pytest.fixture
def ready(monkeypatch):
    """A preparation, and the models it was made of."""
    prepared_models = []
    monkeypatch.setattr(
        preparation, "prepared", lambda model: prepared_models.append(model) or Made()
    )
    return Preparation(), prepared_models


def model():
    return nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.Dropout(0.5))


def load(module):
    module.load_state_dict({name: each + 1 for name, each in module.state_dict().items()})


CHANGES = {
    "learn": lambda module: module[0].weight.detach().add_(1),
    "swap": lambda module: setattr(module[0].weight, "data", torch.zeros(2, 3)),
    "replace": lambda module: module.__setitem__(0, nn.Linear(3, 2)),
    "buffer": lambda module: module[1].running_mean.add_(1),
    "load": load,
    "train": lambda module: module[2].train(),
}


@pytest.mark.parametrize(
    ("change", "times"),
    [(lambda module: module.eval(), 1), *((change, 2) for change in CHANGES.values())],
    ids=["nothing", *CHANGES],
)
def test_it_is_made_again_when_it_is_another(change, times, ready):
    preparing, prepared_models = ready
    module = model()
    first = preparing.of(module)
    assert not module.training
    assert preparing.of(module) is first
    change(module)
    second = preparing.of(module)
    assert (second is first) == (times == 1)
    assert preparing.of(module) is second
    assert prepared_models == [module] * times
    assert not any(each.training for each in module.modules())


def test_nothing_is_cached_while_somebody_observes(ready):
    preparing, prepared_models = ready
    module = model()
    cached = preparing.of(module)
    with observe(lambda call: None):
        assert preparing.of(module) is not cached
    assert preparing.of(module) is cached
    assert len(prepared_models) == 2


def test_a_model_prepared_in_inference_mode_is_cached(ready):
    preparing, prepared_models = ready
    with torch.inference_mode():
        module = model()
        first = preparing.of(module)
        assert preparing.of(module) is first
    assert len(prepared_models) == 1


@pytest.mark.parametrize("copied", [lambda value: pickle.loads(pickle.dumps(value)), deepcopy])
@pytest.mark.parametrize("kind", ["transformer", "rnn_seq2seq"])
def test_a_predictor_that_was_used_is_copied_and_answers_the_same(kind, copied):
    predictor = letters_predictor(kind)
    before = [each.text() for each in predictor.translate(["cab", "fade a bed"])]
    page = copied(predictor.look("cab"))
    other = copied(predictor)
    assert [each.text() for each in other.translate(["cab", "fade a bed"])] == before
    assert other.preparation is not predictor.preparation
    assert "<iframe" in page._repr_html_()


@pytest.mark.parametrize(("ffn_dim", "most"), [(16, 8192), (4096, 1024)])
def test_wide_layers_answer_by_smaller_batches(ffn_dim, most, monkeypatch):
    sizes = {"model_dim": 8, "num_heads": 2, "num_layers": 1, "ffn_dim": ffn_dim}
    table = {"task": "classification", "data": {"train": "none.tsv"}}
    table |= {"tokenizer": {"type": "words"}, "model": {"type": "transformer", **sizes}}
    line = "the cat sat on it " * 5
    texts = [LabelledText(line, label, None, "") for label in "ab" * 200]
    predictor, tokens = untrained(table, texts), []

    def noted(lengths, max_tokens):
        for indices in batched(lengths, max_tokens):
            tokens.append(len(indices) * max(lengths[index] for index in indices))
            yield indices

    monkeypatch.setattr(preparation, "batched", noted)
    assert len(predictor.answers(texts)) == len(texts)
    assert most // 2 < max(tokens) <= most
