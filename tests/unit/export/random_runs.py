"""Runs of random weights, and how transformers opens what is exported of them."""

import torch

from regard.inference import Predictor
from regard.runs import Run
from regard.tasks import recipe_from_table
from regard.tasks.labels.classification import LabelledText
from regard.tasks.registry import TASKS
from regard.tasks.running_text.language_modelling import Passage
from regard.text import Pair
from regard.text.reading.tagged import TaggedWords

PAIRS = [
    ("我爱中国。", "I love China."),
    ("他爱你吗？", "Does he love you?"),
    ("我们都在这里学习。", "We are all here to learn, aren't we?"),
    ("明天会下雨。", "It will rain tomorrow; so it seems."),
    ("这本书很有意思。", "This book is very interesting."),
    ("3个人在那里。", "3 people are over there."),
]
SMALL = {
    "type": "transformer",
    "model_dim": 20,
    "num_heads": 2,
    "ffn_dim": 12,
    "num_encoder_layers": 2,
    "num_decoder_layers": 3,
    "max_length": 40,
}
DECODER = {
    "type": "decoder",
    "model_dim": 24,
    "num_heads": 4,
    "num_layers": 2,
    "ffn_dim": 10,
    "max_length": 30,
}
ENCODER = {
    "type": "transformer",
    "model_dim": 24,
    "num_heads": 4,
    "num_layers": 2,
    "ffn_dim": 10,
    "max_length": 60,
}
LLAMA = {"positions": "rotary", "norm_kind": "rms", "activation": "swiglu"}
PRE = {"norm": "pre"}
LEARNED = {"positions": "learned"}


def write_run(path, table, examples):
    recipe = recipe_from_table(table)
    task = TASKS[recipe.task].task.learn(recipe, examples)
    torch.manual_seed(0)
    model = task.build_model().eval()
    for parameter in model.parameters():  # norms and biases too, else mistakes cannot be seen
        parameter.data += 0.2 * torch.randn_like(parameter)
    if path is None:
        return Predictor(model, task)
    with Run.create(path, recipe.table(), recipe.task) as run:
        with run.new_tokenizer_folder() as folder:
            task.save(folder)
        run.finish(model.state_dict(), {"updates": 24})
    predictor = Predictor.load(path)
    predictor.model.eval()
    return predictor


def translator(path, *, tokenizer=None, data=None, decoding=None, **model):
    table = {
        "task": "translation",
        "data": {
            "source_language": "zh",
            "target_language": "en",
            "train": "pairs.tsv",
            "max_length": 30,
            **(data or {}),
        },
        "tokenizer": {"type": "characters", **(tokenizer or {})},
        "model": {**SMALL, **model} if model.get("type") is None else model,
        "decoding": {"max_ratio": 0.5, **(decoding or {})},
    }
    pairs = [Pair(source, target, (target,), "pairs.tsv:1") for source, target in PAIRS]
    return write_run(path, table, pairs)


def language_model(path, *, decoding=None, **model):
    table = {
        "task": "language_modelling",
        "data": {"train": "text.txt", "context": 20, "overlap": 4},
        "tokenizer": {"type": "characters"},
        "model": {**DECODER, **model} if model.get("type") is None else model,
        "decoding": {"method": "greedy", "max_tokens": 9, **(decoding or {})},
    }
    return write_run(path, table, [Passage(tuple(target for _, target in PAIRS), "text.txt:1")])


def masked_model(path, *, data=None, tokenizer=None, **model):
    table = {
        "task": "masked_language_modelling",
        "data": {"train": "text.txt", "context": 30, **(data or {})},
        "tokenizer": {"type": "bpe", "may_shrink": True, **(tokenizer or {})},
        "model": {**ENCODER, **model},
    }
    return write_run(path, table, [Passage(tuple(target for _, target in PAIRS), "text.txt:1")])


def tagger(path, *, tokenizer=None, head=None, **model):
    table = {
        "task": "tagging",
        "data": {"train": "tags.tsv", "max_length": 50},
        "model": {**ENCODER, **model},
        "head": head or {},
        **({} if tokenizer is None else {"tokenizer": tokenizer}),
    }
    sentences = [target.split() for _, target in PAIRS]
    tags = [tuple("upper" if word[0].isupper() else "lower" for word in each) for each in sentences]
    pairs = zip(sentences, tags, strict=True)
    return write_run(path, table, [TaggedWords(tuple(words), tag, "t:1") for words, tag in pairs])


def classifier(path, *, tokenizer=None, head=None, **model):
    table = {
        "task": "classification",
        "data": {"train": "texts.tsv", "max_length": 50},
        "tokenizer": {"type": "characters", **(tokenizer or {})},
        "model": {**ENCODER, **model},
        "head": {"pooling": "first", "pooler": True, **(head or {})},
    }
    texts = [
        LabelledText(text, f"{index % 3}", None, "t:1") for index, (_, text) in enumerate(PAIRS)
    ]
    return write_run(path, table, texts)


def opened(folder, kind="AutoModelForSeq2SeqLM"):
    import transformers

    model, info = getattr(transformers, kind).from_pretrained(folder, output_loading_info=True)
    assert not any(info[name] for name in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    return model.eval()
