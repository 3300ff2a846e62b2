import pytest

from regard.errors import RunError
from regard.text import TokenizerConfig, load_pair_tokenizer, train_pair_tokenizer

SOURCES = ["我爱中国。", "你好！"]
TARGETS = ["I love China.", "Hello!"]


def test_shared_is_one_object_before_and_after_saving(tmp_path):
    pair = train_pair_tokenizer(SOURCES, TARGETS, TokenizerConfig(type="words"))
    pair.save(tmp_path)
    loaded = load_pair_tokenizer(tmp_path)
    assert pair.is_shared
    assert loaded.is_shared
    assert loaded.source.encode("I love 中国。") == pair.target.encode("I love 中国。")


def test_separate_sides_know_their_own_language_only(tmp_path):
    pair = train_pair_tokenizer(SOURCES, TARGETS, TokenizerConfig(type="words", shared=False))
    pair.save(tmp_path)
    loaded = load_pair_tokenizer(tmp_path)
    assert not loaded.is_shared
    assert loaded.source.unk_id in loaded.source.encode("C")
    assert loaded.target.encode("中") == [loaded.target.unk_id]


def test_either_side_may_sample():
    assert train_pair_tokenizer(SOURCES, TARGETS, TokenizerConfig(dropout=0.1)).is_sampling
    assert not train_pair_tokenizer(SOURCES, TARGETS, TokenizerConfig()).is_sampling


def test_a_missing_side_is_named(tmp_path):
    with pytest.raises(RunError, match=r"pair\.json must exist"):
        load_pair_tokenizer(tmp_path)
    train_pair_tokenizer(SOURCES, TARGETS, TokenizerConfig(shared=False)).save(tmp_path)
    (tmp_path / "target" / "tokenizer.json").unlink()
    with pytest.raises(RunError, match=r"target.tokenizer\.json must exist"):
        load_pair_tokenizer(tmp_path)
