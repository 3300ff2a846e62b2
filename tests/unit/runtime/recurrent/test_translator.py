"""A prepared recurrent encoder-decoder gives what the encoder-decoder gives."""

from functools import partial

import pytest
import torch

from regard.attention import observe
from regard.runtime import PreparedRnnSeq2Seq, base, prepared
from regard.runtime.recurrent import decoder, models

from .. import conftest
from ..conftest import VOCAB, pairwise, recurrent_translator

# As exact as is promised.
check_steps = partial(conftest.check_steps, atol=1e-5)
# Hundreds of steps, whose shapes checks would take longer than the steps.
pytestmark = pytest.mark.usefixtures("as_users_have_it")

OPTIONS = {
    "cell": ["rnn", "gru", "lstm"],
    "attention": ["additive", "dot", "general", "location", "none"],
    "decoder": ["bahdanau", "luong"],
    "values": ["states", "embeddings"],
    "num_layers": [1, 2, 3],
    "tie_embeddings": [True, False],
    "output_bias": [True, False],
    "beginning": ["backward", "both"],
}
LENGTHS = torch.tensor([7, 3, 5, 1, 7])


def source():
    return torch.randint(4, VOCAB, (5, 7)), LENGTHS


def possible(options):
    return options | ({"values": "states"} if options["attention"] == "none" else {})


@pytest.mark.parametrize(
    "options", [possible(each) for each in pairwise(OPTIONS)], ids=lambda each: f"{each['cell']}"
)
def test_steps_are_the_models(options, monkeypatch):
    model, given = recurrent_translator(**options), source()
    made = PreparedRnnSeq2Seq(model)
    with torch.no_grad():
        check_steps(model, made, model.start(*given), made.start(*given), rows=5, count=9)
    monkeypatch.setattr(decoder, "MOST_BYTES", 0)  # the output beside the loop
    made = PreparedRnnSeq2Seq(model)
    with torch.no_grad():
        check_steps(model, made, model.start(*given), made.start(*given), rows=5, count=4)


@pytest.mark.parametrize("has_logits", [True, False])
def test_the_output_of_a_small_table_is_part_of_the_loop(has_logits, monkeypatch):
    if not has_logits:
        monkeypatch.setattr(decoder, "MOST_BYTES", 0)
    model = recurrent_translator()
    made, seen = PreparedRnnSeq2Seq(model), []
    state, multiply = made.start(*source()), base.Linear.__call__
    monkeypatch.setattr(base.Linear, "__call__", lambda *given: seen.append(1) or multiply(*given))
    made.steps.best(torch.full((5,), 2), state, 3, [])
    assert bool(seen) != has_logits


def test_who_looks_at_nothing_has_nothing_to_show():
    made, seen = PreparedRnnSeq2Seq(recurrent_translator(attention="none")), []
    with observe(seen.append):
        made.step(torch.full((5,), 2), made.start(*source()))
    assert not seen


def test_tokens_may_be_a_column_of_a_table():
    made, table = PreparedRnnSeq2Seq(recurrent_translator()), torch.randint(4, VOCAB, (5, 3))
    state = made.start(*source())
    torch.testing.assert_close(
        made.step(table[:, 1], state)[0], made.step(table[:, 1].clone(), state)[0], atol=0, rtol=0
    )


def test_scores_far_apart_neither_overflow_nor_vanish():
    model, given = recurrent_translator(attention="general", decoder="luong"), source()
    with torch.no_grad():
        model.look.w.mul_(1000)
        made = PreparedRnnSeq2Seq(model)
        check_steps(model, made, model.start(*given), made.start(*given), rows=5, count=4)


@pytest.mark.parametrize("cell", ["gru", "lstm", "rnn"])
def test_gates_far_from_nothing_are_as_shut_and_open_as_the_models(cell):
    model, given = recurrent_translator(cell=cell), source()
    with torch.no_grad():
        for each in model.cells:
            each.input.weight.mul_(60)
        made = PreparedRnnSeq2Seq(model)
        check_steps(model, made, model.start(*given), made.start(*given), rows=5, count=4)


def test_what_does_not_fit_a_cores_cache_stays_as_it_is(monkeypatch):
    model = recurrent_translator()
    tables = sum(each.weight.nbytes for each in (model.source_embedding, model.target_embedding))
    size = sum(each.nbytes for each in model.parameters()) - tables
    monkeypatch.setattr(models, "MOST_BYTES", size)
    assert isinstance(prepared(model), PreparedRnnSeq2Seq)
    monkeypatch.setattr(models, "MOST_BYTES", size - 1)
    assert PreparedRnnSeq2Seq.refuse(model) == "it is too large for the cache of a core"
    assert prepared(model) is model
