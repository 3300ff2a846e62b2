"""The same laws of the searches on the real models, with random weights."""

from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.decoding import beam, greedy
from regard.models import MODELS

# Shapes of these models and searches are checked by the unit tests of both.
pytestmark = pytest.mark.usefixtures("as_users_have_it")

PAD, UNK, BOS, EOS, VOCAB = 0, 1, 2, 3, 41
SAME_SCORE, TIE, COUNT = 1e-4, 1e-5, 16

SETTINGS = {
    "transformer": {
        "model_dim": 24,
        "num_heads": 3,
        "num_encoder_layers": 2,
        "num_decoder_layers": 2,
        "ffn_dim": 31,
    },
    "conv_seq2seq": {"embed_dim": 13, "hidden_dim": 17, "num_decoder_layers": 2},
    "rnn_seq2seq": {"embed_dim": 13, "hidden_dim": 17, "attention_dim": 11, "num_layers": 2},
    "rnn_seq2seq copying": {"copy": True, "embed_dim": 13, "hidden_dim": 17, "attention_dim": 11},
    "rnn_seq2seq without attention": {"attention": "none", "embed_dim": 13, "hidden_dim": 17},
}


@cache
def model(name):
    torch.manual_seed(5)
    config, architecture = MODELS[name.split()[0]].config, MODELS[name.split()[0]].load()
    made = architecture(
        config(**SETTINGS[name]), source_vocab=VOCAB, target_vocab=VOCAB, shared_vocab=True
    )
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return made.eval()


@cache
def sentences():
    generator = torch.Generator().manual_seed(3)
    return [
        torch.randint(4, VOCAB, (length,), generator=generator)
        for length in torch.randint(1, 12, (COUNT,), generator=generator).tolist()
    ]


def search(name, chosen, *, beam_size, padding=0):
    sources = [sentences()[index] for index in chosen]
    lengths = torch.tensor([len(source) for source in sources])
    ids = torch.zeros(len(sources), int(lengths.max()) + padding, dtype=torch.long)
    for row, source in zip(ids, sources, strict=True):
        row[: len(source)] = source
    common = {"batch_size": len(sources), "bos_id": BOS, "eos_id": EOS}
    common |= {"max_lengths": lengths + 3, "forbidden": [PAD, UNK, BOS]}
    with torch.no_grad():
        state = model(name).start(ids, lengths)
    if beam_size == 1:
        return [[one] for one in greedy(model(name).step, state, **common)]
    return beam(model(name).step, state, beam_size=beam_size, n_best=2, **common)


@cache
def alone(name, index, beam_size):
    return search(name, [index], beam_size=beam_size)[0]


@pytest.mark.parametrize("name", sorted(SETTINGS))
@settings(deadline=None, max_examples=8)
@given(
    st.lists(st.integers(0, COUNT - 1), min_size=1, max_size=COUNT),
    st.integers(0, 5),
    st.sampled_from([1, 3]),
)
def test_an_answer_does_not_depend_on_its_batch(name, chosen, padding, beam_size):
    found = search(name, chosen, beam_size=beam_size, padding=padding)
    for index, answers in zip(chosen, found, strict=True):
        expected = alone(name, index, beam_size)
        assert len(answers) == len(expected)
        for one, other in zip(answers, expected, strict=True):
            assert abs(one.score - other.score) < SAME_SCORE
            if one.tokens != other.tokens:
                assert abs(one.score - other.score) < TIE, "other words, and no tie"
