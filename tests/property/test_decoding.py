"""Laws of the searches, on a small network that attends to a padded source."""

from dataclasses import dataclass, replace
from functools import cache

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.decoding import beam, greedy

PAD, UNK, BOS, EOS, VOCAB, DIM, LONGEST = 0, 1, 2, 3, 47, 13, 11
SAME_SCORE, TIE = 1e-4, 1e-5


@dataclass(frozen=True)
class State:
    memory: Tensor  # (B, S, C)
    lengths: Tensor  # (B,)
    hidden: Tensor  # (B, C)

    def select(self, rows):
        return State(self.memory[rows], self.lengths[rows], self.hidden[rows])


@cache
def weights():
    generator = torch.Generator().manual_seed(7)
    shapes = {"source": (VOCAB, DIM), "target": (VOCAB, DIM), "carry": (DIM, DIM)}
    return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}


@cache
def sentences(count):
    generator = torch.Generator().manual_seed(11)
    lengths = torch.randint(1, LONGEST, (count,), generator=generator).tolist()
    return [torch.randint(4, VOCAB, (n,), generator=generator) for n in lengths]


def start(sources, padding):
    lengths = torch.tensor([len(source) for source in sources])
    longest = int(lengths.max()) + padding
    ids = torch.stack([padded(source, longest) for source in sources])
    memory = weights()["source"][ids]
    seen = torch.arange(longest) < lengths[:, None]
    mean = (memory * seen[:, :, None]).sum(1) / lengths[:, None]
    return State(memory, lengths, mean.tanh())


def padded(source, longest):
    return torch.cat([source, source.new_full((longest - len(source),), PAD)])


def step(token, state):
    hidden = (state.hidden @ weights()["carry"] * 0.5 + weights()["target"][token]).tanh()
    scores = (state.memory @ hidden[:, :, None]).squeeze(2)
    hidden_keys = torch.arange(scores.shape[1]) >= state.lengths[:, None]
    attention = scores.masked_fill(hidden_keys, -torch.inf).softmax(-1)
    context = (attention[:, None] @ state.memory).squeeze(1)
    logits = (hidden + 0.3 * context) @ weights()["target"].T
    logits[:, EOS] += 2.0
    return logits.log_softmax(-1), replace(state, hidden=hidden)


def search(sources, *, beam_size, padding=0):
    limits = torch.tensor([2 * len(source) + 3 for source in sources])
    common = {"batch_size": len(sources), "bos_id": BOS, "eos_id": EOS, "max_lengths": limits}
    common |= {"forbidden": [PAD, UNK, BOS]}
    state = start(sources, padding)
    if beam_size == 0:
        return [[one] for one in greedy(step, state, **common)]
    return beam(step, state, beam_size=beam_size, n_best=min(2, beam_size), **common)


@cache
def alone(index, beam_size):
    return search([sentences(24)[index]], beam_size=beam_size)[0]


def assert_same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert abs(one.score - other.score) < SAME_SCORE
        if one.tokens != other.tokens:
            assert abs(one.score - other.score) < TIE, "other words, and no tie"


indices = st.lists(st.integers(0, 23), min_size=1, max_size=24)


@settings(deadline=None, max_examples=40)
@given(indices, st.integers(0, 7), st.sampled_from([0, 1, 2, 5]))
def test_an_answer_does_not_depend_on_its_batch(chosen, padding, beam_size):
    found = search([sentences(24)[index] for index in chosen], beam_size=beam_size, padding=padding)
    for index, answers in zip(chosen, found, strict=True):
        assert_same(answers, alone(index, beam_size))


@settings(deadline=None, max_examples=20)
@given(indices)
def test_a_beam_of_one_is_greedy(chosen):
    sources = [sentences(24)[index] for index in chosen]
    greedily = search(sources, beam_size=0)
    for found, expected in zip(search(sources, beam_size=1), greedily, strict=True):
        assert_same(found, expected)


@settings(deadline=None, max_examples=20)
@given(indices, st.integers(2, 7))
def test_scores_are_those_of_the_model_read_again(chosen, beam_size):
    sources = [sentences(24)[index] for index in chosen]
    for source, answers in zip(sources, search(sources, beam_size=beam_size), strict=True):
        for one in answers:
            said = (*one.tokens, EOS) if one.is_finished else one.tokens
            state, total = start([source], 0), 0.0
            for last, token in zip((BOS, *said), said, strict=False):
                log_probs, state = step(torch.tensor([last]), state)
                total += log_probs[0, token].item()
            assert abs(total - one.log_prob) < SAME_SCORE
            assert not {PAD, UNK, BOS, EOS} & set(one.tokens)
            assert len(said) <= 2 * len(source) + 3
