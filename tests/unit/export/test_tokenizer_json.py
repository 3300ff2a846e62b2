"""Tokenizers of ours in transformers: the same ids of the same text."""

import json

import pytest
import tokenizers
import transformers
from tests.unit.export.random_runs import PAIRS, translator

from regard.export import export_run
from regard.export.tokenizer_json import tokenizer_config, tokenizer_json
from regard.text.tokenizers.checkpoint_pieces import borrow_pieces

pytestmark = pytest.mark.slow

ODD = [
    "",
    " ",
    " I\u00a0love\t\u3000it ",
    "a ▁ b▁",
    "<s> it </s>",
    "1</s>2<0x1Axs>",
    "<0x0A>",
    "<pad><unk><0x0",
    "🙂 人",
    "naïve",
]
UNCOVERED = {"may_shrink": True, "character_coverage": 0.98, "vocab_size": 320}


@pytest.mark.parity
def test_each_side_has_its_tokenizer_where_they_are_two(tmp_path):
    predictor = translator(tmp_path / "run", tokenizer={"shared": False})
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    load = transformers.AutoTokenizer.from_pretrained
    source, target = load(tmp_path / "out"), load(tmp_path / "out", subfolder="target")
    ours = predictor.tokenizer
    for one, other in PAIRS:
        assert source(one)["input_ids"] == [*ours.source.encode(one), 3]
        assert target(other)["input_ids"] == [*ours.target.encode(other), 3]


@pytest.mark.parity
@pytest.mark.parametrize(
    ("tokenizer", "ends"),
    [
        ({"type": "characters"}, False),
        ({"type": "bpe", "may_shrink": True, "vocab_size": 400}, True),
        ({"type": "bpe", **UNCOVERED}, True),
        ({"type": "unigram", "may_shrink": True, "vocab_size": 360}, True),
        ({"type": "unigram", **UNCOVERED}, False),
    ],
)
def test_its_tokenizer_gives_the_same_ids_and_texts(tmp_path, tokenizer, ends):
    predictor = translator(tmp_path / "run", tokenizer=tokenizer, data={"source_end": ends})
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    theirs.save_pretrained(tmp_path / "again")
    reloaded = transformers.AutoTokenizer.from_pretrained(tmp_path / "again")
    ours = predictor.tokenizer.source
    assert len(theirs) == ours.vocab_size
    for text in [*(text for pair in PAIRS for text in pair), *ODD]:
        ids = ours.encode(text)
        expected = [*ids, 3] if ends else ids
        assert theirs(text)["input_ids"] == reloaded(text)["input_ids"] == expected
        if 1 not in ids:
            assert theirs.decode(expected, skip_special_tokens=True) == ours.decode(ids)


@pytest.mark.parity
@pytest.mark.parametrize("kind", ["bert", "roberta", "gpt2"])
def test_a_tokenizer_from_a_checkpoint_keeps_our_ids(tmp_path, kind):
    lines = [text for pair in PAIRS for text in pair]
    if kind == "bert":
        learner = tokenizers.BertWordPieceTokenizer()
        learner.train_from_iterator(lines, vocab_size=200, show_progress=False)
        names = {"cls_token": "[CLS]", "sep_token": "[SEP]"}
    else:
        signs = ["<|endoftext|>"] if kind == "gpt2" else ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
        learner = tokenizers.ByteLevelBPETokenizer()
        learner.train_from_iterator(lines, 300, special_tokens=signs, show_progress=False)
        names = {"eos_token": signs[0]} if kind == "gpt2" else {}
    learner.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(names))
    ours = borrow_pieces(tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    text = tokenizer_json(ours, before=(2,), after=(3,))
    (out / "tokenizer.json").write_text(text)
    (out / "tokenizer_config.json").write_text(tokenizer_config(begin=2, longest=50))
    theirs = transformers.AutoTokenizer.from_pretrained(out)
    assert theirs.pad_token_id == 0
    for line in [*lines, *ODD, "[MASK] <mask> <|endoftext|> [SEP]"]:
        ids = ours.encode(line)
        assert theirs(line)["input_ids"] == [2, *ids, 3]
        assert theirs.decode(ids, skip_special_tokens=True) == ours.decode(ids)
