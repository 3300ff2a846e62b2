"""The tables of models: what tasks and searches rely on, of every one; and what joins them."""

from dataclasses import dataclass
from inspect import Parameter, signature

import pytest
import torch
from torch import nn

from regard.errors import SettingError
from regard.models import (
    LANGUAGE_MODELS,
    MODELS,
    PAIR_MODELS,
    PAIR_READERS,
    READERS,
    LanguageModel,
    PairClassifier,
    PairReader,
    Reader,
    Seq2Seq,
    TextReader,
    register_model,
    registry,
)

TABLES = {
    "MODELS": (Seq2Seq, {"source_vocab": 11, "target_vocab": 13, "shared_vocab": False}),
    "LANGUAGE_MODELS": (LanguageModel, {"vocab_size": 11}),
    "READERS": (TextReader, {"vocab_size": 11}),
    "PAIR_READERS": (Reader, {"vocab_size": 11}),
    "PAIR_MODELS": (Reader | PairClassifier, {"vocab_size": 11}),
}
EVERY = [(table, name) for table in TABLES for name in getattr(registry, table)]


@dataclass(frozen=True)
class ToyConfig:
    size: int = 3


class ToyReader(TextReader):
    def __init__(self, config, *, vocab_size, parts_vocab=0, num_features=0):
        super().__init__()
        self.max_length, self.output_dim = None, config.size
        self.embedding = nn.Embedding(vocab_size, config.size)

    def forward(self, ids, lengths=None):
        return self.embedding(ids)


@pytest.fixture
def tables_as_they_were(monkeypatch):
    for name in TABLES:
        monkeypatch.setattr(registry, name, dict(getattr(registry, name)))
    kinds = {
        kind: tuple(dict(table) for table in tables) for kind, tables in registry._TABLES.items()
    }
    monkeypatch.setattr(registry, "_TABLES", kinds)


@pytest.mark.parametrize(("table", "name"), EVERY)
def test_models_offer_what_their_kind_does(table, name):
    kind, sizes = TABLES[table]
    entry = getattr(registry, table)[name]
    config, architecture = entry.config, entry.load()
    if issubclass(architecture, PairClassifier):
        sizes = sizes | {"num_classes": 3}
    model = architecture(config(), **sizes)
    assert isinstance(model, kind)
    assert model.max_length is None or model.max_length > 0
    if isinstance(model, Reader | LanguageModel):
        assert model.output_dim > 0


@pytest.mark.parametrize(("table", "name"), EVERY)
def test_models_are_called_as_their_kind_is(table, name):
    architecture = getattr(registry, table)[name].load()
    kinds = (Seq2Seq, LanguageModel, TextReader, PairReader, PairClassifier)
    (kind,) = [each for each in kinds if issubclass(architecture, each)]
    for method in kind.__abstractmethods__:
        required = signature(getattr(kind, method)).parameters
        offered = dict(signature(getattr(architecture, method)).parameters)
        for name, parameter in required.items():
            own = offered.pop(name)
            assert (own.kind, own.default) == (parameter.kind, parameter.default)
        extra = offered.values()
        assert all(
            each.kind is Parameter.KEYWORD_ONLY and each.default is not Parameter.empty
            for each in extra
        )


def test_readers_say_how_they_read_two_texts():
    separate = {name for name, entry in PAIR_MODELS.items() if entry.load().reads_apart}
    with_features = {name for name, entry in PAIR_MODELS.items() if entry.load().reads_features}
    assert (separate, with_features) == ({"esim", "match"}, {"match", "transformer"})


def test_only_a_recurrence_is_recurrent():
    assert [name for name, entry in LANGUAGE_MODELS.items() if entry.load().is_recurrent] == [
        "recurrent"
    ]


@pytest.mark.usefixtures("tables_as_they_were")
def test_a_model_from_outside_stands_in_the_tables_of_its_kind():
    register_model("toy", ToyConfig, ToyReader)
    register_model("toy", ToyConfig, ToyReader)  # again, as a notebook's cell may
    of_readers, of_pairs, of_both = registry._TABLES["TextReader"]
    for table in (of_readers, of_pairs, of_both):
        assert (table["toy"].config, table["toy"].load()) == (ToyConfig, ToyReader)
    assert ToyReader(ToyConfig(), vocab_size=5)(torch.ones(2, 3, dtype=torch.long)).shape[-1] == 3


@pytest.mark.usefixtures("tables_as_they_were")
def test_a_model_is_registered_only_where_it_can_be_used():
    class Unfinished(Seq2Seq):
        def project(self, states):
            return states

    with pytest.raises(SettingError, match="Unfinished must have forward, start, step; it has"):
        register_model("unfinished", ToyConfig, Unfinished)
    with pytest.raises(SettingError, match=r"model must derive from one of .*Linear"):
        register_model("linear", ToyConfig, nn.Linear)
    with pytest.raises(SettingError, match="name must be of no other model; got 'bag'"):
        register_model("bag", ToyConfig, ToyReader)


def test_the_default_of_a_table_stands_first():
    tables = (MODELS, LANGUAGE_MODELS, READERS, PAIR_READERS, PAIR_MODELS)
    names = [next(iter(table)) for table in tables]
    assert names == ["transformer", "decoder", "bag", "match", "esim"]
