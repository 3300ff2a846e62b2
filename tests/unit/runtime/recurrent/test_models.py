"""Prepared recurrent models give what the models give."""

from functools import partial

import pytest
import torch
from tests.cases import two_by_two

from regard.attention import observe
from regard.runtime import base, prepared
from regard.runtime.recurrent import decoder, models
from regard.runtime.recurrent.models import PreparedRecurrentLm, PreparedRnnSeq2Seq

from .. import conftest
from ..conftest import (
    VOCAB,
    prompts,
    recurrent_language_model,
    recurrent_translator,
    rounded_copies,
)

# As exact as is promised.
check_steps = partial(conftest.check_steps, atol=1e-5)
# Hundreds of steps, whose shapes checks would take longer than the steps.
pytestmark = pytest.mark.usefixtures("as_users_have_it")

COMMON = {
    "cell": ["rnn", "gru", "lstm"],
    "num_layers": [1, 2, 3],
    "tie_embeddings": [True, False],
    "output_bias": [True, False],
}
TRANSLATORS = COMMON | {
    "attention": ["additive", "dot", "general", "location", "none"],
    "decoder": ["bahdanau", "luong"],
    "values": ["states", "embeddings"],
    "beginning": ["backward", "both"],
}
LANGUAGE_MODELS = COMMON | {"embed_dim": [12, 17]}  # as wide as the state, or not


def source():
    return torch.randint(4, VOCAB, (5, 7)), torch.tensor([7, 3, 5, 1, 7])


@pytest.mark.parametrize("options", two_by_two(TRANSLATORS), ids=lambda each: each["cell"])
def test_steps_of_a_translator_are_the_models(options, monkeypatch):
    if options["attention"] == "none":
        options = options | {"values": "states"}
    model = recurrent_translator(**options)
    copies = rounded_copies(model)
    check_steps(model, PreparedRnnSeq2Seq(model), source(), count=9, copies=copies)
    monkeypatch.setattr(decoder, "MOST_BYTES", 0)  # the output beside the loop
    check_steps(model, PreparedRnnSeq2Seq(model), source(), count=4)


@pytest.mark.parametrize("options", two_by_two(LANGUAGE_MODELS), ids=lambda each: each["cell"])
def test_steps_of_a_language_model_are_the_models(options, monkeypatch):
    model = recurrent_language_model(**options)
    for lengths, count in (([6, 2, 4, 1], 7), ([0, 0, 0], 5)):
        check_steps(model, PreparedRecurrentLm(model), prompts(lengths), count=count)
    monkeypatch.setattr(decoder, "MOST_BYTES", 0)
    check_steps(model, PreparedRecurrentLm(model), prompts([3, 1]), count=4)


def test_an_elman_network_may_have_relus():
    model = recurrent_language_model(cell="rnn", activation="relu")
    check_steps(model, PreparedRecurrentLm(model), prompts([3, 1]), count=5)


@pytest.mark.parametrize("has_logits", [True, False])
def test_the_output_of_a_small_table_is_part_of_the_loop(has_logits, monkeypatch):
    if not has_logits:
        monkeypatch.setattr(decoder, "MOST_BYTES", 0)
    runtime, products = PreparedRnnSeq2Seq(recurrent_translator()), []
    state, multiply = runtime.start(*source()), base.Linear.__call__
    monkeypatch.setattr(
        base.Linear, "__call__", lambda *args: products.append(1) or multiply(*args)
    )
    runtime.steps.best(torch.full((5,), 2), state, 3, [])
    assert bool(products) != has_logits


def test_without_attention_there_is_nothing_to_observe():
    runtime, calls = PreparedRnnSeq2Seq(recurrent_translator(attention="none")), []
    with observe(calls.append):
        runtime.step(torch.full((5,), 2), runtime.start(*source()))
    assert not calls


def test_tokens_may_be_a_column_of_a_table():
    runtime, table = PreparedRnnSeq2Seq(recurrent_translator()), torch.randint(4, VOCAB, (5, 3))
    state = runtime.start(*source())
    torch.testing.assert_close(
        runtime.step(table[:, 1], state)[0],
        runtime.step(table[:, 1].clone(), state)[0],
        atol=0,
        rtol=0,
    )


@pytest.mark.parametrize("attention", ["additive", "none"])
@pytest.mark.parametrize("lengths", [[0, 0], [0] * 30, [3] * 15 + [0] * 15])
def test_sources_without_tokens_are_read_as_the_model_reads_them(attention, lengths):
    model = recurrent_translator(attention=attention)
    for columns in (3, 0):
        real = torch.tensor(lengths, dtype=torch.long).clamp(max=columns)
        source = torch.full((len(lengths), columns), 7), real
        check_steps(model, PreparedRnnSeq2Seq(model), source, count=2)
        nothing = PreparedRnnSeq2Seq(model).start(source[0][:0], real[:0])
        assert nothing.num_rows == 0


@torch.no_grad()
@pytest.mark.parametrize("cell", ["gru", "lstm", "rnn"])
def test_scores_and_gates_far_from_nothing_are_the_models(cell):
    model = recurrent_translator(cell=cell, attention="general", decoder="luong")
    model.attention.w.mul_(1000)
    check_steps(model, PreparedRnnSeq2Seq(model), source(), count=4)
    model = recurrent_translator(cell=cell)
    for each in model.cells:
        each.input.weight.mul_(60)
    check_steps(model, PreparedRnnSeq2Seq(model), source(), count=4)


def test_what_does_not_fit_a_cores_cache_stays_as_it_is(monkeypatch):
    model = recurrent_translator()
    tables = sum(each.weight.nbytes for each in (model.source_embedding, model.target_embedding))
    size = sum(each.nbytes for each in model.parameters()) - tables
    monkeypatch.setattr(models, "MOST_BYTES", size)
    assert isinstance(prepared(model), PreparedRnnSeq2Seq)
    monkeypatch.setattr(models, "MOST_BYTES", size - 1)
    assert PreparedRnnSeq2Seq.refuse(model) == "it is too large for the cache of a core"
    assert prepared(model) is model
