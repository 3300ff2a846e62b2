"""Folders of tiny random models of transformers with tokenizers of their own."""

import re

import pytest
import torch

transformers = pytest.importorskip("transformers")

CHINESE = "我爱中国。他昨天去北京了，因为下雨。"
ENGLISH = "the cat sat on a mat and we go to school."
WORDS = re.findall(r"\w+|\.", ENGLISH)
GRID = {"image_size": [4, 6], "patch_size": 2, "intermediate_size": 7}
SIZES = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3}


def save_bert(folder, kind="BertModel", **sizes):
    """An encoder of Chinese characters and English words, with the head of a class."""
    signs = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = [*signs, *dict.fromkeys(f"{CHINESE}你"), *dict.fromkeys(WORDS)]
    tokenizer = transformers.BertTokenizer(vocab={word: i for i, word in enumerate(words)})
    sizes = SIZES | {"intermediate_size": 17, "max_position_embeddings": 5000} | sizes
    config = transformers.BertConfig(vocab_size=len(words), **sizes)
    save(getattr(transformers, kind)(config), tokenizer, folder)


def save_gpt2(folder):
    """A decoder of bytes, three to a Chinese character."""
    tokenizer = byte_tokenizer()
    sizes = {"n_embd": 12, "n_layer": 2, "n_head": 3, "n_positions": 77}
    config = transformers.GPT2Config(vocab_size=len(tokenizer), **sizes)
    save(transformers.GPT2LMHeadModel(config), tokenizer, folder)


def save_llama(folder):
    """A decoder of bytes whose heads are grouped."""
    tokenizer = byte_tokenizer()
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=17,
        eos_token_id=None,
    )
    save(transformers.LlamaForCausalLM(config), tokenizer, folder)


def save_t5(folder):
    """An encoder-decoder without a longest length."""
    tokenizer = byte_tokenizer()
    sizes = {"d_model": 12, "d_kv": 4, "d_ff": 17, "num_layers": 2, "num_heads": 3}
    config = transformers.T5Config(
        vocab_size=len(tokenizer), **sizes, num_decoder_layers=1, decoder_start_token_id=0
    )
    save(transformers.T5ForConditionalGeneration(config), tokenizer, folder)


def save_vision(folder, kind, **sizes):
    """A reader of pictures in patches, and the sizes of its pictures."""
    model = getattr(transformers, kind)
    config = model.config_class(**SIZES, **GRID, **sizes)
    height, width = GRID["image_size"]
    size = {"height": height, "width": width}
    save(model(config), transformers.ViTImageProcessor(size=size), folder)


def byte_tokenizer():
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=290,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<pad>", "</s>"],
        show_progress=False,
    )
    made.train_from_iterator([ENGLISH] * 3, trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", eos_token="</s>"
    )


def save(model, tokenizer, folder):
    torch.manual_seed(5)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
