"""Answers made of the tokens on lists are those of a model that gives the others no chance."""

import random
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from regard.attention import observe
from regard.decoding import beam, greedy
from regard.errors import SettingError
from regard.models.shortlist import Shortlist
from regard.runtime import check_shortlist, in_precision, prepared
from regard.runtime.transformer import decoder

from ..conftest import VOCAB, conv_translator, language_model, recurrent_translator, translator
from ..test_searches import BOS, EOS, check_same, ending, settings_of

pytestmark = pytest.mark.usefixtures("as_users_have_it")

MODELS = [
    (translator, "float32"),
    (translator, "int8"),
    (recurrent_translator, "float32"),
    (conv_translator, "float32"),
]


def drawn(seed, *, count=2):
    """A shortlist at random: lists of two sentences differ."""
    likely = np.random.default_rng(seed).integers(4, VOCAB, (VOCAB, count)).astype(np.int32)
    return Shortlist(likely, np.arange(4), VOCAB)


@dataclass
class Masked:
    """A model's state, and the sentence of each row."""

    state: object
    rows: torch.Tensor

    def select(self, rows):
        return Masked(self.state.select(rows), self.rows[rows])


def masked(model, shortlist, source, lengths):
    """A step of the model after which nothing is likely but what is on lists, and its beginning."""
    mask = torch.from_numpy(shortlist.of(source, lengths))

    def step(token, state):
        log_probs, after = model.step(token, state.state)
        hidden = log_probs.masked_fill(~mask[state.rows], -torch.inf)
        return hidden.log_softmax(-1), Masked(after, state.rows)

    return step, Masked(model.start(source, lengths), torch.arange(len(source)))


def sources(draw, rows):
    lengths = torch.tensor([draw.randint(1, 9) for _ in range(rows)])
    return torch.randint(4, VOCAB, (rows, int(lengths.max()))), lengths


def check_searches(model, draw):
    rows, shortlist = draw.randint(1, 11), drawn(draw.randint(0, 1000))
    given, settings = sources(draw, rows), settings_of(draw, rows)
    made = prepared(model, shortlist=shortlist)
    width = draw.choice([1, 2, 4])
    with torch.no_grad():
        plain = masked(model, shortlist, *given)
        check_same(
            [[one] for one in greedy(made.steps, made.start(*given), **settings)],
            [[one] for one in greedy(*plain, **settings)],
        )
        check_same(
            beam(made.steps, made.start(*given), beam_size=width, **settings),
            beam(*plain, beam_size=width, **settings),
        )
        log_probs, _ = made.step(torch.full((rows,), BOS), made.start(*given))
        right, _ = plain[0](torch.full((rows,), BOS), plain[1])
    torch.testing.assert_close(log_probs, right, atol=3e-5, rtol=0)


@pytest.mark.parametrize("seed", range(16))
def test_answers_are_those_of_a_model_that_gives_others_no_chance(seed, monkeypatch):
    draw = random.Random(seed)
    if seed % 3 == 2:
        monkeypatch.setattr(decoder, "MOST_BYTES", 0)  # layer by layer
    model = translator(
        decoder=draw.choice(["self_attention", "ssru"]), output_bias=draw.random() < 0.8
    )
    check_searches(ending(model) if model.output_bias is not None else model, draw)


@pytest.mark.parametrize("seed", range(8))
def test_so_are_those_of_recurrent_and_convolutional_models(seed):
    draw = random.Random(seed)
    model = recurrent_translator(
        cell=draw.choice(["gru", "lstm"]), attention=draw.choice(["additive", "none"])
    )
    check_searches(ending(model if seed % 2 else conv_translator()), draw)


@pytest.mark.parametrize("search", [greedy, beam])
@pytest.mark.parametrize(("model", "precision"), MODELS)
def test_answers_do_not_depend_on_their_company(search, model, precision):
    model = in_precision(ending(model(output_bias=True)), precision)
    made = prepared(model, shortlist=drawn(7))
    source, lengths = torch.randint(4, VOCAB, (70, 6)), torch.randint(1, 7, (70,))
    settings = {"bos_id": BOS, "eos_id": EOS, "max_lengths": 12}
    whole = search(made.steps, made.start(source, lengths), batch_size=70, **settings)
    for rows in ([0], [69], [5, 3, 8], list(range(9)), list(range(69, 20, -1))):
        state = made.start(source[rows], lengths[rows])
        part = search(made.steps, state, batch_size=len(rows), **settings)
        right = [whole[row] for row in rows]
        check_same(
            *([[one] for one in found] if search is greedy else found for found in (part, right))
        )
        assert precision == "float32" or part == right  # rounding would make more of a difference


@pytest.mark.parametrize(("model", "precision"), MODELS)
def test_lists_of_all_tokens_change_nothing(model, precision):
    model = in_precision(ending(model(output_bias=True)), precision)
    everything = Shortlist(np.zeros((VOCAB, 1), np.int32), np.arange(VOCAB), VOCAB)
    given = torch.randint(4, VOCAB, (11, 6)), torch.randint(1, 7, (11,))
    settings = {"batch_size": 11, "bos_id": BOS, "eos_id": EOS, "max_lengths": 12}
    plain, listed = prepared(model), prepared(model, shortlist=everything)
    check_same(
        beam(listed.steps, listed.start(*given), **settings),
        beam(plain.steps, plain.start(*given), **settings),
    )


def test_no_answer_holds_what_is_on_no_list():
    made = prepared(ending(translator(output_bias=True)), shortlist=drawn(1, count=1))
    given = torch.full((3, 2), 9), torch.full((3,), 2)
    found = greedy(
        made.steps, made.start(*given), batch_size=3, bos_id=BOS, eos_id=EOS, max_lengths=30
    )
    own = {0, 1, 2, int(drawn(1, count=1).likely[9, 0])}
    assert {token for each in found for token in each.tokens} <= own


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (lambda: translator(copy=True), "it copies words"),
        (lambda: recurrent_translator(copy=True), "it copies words"),
        (language_model, "got Decoder"),
    ],
)
def test_a_model_that_cannot_be_prepared_is_refused(model, reason):
    with pytest.raises(SettingError, match=f"shortlist must go with .*; {reason}"):
        prepared(model(), shortlist=drawn(1))


def test_a_model_that_somebody_observes_is_refused():
    with observe(lambda call: None), pytest.raises(SettingError, match="edited or observed"):
        check_shortlist(translator())
