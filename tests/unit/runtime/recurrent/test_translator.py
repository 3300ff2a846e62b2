"""A prepared recurrent encoder-decoder gives what the encoder-decoder gives."""

from functools import partial

import pytest
import torch

from regard.attention import observe
from regard.inference.look import mean_weights
from regard.runtime import PreparedRnnSeq2Seq, base, prepared
from regard.runtime.recurrent import decoder, models

from .. import conftest
from ..conftest import VOCAB, pairwise, recurrent_translator, shaken

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
    """The same options, of which a fixed context is one of states."""
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


@pytest.mark.parametrize("decoder", ["bahdanau", "luong"])
@pytest.mark.parametrize("attention", ["additive", "general", "location"])
@pytest.mark.parametrize("way", ["step", "best"])
def test_whoever_observes_a_step_is_shown_what_it_looks_at(decoder, attention, way):
    model, given = recurrent_translator(decoder=decoder, attention=attention, cell="lstm"), source()
    made, token = PreparedRnnSeq2Seq(model), torch.full((5,), 2)
    seen, right, rows = [], [], torch.tensor([4, 4, 0, 2])
    with torch.no_grad():
        state, ready = model.start(*given), made.start(*given)
        for _ in range(3):
            with observe(right.append):
                _, state = model.step(token, state)
            with observe(seen.append):
                if way == "step":
                    _, ready = made.step(token, ready)
                else:
                    *_, ready = made.steps.best(token, ready, 3, [])
            state, ready, token = state.select(rows), ready.select(rows), token[rows] + 3
            rows = torch.tensor([1, 0, 3, 2])
    assert [(call.kind, call.layer) for call in seen] == [("cross", 0)] * 3
    for one, other in zip(seen, right, strict=True):
        torch.testing.assert_close(mean_weights(one), mean_weights(other), atol=1e-5, rtol=0)


def test_who_looks_at_nothing_has_nothing_to_show():
    made, seen = PreparedRnnSeq2Seq(recurrent_translator(attention="none")), []
    with observe(seen.append):
        made.step(torch.full((5,), 2), made.start(*source()))
    assert not seen


@pytest.mark.parametrize("rows", [1, 8, 9, 64, 65, 150])
def test_all_rows_are_reached_in_blocks(rows):
    model = recurrent_translator(num_layers=2)
    made = PreparedRnnSeq2Seq(model)
    given = torch.randint(4, VOCAB, (rows, 3)), torch.randint(1, 4, (rows,))
    token = torch.randint(4, VOCAB, (rows,))
    with torch.no_grad():
        expected, _ = model.step(token, model.start(*given))
    values, tokens, _ = made.steps.best(token, made.start(*given), 2, [])
    torch.testing.assert_close(values, expected.topk(2).values, atol=1e-5, rtol=0)
    torch.testing.assert_close(values, expected.gather(1, tokens), atol=1e-5, rtol=0)


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


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"copy": True}, "it copies words"),
        ({"coverage": True}, "it does not look at all places alike"),
        ({"hard": True}, "it does not look at all places alike"),
        ({"local": "monotonic"}, "it does not look at all places alike"),
        ({"local": "predictive"}, "it does not look at all places alike"),
        ({"attention": "mixture"}, "it does not look at all places alike"),
    ],
)
def test_what_cannot_be_prepared_stays_as_it_is(options, reason):
    model = recurrent_translator(**options)
    assert PreparedRnnSeq2Seq.refuse(model) == reason
    assert prepared(model) is model


def test_only_float32_is_prepared():
    model = recurrent_translator()
    assert isinstance(prepared(model), PreparedRnnSeq2Seq)
    assert PreparedRnnSeq2Seq.refuse(model.double()) == "it is not in float32 on a CPU"
    assert prepared(model) is model


def test_what_does_not_fit_a_cores_cache_stays_as_it_is(monkeypatch):
    model = recurrent_translator()
    tables = sum(each.weight.nbytes for each in (model.source_embedding, model.target_embedding))
    size = sum(each.nbytes for each in model.parameters()) - tables
    monkeypatch.setattr(models, "MOST_BYTES", size)
    assert isinstance(prepared(model), PreparedRnnSeq2Seq)
    monkeypatch.setattr(models, "MOST_BYTES", size - 1)
    assert PreparedRnnSeq2Seq.refuse(model) == "it is too large for the cache of a core"
    assert prepared(model) is model


def test_nothing_is_prepared_where_loops_cannot_be_compiled(monkeypatch):
    monkeypatch.setattr(base, "why_not", lambda: "numba is not here")
    model = recurrent_translator()
    assert PreparedRnnSeq2Seq.refuse(model) == "numba is not here"
    assert prepared(model) is model


def test_what_stands_around_the_steps_is_the_models():
    model = recurrent_translator(attention="location")
    made = PreparedRnnSeq2Seq(model)
    given = (*source(), torch.randint(4, VOCAB, (5, 3)))
    states, _ = made(*given)
    torch.testing.assert_close(states, model(*given)[0], atol=0, rtol=0)
    torch.testing.assert_close(made.project(states), model.project(states), atol=0, rtol=0)
    assert (made.max_length, made.begins_source) == (20, False)
    assert not prepared(model).training


def test_what_is_prepared_again_has_learned_more():
    model = recurrent_translator()
    given, token = source(), torch.full((5,), 2)
    before, _ = prepared(model).step(token, prepared(model).start(*given))
    shaken(model)
    made = prepared(model)
    after, _ = made.step(token, made.start(*given))
    with torch.no_grad():
        expected, _ = model.step(token, model.start(*given))
    torch.testing.assert_close(after, expected, atol=1e-5, rtol=0)
    assert (after - before).abs().max() > 0.01
