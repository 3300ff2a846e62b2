"""Public functions take what people give, such as paths as texts, and refuse other objects."""

from pathlib import Path

import pytest
import torch

from regard import text
from regard.errors import RegardError
from regard.text import TokenizerConfig, train_pair_tokenizer, train_tokenizer

WORDS = TokenizerConfig(type="words")
TOKENIZER = train_tokenizer(["a b", "c d"], WORDS)
PAIRED = train_pair_tokenizer(["a b"], ["c d"], WORDS)
IDS = torch.ones(1, 3).long()
MASKING = {"mask_id": 3, "vocab_size": 9, "generator": torch.Generator()}

pytestmark = pytest.mark.usefixtures("unchecked_shapes")


def test_a_path_may_be_a_text(tmp_path):
    file = tmp_path / "pairs.tsv"
    file.write_text("a\tb\n", "utf-8")
    assert list(text.read_lines(str(file))) == list(text.read_lines(file))
    assert list(text.read_pairs(str(file))) == list(text.read_pairs(file))
    with text.open_text(str(file)) as lines:
        assert list(lines) == [b"a\tb\n"]
    TOKENIZER.save(str(tmp_path / "one"))
    assert text.load_tokenizer(str(tmp_path / "one")).names == TOKENIZER.names
    PAIRED.save(str(tmp_path / "two"))
    assert text.load_pair_tokenizer(str(tmp_path / "two")).source.names == PAIRED.source.names


def pairs(source="a.tsv", **options):
    return list(text.read_pairs(source, **options))


def shuffled(n=3, seed=0, epoch=0):
    return text.permutation(n, seed=seed, epoch=epoch)


def masked(ids=IDS, **options):
    return text.mask_words(ids, IDS, **MASKING | options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: text.read_lines(None), "path must be a path; got None"),
        (lambda: pairs(3), "source must be a path; got 3"),
        (lambda: pairs(layout={"columns": (1, 2)}), "layout must be a PairLayout; got {'columns'"),
        (lambda: pairs(bad_lines=[]), r"bad_lines must be a BadLines; got \[\]"),
        (lambda: text.load_tokenizer(None), "folder must be a path; got None"),
        (lambda: text.load_pair_tokenizer(7), "folder must be a path; got 7"),
        (lambda: train_tokenizer(["a"], {"type": "words"}), "settings must be a TokenizerConfig"),
        (lambda: train_tokenizer("a b", WORDS), "lines must be a list of texts; got 'a b'"),
        (lambda: train_tokenizer(["a", 2], WORDS), "lines must be texts; got 2 as number 2"),
        (lambda: train_pair_tokenizer(["a"], None, WORDS), "targets must be a list of texts"),
        (lambda: text.encode_corpus([("a", "b")], PAIRED), "each of pairs must be a Pair; got"),
        (lambda: text.encode_corpus([], TOKENIZER), "tokenizer must be a PairTokenizer; got"),
        (lambda: text.resample(None, PAIRED, seed=0, epoch=0), "corpus must be a Corpus; got None"),
        (lambda: text.normalize(b"a"), "text must be a text; got b'a'"),
        (lambda: TOKENIZER.encode(3), "text must be a text; got 3"),
        (lambda: TOKENIZER.decode([-1]), "ids must be from 0 to 12; got -1"),
        (lambda: TOKENIZER.decode([5, 13]), "ids must be from 0 to 12; got 13"),
        (lambda: TOKENIZER.decode("ab"), "ids must be a list of whole numbers; got 'ab'"),
        (lambda: text.pad_pairs([[4]], []), "sources and targets must be as many; got 1 and 0"),
        (lambda: list(text.batched([1], 0)), "max_tokens must be at least 1; got 0"),
        (lambda: shuffled(-1), "n must be at least 0; got -1"),
        (lambda: shuffled(epoch="1"), "epoch must be a whole number; got '1'"),
        (lambda: masked([[1]]), r"ids must be a Tensor; got \[\[1\]\]"),
        (lambda: masked(generator=3), "generator must be a Generator; got 3"),
    ],
)
def test_another_object_is_refused_in_a_sentence(call, message):
    with pytest.raises(RegardError, match=message):
        call()


def test_a_missing_file_is_named_when_its_first_line_is_asked_for(tmp_path):
    lines = text.read_lines(Path(tmp_path / "none.txt"))
    with pytest.raises(RegardError, match=r"none\.txt must exist"):
        next(lines)
