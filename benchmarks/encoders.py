"""Pretrained encoders that benchmarks read with: folders in Hugging Face's layout.

They are looked for in ``REGARD_PRETRAINED``, or in ``pretrained`` beside the corpora; none is
committed. A tiny run has random ones of its own.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks import measuring

LICENCES = {"minilm-en": "Apache-2.0", "roberta-zh": "research"}
_SIGNS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,;:!?'\"()-"


def encoder(name: str, among: Path | None = None) -> Path:
    """The folder of an encoder, in the usual one or ``among``; ends the script without one."""
    if measuring.TINY is not None:
        return _random_encoder(measuring.TINY / "encoders" / name)
    beside = measuring.corpora().parent / "pretrained"
    folder = (among or Path(os.environ.get("REGARD_PRETRAINED", beside))) / name
    if not (folder / "model.safetensors").is_file():
        sys.exit(f"{folder} must hold a pretrained encoder. Say where: REGARD_PRETRAINED=FOLDER")
    return folder


def pieces_of(tokenizer: Any, words: Sequence[str]) -> tuple[Tensor, list[str], list[int | None]]:
    """Words as a text is read: ids (1, N), the pieces, and the word of each; None for marks."""
    inputs = tokenizer(list(words), is_split_into_words=True, return_tensors="pt")
    ids = inputs["input_ids"]
    return ids, tokenizer.convert_ids_to_tokens(ids[0].tolist()), inputs.word_ids(0)


def _random_encoder(folder: Path) -> Path:
    if not folder.is_dir():
        from transformers import BertConfig, BertModel, BertTokenizer

        chinese = {*(measuring.corpora() / "word-alignments" / "zhen.tsv").read_text("utf-8")}
        letters = [*_LETTERS, *(f"##{letter}" for letter in _LETTERS)]
        vocabulary = dict.fromkeys([*_SIGNS, *letters, *sorted(chinese)])
        torch.manual_seed(1)
        sizes = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3}
        config = BertConfig(vocab_size=len(vocabulary), intermediate_size=16, **sizes)
        BertModel(config).save_pretrained(folder)
        tokenizer = BertTokenizer(vocab={word: number for number, word in enumerate(vocabulary)})
        tokenizer.save_pretrained(folder)
    return folder
