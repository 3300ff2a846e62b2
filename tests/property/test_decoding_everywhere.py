"""Every search over every sequence model: what a cache gives is what the whole text gives."""

import pytest
import torch
from tests.property.test_models import BOS, TRANSLATORS, VOCAB, model

from regard.decoding import NoRepeatedNgrams, Prefix, RepetitionPenalty, beam, greedy, sample

PAD, EOS, LONGEST = 0, 3, 5
KINDS = ["transformer", "conv_seq2seq", "rnn_seq2seq gru", "rnn_seq2seq luong general", "decoder"]
KINDS += ["decoder rotary", "recurrent gru"]
RULES = [RepetitionPenalty(1.3), NoRepeatedNgrams(2)]
SAME, TIE = 1e-3, 1e-5
every_kind = pytest.mark.parametrize("kind", KINDS)
every_batch = pytest.mark.parametrize("seed", [1, 2])


def batch(seed):
    """Sources or prompts of different lengths."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 7, (3,), generator=generator)
    return torch.randint(4, VOCAB, (3, int(lengths.max())), generator=generator), lengths


def start(kind, ids, lengths):
    with torch.no_grad():
        return model(kind).start(ids, lengths)


def everything(kind, ids, tokens):
    """Log-probabilities of all tokens after each beginning of an answer, without any cache."""
    instance = model(kind)
    with torch.no_grad():
        if kind in TRANSLATORS:
            target = torch.tensor([[BOS, *tokens]])
            states, _ = instance(ids[None], torch.tensor([len(ids)]), target)
        else:
            text = torch.cat([ids, torch.tensor(tokens, dtype=torch.long)])
            states = instance(text[None])[:, len(ids) - 1 :]
        return instance.project(states).float().log_softmax(-1)[0]


def found_by(kind, ids, lengths, **changed):
    step, count = model(kind).step, len(ids)
    common = {"batch_size": count, "bos_id": BOS, "eos_id": EOS, "max_lengths": LONGEST}
    common |= {"forbidden": [PAD, 1, BOS]} | changed

    def state():
        return start(kind, ids, lengths)

    yield [[one] for one in greedy(step, state(), **common)]
    yield sample(step, state(), num_samples=2, temperature=1.5, top_p=0.95, **common)
    yield beam(step, state(), beam_size=3, n_best=2, **common)
    yield beam(step, state(), beam_size=4, n_best=4, **common)


@every_kind
@every_batch
def test_the_log_probability_of_any_search_is_that_of_the_whole_text(kind, seed):
    ids, lengths = batch(seed)
    for answers in found_by(kind, ids, lengths):
        for row, length, hypotheses in zip(ids, lengths.tolist(), answers, strict=True):
            for hypothesis in hypotheses:
                tokens = [*hypothesis.tokens, *[EOS] * hypothesis.is_finished]
                log_probs = everything(kind, row[:length], tokens[:-1])
                log_probs = log_probs[range(len(tokens)), tokens]
                assert abs(float(log_probs.sum()) - hypothesis.log_prob) < SAME


@every_kind
def test_answers_to_a_batch_are_those_to_each_alone(kind):
    ids, lengths = batch(5)
    batched = list(found_by(kind, ids, lengths, rules=RULES))
    for row, length in enumerate(lengths.tolist()):
        single = found_by(kind, ids[row : row + 1, :length], lengths[row : row + 1], rules=RULES)
        for batch_outputs, (hypotheses,) in zip(batched, single, strict=True):
            for hypothesis, reference in zip(batch_outputs[row], hypotheses, strict=True):
                assert abs(hypothesis.score - reference.score) < SAME
                if hypothesis.tokens != reference.tokens:
                    assert abs(hypothesis.score - reference.score) < TIE, "other words, and no tie"


@every_kind
def test_a_forced_prefix_continues_as_a_search_from_there(kind):
    ids = torch.randint(4, VOCAB, (3, 5), generator=torch.Generator().manual_seed(8))
    lengths = torch.tensor([5, 3, 1])
    prefixes = [[11, 4], [], [9]]
    common = {"batch_size": 3, "bos_id": BOS, "eos_id": EOS, "max_lengths": LONGEST}
    forced = greedy(model(kind).step, start(kind, ids, lengths), rules=[Prefix(prefixes)], **common)
    for row, (prefix, hypothesis) in enumerate(zip(prefixes, forced, strict=True)):
        assert list(hypothesis.tokens[: len(prefix)]) == prefix
        tokens = [*hypothesis.tokens, *[EOS] * hypothesis.is_finished]
        for position in range(len(prefix), len(tokens)):
            log_probs = everything(kind, ids[row, : lengths[row]], tokens[:position])[-1]
            assert float(log_probs.max() - log_probs[tokens[position]]) < TIE
