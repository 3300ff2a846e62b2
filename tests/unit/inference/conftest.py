"""A small translator with random weights, which knows a handful of sentences by their words."""

from dataclasses import replace

import pytest
import torch

from regard.inference import Predictor
from regard.tasks import TASKS, recipe_from_table
from regard.tasks.sequences.translation import TranslationTask
from regard.text import train_pair_tokenizer
from regard.text.phrasebook import Phrase

PHRASE = Phrase(
    source="我爱中国。",
    target="I love China.",
    source_words=((0, 1), (1, 2), (2, 4), (4, 5)),
    target_words=((0, 1), (2, 6), (7, 12), (12, 13)),
    sure=frozenset({(0, 0), (1, 1), (2, 2), (3, 3)}),
    possible=frozenset({(0, 0), (1, 1), (2, 2), (3, 3)}),
    constructions=("plain",),
    references=("I love China.",),
)

SHORT = replace(
    PHRASE,
    source="他爱你",
    target="He does love you.",
    source_words=((0, 1), (1, 2), (2, 3)),
    target_words=((0, 2), (3, 7), (8, 12), (13, 16), (16, 17)),
    sure=frozenset({(0, 0), (1, 2), (2, 3)}),
    possible=frozenset({(0, 0), (1, 2), (2, 3), (1, 1)}),
    references=("He does love you.",),
)

MODELS = {
    # Of random weights, a bias of the logits would end every output at once.
    "rnn_seq2seq": {
        "embed_dim": 6,
        "hidden_dim": 5,
        "attention_dim": 7,
        "output_bias": False,
        "beginning": "both",
    },
    "transformer": {
        "model_dim": 8,
        "num_heads": 2,
        "ffn_dim": 11,
        "num_encoder_layers": 2,
        "num_decoder_layers": 3,
        "tie_embeddings": "target",
    },
}


def make_predictor(model="rnn_seq2seq", **settings):
    """A translator with random weights."""
    torch.manual_seed(3)
    recipe = recipe_from_table(
        {
            "data": {"source_language": "zh", "target_language": "en", "max_length": 8},
            "tokenizer": {"type": "words", "shared": False},
            "model": {"type": model, **MODELS[model], **settings},
        }
    )
    known = [PHRASE, SHORT]
    tokenizer = train_pair_tokenizer(
        [phrase.source for phrase in known], [phrase.target for phrase in known], recipe.tokenizer
    )
    task = TranslationTask(recipe, tokenizer)
    return Predictor(task.build_model(), task)


def untrained(table, examples, *, seed=5, std=None):
    """A run of random weights, spread so far, which knows what is in these examples."""
    recipe = recipe_from_table(table)
    task = TASKS[recipe.task].task.learn(recipe, examples)
    torch.manual_seed(seed)
    model = task.build_model().eval()
    for parameter in model.parameters() if std else ():
        torch.nn.init.normal_(parameter, std=std)
    return Predictor(model, task)


LETTERS = "abcdefghijklmnopqrst ."
WIDER = {
    "rnn_seq2seq": {"hidden_dim": 10},
    "transformer": {"model_dim": 12, "num_heads": 3, "ffn_dim": 17, "tie_embeddings": "all"},
}


def letters_predictor(kind="transformer", *, decoding=None, data=None, **settings):
    """A translator of letters, its weights far enough apart to say different things."""
    model = kind.partition(" ")[0]
    recipe = recipe_from_table(
        {
            "data": {"max_length": 20} | (data or {}),
            "tokenizer": {"type": "characters"},
            "model": {"type": model, **MODELS[model], **WIDER[model], **settings},
            "decoding": decoding or {},
        }
    )
    if kind.endswith("fixed"):
        recipe = replace(recipe, model=replace(recipe.model, attention="none"))
    tokenizer = train_pair_tokenizer([LETTERS], [LETTERS], recipe.tokenizer)
    task = TranslationTask(recipe, tokenizer)
    torch.manual_seed(5)
    predictor = Predictor(task.build_model(), task)
    for parameter in predictor.model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return predictor


@pytest.fixture(params=sorted(MODELS))
def predictor(request):
    return make_predictor(request.param)


@pytest.fixture
def phrases():
    return [PHRASE, SHORT]
