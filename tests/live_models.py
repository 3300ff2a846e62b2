"""Small models of every option that a page can run, with random weights."""

import torch

from regard.inference import Predictor
from regard.tasks import recipe_from_table
from regard.tasks.labels.classification import Classification, LabelledText
from regard.tasks.running_text.language_modelling import LanguageModelling
from regard.tasks.running_text.running_text import Passage
from regard.tasks.sequences.translation import TranslationTask
from regard.text import Pair
from regard.text.phrasebook import phrases

ODD = ["他 said hello, 3.14 it's! 龘", "Hello world", "我  爱\u3000中国▁", "<0x41>", "é\u0301 ①²"]
TRANSFORMER = {"type": "transformer", "model_dim": 16, "num_heads": 4, "ffn_dim": 24}
TRANSFORMER |= {"num_encoder_layers": 2, "num_decoder_layers": 2}
RECURRENT = {"type": "rnn_seq2seq", "embed_dim": 12, "hidden_dim": 10, "attention_dim": 8}
WORDS = {"type": "words", "shared": False}
SUBWORDS = {"vocab_size": 1200, "may_shrink": True}
# Every option that the page knows, in as few models as hold them all.
MODELS = {
    "transformer": (TRANSFORMER, WORDS, True),
    "rotary": (
        {**TRANSFORMER, "norm": "pre", "norm_kind": "rms", "activation": "swiglu"}
        | {"positions": "rotary", "num_key_heads": 2},
        WORDS,
        True,
    ),
    "alibi": (
        {**TRANSFORMER, "positions": "alibi", "activation": "gelu", "window": 3},
        WORDS,
        True,
    ),
    "t5": (
        {**TRANSFORMER, "positions": "t5", "activation": "gelu_tanh", "score": "additive"},
        {"type": "unigram", **SUBWORDS},
        True,
    ),
    "shaw": (
        {**TRANSFORMER, "positions": "relative", "activation": "silu", "score": "dot"},
        {"type": "bpe", **SUBWORDS},
        False,
    ),
    "bart": (
        {**TRANSFORMER, "positions": "learned", "own_positions": True, "embedding_norm": True}
        | {"source_begin": True, "output_bias": True, "tie_embeddings": "none"}
        | {"scale_embeddings": False},
        {"type": "unigram", **SUBWORDS, "shared": False},
        False,
    ),
    "batch": (
        {**TRANSFORMER, "norm": "pre", "norm_kind": "batch", "positions": "none"}
        | {"values": "embeddings"},
        {"type": "characters"},
        True,
    ),
    "bahdanau": (RECURRENT, WORDS, True),
    "luong": (
        {**RECURRENT, "cell": "lstm", "decoder": "luong", "attention": "general", "num_layers": 2},
        WORDS,
        True,
    ),
    "predictive": (
        {**RECURRENT, "cell": "rnn", "attention": "dot", "local": "predictive", "reach": 2},
        WORDS,
        False,
    ),
    "location": (
        {**RECURRENT, "cell": "lstm", "attention": "location", "beginning": "both"},
        WORDS,
        True,
    ),
    "hard": (
        {**RECURRENT, "hard": True, "tie_embeddings": False, "output_bias": False},
        WORDS,
        True,
    ),
    "coverage": ({**RECURRENT, "coverage": True, "attention": "general"}, WORDS, True),
    "monotonic": (
        {**RECURRENT, "local": "monotonic", "reach": 1, "values": "embeddings"},
        WORDS,
        True,
    ),
    "fixed": ({**RECURRENT, "attention": "none"}, WORDS, True),
}
DECODER = {"type": "decoder", "model_dim": 16, "num_heads": 4, "num_layers": 2, "ffn_dim": 24}
READERS = {
    "transformer": {"type": "transformer", "model_dim": 16, "num_heads": 4, "num_layers": 2}
    | {"ffn_dim": 24},
    "recurrent": {"type": "recurrent", "embed_dim": 12, "hidden_dim": 10},
    "bag": {"type": "bag", "embed_dim": 12},
}


def untrained(name):
    """A model whose weights are so large that one says something else of every sentence."""
    model, tokenizer, source_end = MODELS[name]
    pairs = [Pair(p.source, p.target, (p.target,), "test") for p in phrases("valid")[:300]]
    table = {"model": {"dropout": 0.0, **model}, "tokenizer": tokenizer}
    table |= {"data": {"source_end": source_end}, "decoding": {"beam_size": 3, "max_ratio": 1.0}}
    task = TranslationTask.learn(recipe_from_table(table), pairs)
    torch.manual_seed(1)
    built = task.build_model().eval()
    with torch.no_grad():
        for parameter in built.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.3 * torch.randn_like(parameter))
            else:
                parameter.mul_(1.5)
        for buffer_name, buffer in built.named_buffers():
            if buffer_name.endswith("variance"):
                buffer.mul_(1.3)
    return Predictor(built, task)


def shaken(task, spread):
    """A model whose weights have noise added, so that it says something else of every text."""
    torch.manual_seed(1)
    built = task.build_model().eval()
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.add_(spread * torch.randn_like(parameter))
    return built


# Settings of the model, and of the tokenizer.
LANGUAGE_MODELS = {
    "learned": ({"positions": "learned"}, {"type": "characters"}),
    "rotary": ({"positions": "rotary", "norm_kind": "rms", "num_key_heads": 1}, {"type": "bpe"}),
    "alibi": ({"positions": "alibi", "window": 4, "tie_embeddings": False}, {"type": "words"}),
}


def language_model(name):
    """A language model of some sentences, and these."""
    model, tokenizer = LANGUAGE_MODELS[name]
    lines = [phrase.target for phrase in phrases("valid")[:200]]
    table = {"task": "language_modelling", "data": {"context": 64}, "model": {**DECODER, **model}}
    table["tokenizer"] = {**tokenizer, "vocab_size": 600, "may_shrink": True}
    task = LanguageModelling.learn(recipe_from_table(table), [Passage(tuple(lines), "test")])
    return Predictor(shaken(task, 0.2), task), lines


# The reader, its settings, and those of the head.
CLASSIFIERS = {
    "mean": ("transformer", {}, {"pooling": "mean"}),
    "structured": (
        "transformer",
        {"norm": "pre", "positions": "rotary"},
        {"pooling": "structured"},
    ),
    "first": ("transformer", {"positions": "sinusoidal"}, {"pooling": "first", "pooler": True}),
    "query": ("recurrent", {"cell": "gru"}, {"pooling": "query"}),
    "tanh_query": ("recurrent", {"cell": "lstm", "num_layers": 2}, {"pooling": "tanh_query"}),
    "state": ("bag", {}, {"pooling": "state"}),
    "maximum": ("bag", {}, {"pooling": "maximum"}),
}


def classifier(name):
    """A classifier of sentences by their length, and the sentences."""
    reader, options, head = CLASSIFIERS[name]
    known = [
        LabelledText(phrase.target, f"length {len(phrase.target) // 20}", None, "test")
        for phrase in phrases("valid")[:200]
    ]
    table = {"task": "classification", "model": {**READERS[reader], **options}, "head": head}
    table["tokenizer"] = {"type": "words", "begin": head["pooling"] == "first"}
    task = Classification.learn(recipe_from_table(table), known)
    return Predictor(shaken(task, 0.5), task), [each.text for each in known]
