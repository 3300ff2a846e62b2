"""Searches with a prepared model find what they find with the model itself."""

import random

import pytest
import torch
from tests import cases

from regard.attention.observing import observe
from regard.decoding import beam, greedy
from regard.errors import RunError
from regard.runtime import in_precision, prepared
from regard.runtime.base import DecoderSteps
from regard.runtime.transformer import decoder

from .conftest import VOCAB, language_model, recurrent_translator, translator

pytestmark = pytest.mark.usefixtures("as_users_have_it")

PAD, UNK, BOS, EOS = range(4)
DIVIDE = DecoderSteps.divide
MODELS = [(translator, "float32"), (translator, "int8"), (recurrent_translator, "float32")]


def ending(model, *, by=1.5):
    """The model, which ends its answers sooner."""
    with torch.no_grad():
        model.output_bias[EOS] += by
    return model


def check_same(outputs, expected):
    for answers, references in zip(outputs, expected, strict=True):
        for answer, other in zip(answers, references, strict=True):
            assert (answer.tokens, answer.is_finished) == (other.tokens, other.is_finished)
            assert answer.log_prob == pytest.approx(other.log_prob, abs=1e-4, rel=1e-5)
            assert answer.score == pytest.approx(other.score, abs=1e-4, rel=1e-5)


def settings_of(draw, rows):
    longest = draw.choice([5, 12, 40])
    limits = torch.tensor([draw.randint(1, longest) for _ in range(rows)])
    return {
        "batch_size": rows,
        "bos_id": BOS,
        "eos_id": EOS,
        "max_lengths": draw.choice([limits, longest]),
        "length_penalty": draw.choice([0.0, 0.6, 1.0]),
        "min_length": draw.choice([0, 0, 3, 50]),
        "forbidden": draw.choice([[], [PAD, UNK, BOS], draw.sample(range(4, VOCAB), 30)]),
    }


def check_searches(model, draw):
    """Greedy search and a beam with settings at random, over sentences at random."""
    runtime, rows = prepared(model), draw.randint(1, 11)
    assert runtime is not model
    lengths = torch.tensor([draw.randint(1, 9) for _ in range(rows)])
    inputs = torch.randint(4, VOCAB, (rows, int(lengths.max()))), lengths
    settings, width = settings_of(draw, rows), draw.choice([1, 2, 4, 5])
    wide = settings | {"beam_size": width, "n_best": draw.randint(1, width)}
    with torch.no_grad():
        check_same(
            [[answer] for answer in greedy(runtime.steps, runtime.start(*inputs), **settings)],
            [[answer] for answer in greedy(model.steps, model.start(*inputs), **settings)],
        )
        check_same(
            beam(runtime.steps, runtime.start(*inputs), **wide),
            beam(model.steps, model.start(*inputs), **wide),
        )


@pytest.mark.parametrize("seed", range(12))
def test_greedy_and_beam_find_the_same(seed, monkeypatch):
    draw = random.Random(seed)
    if seed % 3 == 2:
        monkeypatch.setattr(decoder, "MOST_BYTES", 0)  # all rows in one block
    model = translator(
        num_decoder_layers=draw.randint(1, 2),
        norm=draw.choice(["pre", "post"]),
        positions=draw.choice(["sinusoidal", "learned", "alibi"]),
        activation=draw.choice(["relu", "gelu", "swiglu"]),
        output_bias=True,
    )
    check_searches(ending(model, by=draw.choice([0.0, 1.0, 3.0])), draw)
    model = recurrent_translator(
        cell=draw.choice(["rnn", "gru", "lstm"]),
        attention=draw.choice(["additive", "dot", "general", "location", "none"]),
        decoder=draw.choice(["bahdanau", "luong"]),
        num_layers=draw.randint(1, 2),
    )
    check_searches(ending(model, by=draw.choice([0.0, 1.0, 3.0])), draw)


@pytest.mark.usefixtures("threads")
@cases.pairwise(
    rows=[1, 7, 17, 65, 121], search=[greedy, beam], kind=MODELS, most=[decoder.MOST_BYTES, 0]
)
def test_answers_do_not_depend_on_the_number_of_threads(rows, search, kind, most, monkeypatch):
    monkeypatch.setattr(decoder, "MOST_BYTES", most)  # blocks of rows, or all of them in one
    monkeypatch.setattr(decoder, "BYTES_A_THREAD", 1)
    model, precision = kind
    runtime = prepared(in_precision(ending(model(output_bias=True)), precision))
    inputs = torch.randint(4, VOCAB, (rows, 6)), torch.randint(1, 7, (rows,))
    state = runtime.start(*inputs)
    settings = {"batch_size": rows, "bos_id": BOS, "eos_id": EOS, "max_lengths": 12}
    outputs = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        outputs.append(search(runtime.steps, state, **settings))
    assert outputs[0] == outputs[1] == outputs[2]


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "alibi", "rotary"])
@pytest.mark.parametrize("make", [translator, language_model])
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_one_loop_writes_what_steps_would(make, positions, precision, monkeypatch):
    torch.set_num_threads(1)
    runtime = prepared(in_precision(make(positions=positions, max_length=150), precision))
    loops = []
    write = decoder.DecoderStack.write

    def counted(stack, *arguments):
        loops.append(write(stack, *arguments))
        return loops[-1]

    for rows in (1, 3, 30, 70):
        limits = torch.randint(1, 145, (rows,))  # some beyond the room of a new store
        limits[0] = 145
        settings = {"batch_size": rows, "bos_id": BOS, "eos_id": EOS, "max_lengths": limits}
        settings |= {"min_length": 100, "forbidden": [PAD, UNK]}
        lengths = torch.full((rows,), 5)
        state = runtime.start(torch.randint(4, VOCAB, (rows, 5)), lengths)
        monkeypatch.setattr(decoder.DecoderStack, "write", lambda *_: None)
        expected = greedy(runtime.steps, state, **settings)
        monkeypatch.setattr(decoder.DecoderStack, "write", counted)
        assert greedy(runtime.steps, state, **settings) == expected
        longest = max(len(each.tokens) for each in expected)
        assert longest >= 100
        assert len(loops) < 60
        assert (None in loops) == (rows == 70)  # two blocks, until some of them are written
        loops.clear()


@pytest.fixture
def divisions(monkeypatch):
    """How many parts each search was divided into; 1 where it was not."""
    counts = []

    def divide(steps, state, parts, width):
        states = DIVIDE(steps, state, parts, width)
        counts.append(1 if states is None else len(states))
        return states

    monkeypatch.setattr(DecoderSteps, "divide", divide)
    return counts


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("search", [greedy, beam])
@pytest.mark.parametrize("model", [translator, recurrent_translator])
def test_threads_have_sentences_of_their_own_where_there_are_enough(search, model, divisions):
    torch.set_num_threads(3)
    runtime = prepared(ending(model(output_bias=True)))
    settings = {"bos_id": BOS, "eos_id": EOS, "max_lengths": 12}
    for rows, parts in ((1, None), (3, 1), (26, 3)):
        state = runtime.start(torch.randint(4, VOCAB, (rows, 6)), torch.randint(1, 7, (rows,)))
        with torch.inference_mode():
            search(runtime.steps, state, batch_size=rows, **settings)
        assert divisions == ([] if parts is None else [parts])
        divisions.clear()
    with torch.inference_mode(), observe(lambda *call: None):
        search(runtime.steps, state, batch_size=26, **settings)
    assert divisions == [1]


@pytest.mark.usefixtures("threads")
def test_an_error_of_one_thread_is_raised(divisions):
    torch.set_num_threads(2)
    runtime = prepared(translator(output_bias=True))
    state = runtime.start(torch.randint(4, VOCAB, (32, 6)), torch.full((32,), 6))
    state.memory[:, 31] = float("nan")
    with pytest.raises(RunError, match="NaN"):
        greedy(runtime.steps, state, batch_size=32, bos_id=BOS, eos_id=EOS, max_lengths=12)
    assert divisions == [2]


@pytest.mark.parametrize("search", [greedy, beam])
@pytest.mark.parametrize(("model", "precision"), MODELS)
def test_answers_do_not_depend_on_their_batch(search, model, precision):
    runtime = prepared(in_precision(ending(model(output_bias=True)), precision))
    inputs = torch.randint(4, VOCAB, (100, 6)), torch.randint(1, 7, (100,))
    state = runtime.start(*inputs)
    settings = {"bos_id": BOS, "eos_id": EOS, "max_lengths": 12}
    batched = search(runtime.steps, state, batch_size=100, **settings)
    for rows in ([0], [99], [5, 3, 8], list(range(9)), list(range(99, 30, -1))):
        part = search(
            runtime.steps, state.select(torch.tensor(rows)), batch_size=len(rows), **settings
        )
        expected = [batched[row] for row in rows]
        check_same(
            *(
                [[answer] for answer in outputs] if search is greedy else outputs
                for outputs in (part, expected)
            )
        )
        assert (
            precision == "float32" or part == expected
        )  # rounding would make more of a difference
