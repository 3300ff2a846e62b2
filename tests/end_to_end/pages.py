"""The code that stands on pages."""

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


def blocks(page, language):
    text = page.read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def commands(page):
    """Every command line that calls regard, without its comment."""
    lines = [line for block in blocks(page, "bash") for line in block.split("\n")]
    named = [line.partition("  #")[0].strip() for line in lines]
    return [line for line in named if "regard " in line and not line.startswith("python")]


def save_photos(folder):
    """A folder of small pictures for each of two labels."""
    images = pytest.importorskip("PIL.Image")
    for label, shade in (("cat", 60), ("dog", 180)):
        (folder / label).mkdir(parents=True)
        for number in range(1, 21):
            pixels = np.random.default_rng(number).integers(shade, shade + 60, (8, 8, 3), np.uint8)
            images.fromarray(pixels).save(folder / label / f"{number}.png")


def save_gpt2(folder, words):
    """A small GPT-2 that has learned nothing, and its tokenizer of these words."""
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    vocab = {word: i for i, word in enumerate(["<unk>", *dict.fromkeys(words.split())])}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocab, unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    sizes = {"n_embd": 8, "n_layer": 2, "n_head": 2, "n_positions": 20}
    config = transformers.GPT2Config(vocab_size=len(vocab), **sizes)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>")
    tokenizer.save_pretrained(folder)
