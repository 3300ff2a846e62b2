import numpy as np

from regard.text import (
    BadLines,
    Pair,
    Sequences,
    TokenizerConfig,
    encode_corpus,
    resample,
    train_pair_tokenizer,
)

TEXTS = [("我爱中国", "I love China"), ("你好", "Hello there my dear friend"), ("爱", "love")]
PAIRS = [Pair(s, t, (t,), f"a.tsv:{n}") for n, (s, t) in enumerate(TEXTS, start=1)]


def tokenizer(**settings):
    return train_pair_tokenizer(*zip(*TEXTS, strict=True), TokenizerConfig(**settings))


def test_sentences_keep_their_order_and_ids():
    pair = tokenizer(type="words")
    corpus = encode_corpus(PAIRS, pair)
    assert len(corpus) == 3
    assert resample(corpus, pair, seed=3, epoch=1) is corpus
    assert corpus.source.ids.dtype == np.int32
    for i, (source, target) in enumerate(TEXTS):
        assert pair.source.decode(corpus.source[i].tolist()) == source
        assert pair.target.decode(corpus.target[i].tolist()) == target
    assert corpus.target.lengths.tolist() == [3, 5, 1]


def test_long_pairs_are_left_out_and_counted():
    too_long = BadLines()
    corpus = encode_corpus(PAIRS, tokenizer(type="words"), max_length=3, too_long=too_long)
    assert len(corpus) == 1
    assert too_long.counts == {"source too long": 1, "target too long": 1}
    (message,) = too_long.examples["target too long"]
    assert message.startswith("a.tsv:2: the target must be at most 3 tokens long; got 5.")
    assert len(encode_corpus(PAIRS, tokenizer(type="words"), max_length=5)) == 3


def test_resampling_depends_on_seed_and_epoch_only():
    pair = tokenizer(dropout=0.5)
    corpus = encode_corpus(PAIRS * 20, pair)
    first, again, other = (resample(corpus, pair, seed=3, epoch=e) for e in (0, 0, 1))
    assert first.target.ids.tolist() == again.target.ids.tolist()
    assert first.target.ids.tolist() != other.target.ids.tolist()
    assert first.target.ids.tolist() != corpus.target.ids.tolist()
    for i in range(len(corpus)):
        assert pair.target.decode(first.target[i].tolist()) == TEXTS[i % 3][1]


def test_sequences_hold_empty_sentences():
    sentences = Sequences.of([[], [1], []])
    assert [sentence.tolist() for sentence in sentences] == [[], [1], []]
    assert len(Sequences.of([])) == 0
