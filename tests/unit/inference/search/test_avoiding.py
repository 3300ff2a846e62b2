"""Words that may not be written, in whatever tokens."""

import random
from functools import cache

import pytest
import torch

from regard.decoding import Written
from regard.inference.search.searcher import AvoidWords
from regard.text import TokenizerConfig, train_tokenizer

LINES = ["the art of a party, an article on arts; state of the art"] * 3 + ["我爱中国人 中国 国人"]
KINDS = {"bpe": 330, "unigram": 288, "words": None, "characters": None}


@pytest.fixture(scope="module", params=sorted(KINDS))
def tokenizer(request):
    return train_tokenizer(
        LINES, TokenizerConfig(type=request.param, vocab_size=KINDS[request.param])
    )


@cache
def said_by_each(tokenizer):
    return [tokenizer.decode([i]) for i in range(tokenizer.vocab_size)]


def write(tokenizer, rule, seed):
    """A random text that keeps to the rule."""
    rng, tokens = random.Random(seed), list[int]()
    texts = said_by_each(tokenizer)
    for _ in range(40):
        log_probs = torch.zeros(1, tokenizer.vocab_size)
        allowed = rule(
            log_probs, Written(torch.tensor([tokens], dtype=torch.long), torch.tensor([0]))
        )
        choices = [i for i in (allowed[0] == 0).nonzero()[:, 0].tolist() if texts[i]]
        tokens.append(rng.choice(choices))
    return tokenizer.decode(tokens)


def test_no_random_text_holds_the_word(tokenizer):
    words = ["art", "中国", "the art"]
    rule = AvoidWords(tokenizer, words)
    nothing = AvoidWords(tokenizer, ["zebra"])
    free = [write(tokenizer, nothing, seed) for seed in range(25)]
    constrained = [write(tokenizer, rule, seed) for seed in range(25)]
    assert any(rule.first_in(text) for text in free)
    assert not any(rule.first_in(text) for text in constrained)
    assert not any("中国" in text or " art " in text or " art," in text for text in constrained)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("state of the art", "art"),
        ("art.", "art"),
        ("(art)", "art"),
        ("a party", None),
        ("an article", None),
        ("我爱中国人", "中国"),
        ("中 国", None),
        ("Art", None),
    ],
)
def test_a_word_stands_by_itself_where_words_do(text, match):
    tokenizer = train_tokenizer(LINES, TokenizerConfig(type="words"))
    assert AvoidWords(tokenizer, ["art", "中国"]).first_in(text) == match
