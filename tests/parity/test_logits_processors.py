"""Rules and ways to draw, against the logits processors of transformers."""

import pytest
import torch
from transformers import generation as hf

from regard.decoding import NoRepeatedNgrams, RepetitionPenalty, Written
from regard.decoding.sampling import most_likely, nucleus

pytestmark = [pytest.mark.parity, pytest.mark.slow]

R, T, V = 31, 17, 13


@pytest.fixture
def log_probs():
    return torch.randn(R, V, generator=torch.Generator().manual_seed(1)).mul(2).log_softmax(1)


@pytest.fixture
def tokens():
    return torch.randint(0, V, (R, T), generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize(
    ("rule", "theirs"),
    [
        (RepetitionPenalty(1.7), lambda: hf.RepetitionPenaltyLogitsProcessor(1.7)),
        (NoRepeatedNgrams(1), lambda: hf.NoRepeatNGramLogitsProcessor(1)),
        (NoRepeatedNgrams(2), lambda: hf.NoRepeatNGramLogitsProcessor(2)),
        (NoRepeatedNgrams(3), lambda: hf.NoRepeatNGramLogitsProcessor(3)),
    ],
    ids=["repetition", "unigrams", "bigrams", "trigrams"],
)
def test_rules_are_their_processors(rule, theirs, log_probs, tokens):
    for length in (1, 2, T):
        prefix = tokens[:, :length]
        ours = rule(log_probs, Written(prefix, torch.zeros(R, dtype=torch.long)))
        torch.testing.assert_close(ours, theirs()(prefix, log_probs.clone()))


@pytest.mark.parametrize("count", [1, 4, V])
def test_the_likeliest_tokens_are_those_of_top_k(count, log_probs, tokens):
    theirs = hf.TopKLogitsWarper(count)(tokens, log_probs)
    assert torch.equal(most_likely(log_probs, count), theirs)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8, 0.97])
@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_a_nucleus_is_that_of_top_p_after_the_temperature(share, temperature, log_probs, tokens):
    warm = hf.TemperatureLogitsWarper(temperature)(tokens, log_probs)
    torch.testing.assert_close(log_probs / temperature, warm)
    assert torch.equal(nucleus(warm, share), hf.TopPLogitsWarper(share)(tokens, warm))
