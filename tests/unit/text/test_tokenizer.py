import pytest

from regard.errors import RunError, SettingError
from regard.text import (
    Tokenizer,
    TokenizerConfig,
    load_pair_tokenizer,
    load_tokenizer,
    train_pair_tokenizer,
    train_tokenizer,
)

LINES = ["the lower the newer", "我爱中国，真的！", "newest and lowest"] * 3
TYPES = ["bpe", "unigram", "words", "characters"]


@pytest.fixture(params=TYPES)
def tokenizer(request):
    return train_tokenizer(LINES, TokenizerConfig(type=request.param))


def test_every_type_keeps_the_protocol(tokenizer):
    assert isinstance(tokenizer, Tokenizer)
    assert (tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id, tokenizer.eos_id) == (0, 1, 2, 3)
    assert all(4 <= i < tokenizer.vocab_size for line in LINES for i in tokenizer.encode(line))
    names = tokenizer.names
    assert names[:4] == ["<pad>", "<unk>", "<s>", "</s>"]
    assert len(set(names)) == tokenizer.vocab_size
    ids = tokenizer.encode("the lower")
    assert "".join(names[i] for i in ids).replace("\u2581", " ").strip() == "the lower"


def test_saved_and_loaded_it_does_the_same(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "new" / "folder")
    loaded = load_tokenizer(tmp_path / "new" / "folder")
    for text in [*LINES, "unseen 🙂 中"]:
        assert loaded.encode(text) == tokenizer.encode(text)
        assert loaded.pieces(text) == tokenizer.pieces(text)
    assert loaded.vocab_size == tokenizer.vocab_size
    assert {path.suffix for path in (tmp_path / "new/folder").iterdir()} <= {".json", ".model"}


def test_a_missing_file_is_named(tokenizer, tmp_path):
    with pytest.raises(RunError, match=r"tokenizer\.json must exist"):
        load_tokenizer(tmp_path)
    tokenizer.save(tmp_path)
    for path in tmp_path.glob("*.model"):
        path.unlink()
        with pytest.raises(RunError, match=r"tokenizer\.model must exist"):
            load_tokenizer(tmp_path)


@pytest.mark.parametrize("type_", ["bpe", "unigram"])
def test_one_changed_byte_of_the_model_is_found(type_, tmp_path):
    noise = {"dropout": 0.5} if type_ == "bpe" else {"alpha": 0.5}
    train_tokenizer(LINES, TokenizerConfig(type=type_, **noise)).save(tmp_path)
    assert load_tokenizer(tmp_path).is_sampling
    model = bytearray((tmp_path / "tokenizer.model").read_bytes())
    model[len(model) // 2] ^= 1
    (tmp_path / "tokenizer.model").write_bytes(bytes(model))
    with pytest.raises(RunError, match=r"tokenizer\.model must be as it was written.*damaged"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "must hold JSON"),
        ("[]", "must hold a table"),
        ('{"format": 2, "type": "words"}', "must have format 1; got 2. A newer version"),
        ('{"format": 1}', "does not describe a tokenizer"),
        ('{"format": 1, "type": "words"}', "must hold pieces; it does not. It is damaged"),
        ('{"format": 1, "type": "wurds"}', "does not describe a tokenizer"),
        ('{"format": 1, "type": "words", "pieces": 3}', "must be a list; got 3"),
    ],
)
def test_a_damaged_table_is_named(text, message, tmp_path):
    (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(RunError, match=r"tokenizer\.json " + message.replace(".", r"\.")):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vocab_size": 4}, "vocab_size must be at least 5; got 4"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1; got 1.0"),
        ({"alpha": -1.0}, "alpha must be at least 0"),
        ({"min_count": 0}, "min_count must be at least 1; got 0"),
        ({"character_coverage": 0.0}, "character_coverage must be above 0"),
        ({"type": "words", "dropout": 0.1}, "dropout must be left out unless type is bpe; got"),
        ({"type": "bpe", "alpha": 0.1}, "alpha must be left out unless type is unigram; got"),
        ({"type": "bpe", "min_count": 2}, "min_count must be left out unless type is characters"),
        ({"type": "words", "character_coverage": 0.9}, "character_coverage must be left out"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, message):
    with pytest.raises(SettingError, match=message):
        TokenizerConfig(**settings)


SOURCES = ["我爱中国。", "你好！"]
TARGETS = ["I love China.", "Hello!"]


def test_shared_is_one_object_before_and_after_saving(tmp_path):
    pair = train_pair_tokenizer(SOURCES, TARGETS, TokenizerConfig(dropout=0.1))
    assert pair.is_sampling
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


def test_a_missing_side_is_named(tmp_path):
    with pytest.raises(RunError, match=r"pair\.json must exist"):
        load_pair_tokenizer(tmp_path)
    train_pair_tokenizer(SOURCES, TARGETS, TokenizerConfig(shared=False)).save(tmp_path)
    (tmp_path / "target" / "tokenizer.json").unlink()
    with pytest.raises(RunError, match=r"target.tokenizer\.json must exist"):
        load_pair_tokenizer(tmp_path)
