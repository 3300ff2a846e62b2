"""Tokenizers in folders of checkpoints: the ids of transformers, and text that comes back."""

import io
import json

import pytest
import sentencepiece
from tokenizers import BertWordPieceTokenizer, ByteLevelBPETokenizer
from transformers import AutoTokenizer

from regard.errors import DataError, SettingError
from regard.interop.checkpoints.folder import CheckpointTokenizer

pytestmark = [pytest.mark.parity, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

TEXTS = ["I love China.", "the quick brown fox jumps over the lazy dog", "我爱中国。"] * 4
ENDS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


@pytest.fixture
def folder_of(tmp_path):
    def make(family):
        (tmp_path / "config.json").write_text(json.dumps({"model_type": family}))
        if family == "bert":
            tokenizer = BertWordPieceTokenizer()
            tokenizer.train_from_iterator(
                TEXTS, vocab_size=120, min_frequency=1, show_progress=False
            )
            tokenizer.save_model(str(tmp_path))
        elif family == "marian":
            _marian(tmp_path)
        else:
            tokenizer = ByteLevelBPETokenizer()
            tokenizer.train_from_iterator(
                TEXTS, vocab_size=300, special_tokens=ENDS, show_progress=False
            )
            tokenizer.save_model(str(tmp_path))
        return tmp_path

    return make


def _marian(folder):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS), model_writer=model, vocab_size=40, minloglevel=2
    )
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    vocab = {"</s>": 0, "<unk>": 1}
    for piece_id in range(pieces.get_piece_size()):
        vocab.setdefault(pieces.id_to_piece(piece_id), len(vocab))
    vocab["<pad>"] = len(vocab)
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes(model.getvalue())
    (folder / "vocab.json").write_text(json.dumps(vocab))


# What begins a text, ends it, fills a batch up and masks a word.
SPECIAL = {
    "bert": ("[CLS]", "[SEP]", "[PAD]", "[MASK]"),
    "roberta": ("<s>", "</s>", "<pad>", "<mask>"),
    "bart": ("<s>", "</s>", "<pad>", "<mask>"),
    "gpt2": ("<|endoftext|>", "<|endoftext|>", None, None),
    "marian": (None, "</s>", "<pad>", None),
}


@pytest.mark.parametrize("family", sorted(SPECIAL))
def test_ids_are_those_of_transformers_and_texts_come_back(family, folder_of, tmp_path):
    folder = folder_of(family)
    tokenizer = CheckpointTokenizer.load(folder)
    theirs = AutoTokenizer.from_pretrained(folder)
    text = "i love the lazy fox"
    ids = tokenizer.encode(text)
    assert ids == theirs(text)["input_ids"]
    assert tokenizer.decode(ids) == text
    assert tokenizer.vocab_size == len(theirs)
    special = (tokenizer.bos_id, tokenizer.eos_id, tokenizer.pad_id, tokenizer.mask_id)
    names = tuple(None if i is None else theirs.convert_ids_to_tokens(i) for i in special)
    assert names == SPECIAL[family]
    tokenizer.save(tmp_path / "again")
    (tmp_path / "again" / "config.json").write_bytes((folder / "config.json").read_bytes())
    assert CheckpointTokenizer.load(tmp_path / "again").encode(text) == ids


def test_pairs_have_segments_and_pieces_have_offsets(folder_of):
    tokenizer = CheckpointTokenizer.load(folder_of("bert"))
    segments = tokenizer.segments("I love", "the dog")
    assert segments == sorted(segments)
    assert set(segments) == {0, 1}
    assert len(segments) == len(tokenizer.encode("I love", "the dog"))
    text = "I love 中国"
    pieces = tokenizer.pieces(text)
    assert [text[piece.start : piece.end] for piece in pieces] == ["I", "love", "中", "国"]
    assert [piece.id for piece in pieces] == tokenizer.encode(text)[1:-1]


def test_what_cannot_be_read_is_named(folder_of, tmp_path):
    with pytest.raises(DataError, match="must be a folder with a tokenizer; got none"):
        CheckpointTokenizer.load(tmp_path / "nothing")
    folder = folder_of("marian")
    with pytest.raises(SettingError, match="must give the positions of its pieces; got Marian"):
        CheckpointTokenizer.load(folder).pieces("I love")
    (folder / "tokenizer.json").write_text("{")
    (folder / "config.json").write_text(json.dumps({"model_type": "bert"}))
    with pytest.raises(DataError, match="tokenizer must be one that transformers can load"):
        CheckpointTokenizer.load(folder)
