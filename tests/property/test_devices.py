"""Results do not depend on the device: those of every recipe, every task and every search.

On a device that is none (see ``pretended_device.py``), and on a GPU where there is one. On both, a
tensor that was made on the CPU by mistake is an error.
"""

import tempfile
import tomllib
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.end_to_end.tiny_tasks import TINY, TRAINING
from tests.looking import look_into
from tests.pretended_device import pretended

from regard.cli.recipes import packaged_recipe, packaged_recipes
from regard.devices import moved
from regard.fields import hints_of
from regard.inference import Predictor
from regard.layers import MultiHeadAttention
from regard.tasks import TASKS, OnePassTask, recipe_from_table

# The code of attention is checked on the CPU; checks of shapes take most of the time here.
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unchecked_shapes")]

SIZES = {
    "model_dim": 8,
    "num_heads": 2,
    "num_key_heads": 1,
    "ffn_dim": 8,
    "num_layers": 1,
    "num_encoder_layers": 1,
    "num_decoder_layers": 2,
    "embed_dim": 8,
    "hidden_dim": 8,
    "attention_dim": 4,
    "parts_dim": 4,
    "channels": 4,
    "num_gaussians": 2,
    "num_hops": 2,
    "max_sentences": 8,
    "dropout": 0.0,
    "head_dropout": 0.0,
}
# What no recipe asks for: of a model, of the head.
MORE: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "learned positions": ("transformer-tiny", {"positions": "learned"}, {}),
    "Shaw's positions": ("transformer-tiny", {"positions": "relative"}, {}),
    "additive score": ("transformer-tiny", {"score": "additive"}, {}),
    "words of LSTMs": ("classification-bag", {"parts": "lstm"}, {}),
    "tanh query": ("classification-transformer", {}, {"pooling": "tanh_query"}),
    "first state": ("classification-transformer", {}, {"pooling": "first"}),
    "last state": ("classification-recurrent", {}, {"pooling": "state"}),
    "LSTM decoder": ("rnn-attention", {"cell": "lstm"}, {}),
    "transformer tags": ("tagging-words", {"type": "transformer"}, {"crf": True}),
}
DEVICES = [
    "pretended",
    pytest.param(
        "cuda",
        marks=[
            pytest.mark.gpu,
            pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA GPU"),
        ],
    ),
]


@pytest.fixture(params=DEVICES)
def device(request):
    if request.param == "pretended":
        with pretended() as device:
            yield device
        return
    yield torch.device("cuda", 0)


def small(name, model, head):
    """A recipe of the package in small, with its own options, for a tiny text."""
    table = tomllib.loads(packaged_recipe(name).read_text("utf-8"))
    task = table.get("task", "translation")
    tiny = TINY[task].table
    settings = {**table.get("model", {}), **model}
    kinds = TASKS[task].models
    fields = hints_of(kinds[settings.get("type", next(iter(kinds)))].config)
    settings |= {key: SIZES[key] for key in SIZES.keys() & fields.keys() if key != "num_key_heads"}
    if "num_key_heads" in table.get("model", {}):
        settings["num_key_heads"] = 1
    if "max_length" in settings:
        settings["max_length"] = max(32, settings["max_length"])
    settings = {key: each for key, each in settings.items() if key in fields or key == "type"}
    recipe = {"task": task, "model": settings, "training": TRAINING, "data": tiny.get("data", {})}
    if (kind := TASKS[task].head) is not None:
        small_head = {key: SIZES[key] for key in SIZES.keys() & hints_of(kind).keys()}
        recipe["head"] = {**table.get("head", {}), **head, **small_head}
    if TASKS[task].decoding is not None and task != "language_modelling":
        recipe["decoding"] = {"max_ratio": 0.1, "beam_size": 2}
    if task == "language_modelling":
        recipe["decoding"] = {"max_tokens": 6}
    if "tokenizer" in tiny:
        shared = {"shared": True} if table.get("tokenizer", {}).get("shared") else {}
        recipe["tokenizer"] = {"type": "words", **shared}
    if table.get("model", {}).get("copy"):
        recipe["tokenizer"] = {"type": "words", "shared": True}
    return recipe


@cache
def learned(name):
    """The task of a recipe, examples of it, and a model with random weights."""
    random_state = torch.get_rng_state()
    torch.manual_seed(3)
    base, model, head = MORE.get(name, (name, {}, {}))
    table = small(base, model, head)
    tiny = TINY[table["task"]]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / tiny.file
        file.write_text(tiny.text(200 if "language" in table["task"] else 20), "utf-8")
        table["data"] = {**table["data"], "train": [str(file)]}
        recipe = recipe_from_table(table)
        kind = TASKS[table["task"]].task
        examples = kind.read_parts(recipe).train
        recipe = kind.resolved(recipe, None, examples)
        task = kind.learn(recipe, examples)
    result = task, examples[:4], task.build_model()
    torch.set_rng_state(random_state)
    return result


def different(names):
    """The names whose recipes are no other's in small: larger sizes compute nothing else."""
    tables = {}
    for name in names:
        tables.setdefault(repr(small(*MORE.get(name, (name, {}, {})))), name)
    return list(tables.values())


NAMES = different([*packaged_recipes(), *MORE])


@pytest.mark.parametrize("name", NAMES)
def test_loss_and_gradient_are_those_of_the_cpu(name, device):
    task, examples, on_cpu = learned(name)
    on_device = deepcopy(on_cpu).to(device)
    batch = task.collate(
        task.encode(examples, training=True)[:4], generator=torch.Generator().manual_seed(5)
    )
    results = []
    for model, inputs in ((deepcopy(on_cpu), batch), (on_device, moved(batch, device))):
        if device.type == "cuda":  # which draws dropout of weights in a pattern of its own
            for module in model.modules():
                if isinstance(module, MultiHeadAttention):
                    module.dropout = 0.0
        model.train()
        model.zero_grad()
        torch.manual_seed(7)
        loss, terms = task.backward(model, inputs, smoothing=0.0)
        grads = {n: p.grad.cpu() for n, p in model.named_parameters() if p.grad is not None}
        results.append((loss.cpu(), terms, grads))
    (loss, terms, grads), (other_loss, other_terms, other_grads) = results
    assert terms == other_terms
    assert grads.keys() == other_grads.keys()
    if name == "rnn-hard":  # it draws what it looks at, from the device's random numbers
        return
    torch.testing.assert_close(other_loss.double(), loss.double(), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(other_grads, grads, rtol=1e-2, atol=2e-3)


# One of each task, and each model that writes.
ANSWERING = [
    "classification-structured",
    "conv-seq2seq",
    "generation-copy",
    "generation-transformer",
    "language-model-subwords",
    "masked-language-model-words",
    "multiple-choice",
    "pair-matching",
    "question-answering",
    "regression",
    "rnn-hard",
    "rnn-local-p",
    "rnn-mixture",
    "sentence-selection",
    "tagging-entities",
    "transformer-grouped",
    "vision-transformer",
]


@pytest.mark.parametrize("name", ANSWERING)
def test_a_model_answers_and_is_looked_into_there(name, device):
    task, examples, on_cpu = learned(name)
    on_device = Predictor(deepcopy(on_cpu).to(device), task)
    answers = on_device.answers(examples[:3])
    assert len(answers) == len(examples[:3])
    assert all(isinstance(each.text(), str) for each in answers)
    if isinstance(task, OnePassTask):
        _, loss = on_device.use.answers_and_loss(examples[:3])
        _, expected = Predictor(on_cpu, task).use.answers_and_loss(examples[:3])
        assert loss == pytest.approx(expected, rel=1e-3, abs=1e-4)
    if text := text_of(task, examples[0]):
        document = look_into(on_device, text)
        assert document.examples


def text_of(task, example):
    """The text that people would look into."""
    if not isinstance(task, OnePassTask):
        return example.source
    return {
        "classification": lambda: example.text,
        "language_modelling": lambda: example.lines[0],
        "pair_matching": lambda: f"{example.first}\t{example.second}",
        "question_answering": lambda: f"{example.text}\t{example.context}",
        "tagging": lambda: " ".join(example.words),
    }.get(task.recipe.task, lambda: None)()


SEARCHES = [
    {"method": "greedy"},
    {"method": "beam", "beam_size": 3, "n_best": 2},
    {"method": "beam", "beam_size": 4, "coverage_penalty": 0.2},
    {"method": "sample", "n_best": 3, "top_p": 0.9, "top_k": 5},
    {"method": "greedy", "prefix": "sat", "repetition_penalty": 1.3, "no_repeat_ngram": 2},
    {"method": "greedy", "avoid": ["hours"], "min_length": 3},
]


@pytest.mark.parametrize(
    ("model", "search"),
    [
        *(("rnn-attention", each) for each in SEARCHES),
        *((model, SEARCHES[1]) for model in ("transformer-tiny", "rnn-copy", "conv-seq2seq")),
    ],
)
def test_every_search_finds_what_it_finds_on_the_cpu(model, search, device):
    task, examples, on_cpu = learned(model)
    on_device = Predictor(deepcopy(on_cpu).to(device), task)
    decoding = on_device.decoding.changed(**search)
    texts = [example.source for example in examples[:2]]
    outputs = [
        each.translate(texts, decoding=decoding, attention=model != "conv-seq2seq")
        for each in (Predictor(on_cpu, task), on_device)
    ]
    for expected, output in zip(*outputs, strict=True):
        assert [each.text for each in output] == [each.text for each in expected]
        assert [each.score for each in output] == pytest.approx(
            [e.score for e in expected], rel=1e-3
        )


def test_pairs_are_scored_on_the_device(device):
    task, examples, on_cpu = learned("transformer-tiny")
    on_device = Predictor(deepcopy(on_cpu).to(device), task)
    scores, expected = (
        each.use.score([each.use.scored(pair) for pair in examples[:3]])
        for each in (on_device, Predictor(on_cpu, task))
    )
    for score, reference in zip(scores, expected, strict=True):
        assert score.score == pytest.approx(reference.score, rel=1e-3)


@pytest.mark.parametrize("name", ["language-model-characters", "language-model-recurrent"])
def test_a_language_model_continues_a_text_on_the_device(name, device):
    task, _, on_cpu = learned(name)
    predictors = [Predictor(model, task) for model in (on_cpu, deepcopy(on_cpu).to(device))]
    expected, output = (each.predict("Anna sat")[0].text() for each in predictors)
    assert expected == output
    decoding = predictors[0].decoding.changed(method="greedy")
    expected, output = ("".join(each.stream("Anna sat", decoding)) for each in predictors)
    assert expected == output
