"""Runs as graphs, in both forms: the same numbers, whatever the sizes, without regard."""

import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnxruntime
import pytest
import torch
from tests.unit.export.random_runs import write_run

import regard
from regard.export import export_run
from regard.export.graphs import Graph, head_graph, refuse_head
from regard.export.step_graphs import step_graphs
from regard.inference import Predictor
from regard.models import (
    Classifier,
    ClassifierConfig,
    Decoder,
    DecoderConfig,
    Encoder,
    EncoderConfig,
    MaskedLanguageModel,
    Tagger,
    TaggerConfig,
    Transformer,
    TransformerConfig,
    VisionTransformer,
    VisionTransformerConfig,
)
from regard.tasks.labels.classification import LabelledText
from regard.text import read_lines

pytestmark = pytest.mark.usefixtures("as_users_have_it")

RECIPES = Path(regard.__file__).parent / "recipes"
TEXTS = Path(__file__).parents[2] / "fixtures" / "runs_33c24e5" / "texts"
# No file may tell where it was made.
HERE = str(Path(__file__).parents[3]).encode()
HEADS = {
    "classification-transformer": "moods.tsv",
    "classification-convolutional": "moods.tsv",
    "classification-bag": "moods.tsv",
    "masked-language-model": "ask-masked.txt",
    "multiple-choice": "choices.jsonl",
    "pair-matching-cross": "ask-pairs.jsonl",
    "question-answering-transformer": "ask-questions.jsonl",
    "tagging-transformer": "ask-words.txt",
}
# Loads programs and runs them on tensors, where nothing of regard can be imported.
ALONE = """
import sys
sys.modules["regard"] = None
import torch
given, found = torch.load("given.pt"), {}
for name, calls in given.items():
    model = torch.export.load(f"{name}/model.pt2").module()
    found[name] = [model(*tensors) for tensors in calls]
torch.save(found, "found.pt")
assert not any(name.startswith("regard.") for name in sys.modules)
"""


def calls_of(predictor, texts):
    """The inputs and outputs of the model while lines are answered, at once and one by one."""
    lines = list(read_lines(TEXTS / texts))[:5]
    examples = [predictor.task.parse_line(line, Path(texts).suffix) for line in lines]
    inputs, outputs = [], []

    def record(model, ordered, named, out):
        tensors = {name: each for name, each in named.items() if isinstance(each, torch.Tensor)}
        inputs.append({"ids": ordered[0], "lengths": ordered[1], **tensors})
        if isinstance(model, MaskedLanguageModel):
            out = model.project(out)
        if isinstance(out, torch.Tensor):
            out = (out,)
        outputs.append(out[:1] if named.get("return_penalty") else out)

    with torch.no_grad(), predictor.model.register_forward_hook(record, with_kwargs=True):
        for batch in (examples, examples[:1]):
            predictor.answers(batch)
    return inputs, outputs


@pytest.mark.slow
def test_programs_of_torch_give_the_tasks_own_logits_without_regard(runs, tmp_path):
    inputs, outputs = {}, {}
    for name, texts in HEADS.items():
        run = runs / name / "run"
        predictor = Predictor.load(run)
        calls, outputs[name] = calls_of(predictor, texts)
        order = list(head_graph(predictor).inputs)
        assert set(order) == set(calls[0])
        inputs[name] = [tuple(call[each] for each in order) for call in calls]
        export_run(run, "torch", tmp_path / name)
        assert HERE not in (tmp_path / name / "model.pt2").read_bytes()
    torch.save(inputs, tmp_path / "given.pt")
    subprocess.run([sys.executable, "-c", ALONE], check=True, cwd=tmp_path)
    theirs = torch.load(tmp_path / "found.pt")
    for name, ours in outputs.items():
        torch.testing.assert_close(theirs[name], ours, atol=1e-5, rtol=1e-5, msg=name)


@pytest.mark.slow
def test_an_onnx_graph_gives_the_tasks_own_logits(runs, tmp_path):
    name = "question-answering-transformer"
    run = runs / name / "run"
    inputs, outputs = calls_of(Predictor.load(run), HEADS[name])
    export_run(run, "onnx", tmp_path / "out")
    session = onnxruntime.InferenceSession(tmp_path / "out" / "model.onnx")
    assert {each.name for each in session.get_inputs()} == set(inputs[0])
    for each, ours in zip(inputs, outputs, strict=True):
        theirs = session.run(None, {name: tensor.numpy() for name, tensor in each.items()})
        for expected, output in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(output, expected, atol=1e-4)
    assert {"batch", "length"} <= {axis for each in session.get_inputs() for axis in each.shape}
    assert HERE not in (tmp_path / "out" / "model.onnx").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["classification-chinese", "classification-recurrent"])
def test_an_onnx_graph_reads_words_from_their_parts_and_by_recurrence(name, tmp_path):
    recipe = tomllib.loads((RECIPES / f"{name}.toml").read_text("utf-8"))
    texts = ["菜很好吃", "太慢了", "菜太咸了", "很好很快", "a bad film", "bad books"] * 2
    labelled = [LabelledText(text, text[0], None, "t:1") for text in texts]
    table = {each: recipe[each] for each in ("task", "data", "tokenizer", "model", "head")}
    predictor = write_run(tmp_path / "run", table, labelled)
    export_run(tmp_path / "run", "onnx", tmp_path / "out")
    session = onnxruntime.InferenceSession(tmp_path / "out" / "model.onnx")
    (tmp_path / "ask.txt").write_text("菜好\n慢\n很好吃的 bad 菜太快了\n", "utf-8")
    inputs, outputs = calls_of(predictor, tmp_path / "ask.txt")
    for each, ours in zip(inputs, outputs, strict=True):
        (theirs,) = session.run(None, {name: tensor.numpy() for name, tensor in each.items()})
        np.testing.assert_allclose(theirs, ours[0], atol=1e-4)


@pytest.fixture
def untraced(monkeypatch):
    """Files without what is in them."""
    monkeypatch.setattr("regard.export.onnx_graphs.serialised", lambda graph: b"")
    monkeypatch.setattr("torch.export.save", lambda program, file: None)
    monkeypatch.setattr(Graph, "traced", lambda graph: None)


@pytest.mark.usefixtures("untraced")
def test_both_say_what_they_are_and_bring_the_tokenizer(runs, tmp_path):
    run = runs / "tagging-transformer" / "run"
    for form, model in (("onnx", "model.onnx"), ("torch", "model.pt2")):
        out = tmp_path / form
        export_run(run, form, out)
        names = {path.name for path in out.iterdir()}
        assert names == {"README.md", "program.py", "tokenizer", model}
        expected = {path.name for path in (run / "tokenizer").iterdir()} - {"checksums.json"}
        assert {path.name for path in (out / "tokenizer").iterdir()} == expected
        page = (out / "README.md").read_text()
        assert page.startswith("# A run of regard: tagging\n")
        assert "- `ids`: int64 batch × length: token ids" in page


@pytest.mark.parametrize(
    ("option", "reason"), [("crf", "head.crf = true"), ("parts", "model.parts = 'lstm'")]
)
def test_options_of_heads_and_readers_are_refused(option, reason):
    config = EncoderConfig(model_dim=8, num_heads=2, num_layers=1, ffn_dim=8)
    if option == "parts":
        config = replace(config, parts="lstm")
    reader = Encoder(config, vocab_size=9, parts_vocab=7)
    model = Tagger(TaggerConfig(crf=option == "crf"), reader, num_tags=3)
    recipe = SimpleNamespace(task="tagging", model=config, model_type="transformer")
    predictor = SimpleNamespace(recipe=recipe, model=model, is_seq2seq=False)
    assert refuse_head(predictor).startswith(reason)


# Lengths of the rows of batches.
SIZES = ([5, 3, 1], [1], [4] * 13)
# Caches of two layers are kept apart in the first of each.
TRANSLATORS = {
    "sinusoidal": {"copy": True, "tie_embeddings": "none", "num_decoder_layers": 2},
    "learned": {"positions": "learned", "own_positions": True, "embedding_norm": True},
    "rotary": {"positions": "rotary", "norm": "pre", "norm_kind": "rms", "activation": "swiglu"},
    "alibi": {"positions": "alibi", "num_key_heads": 1, "values": "embeddings"},
    "relative": {"positions": "relative", "source_begin": True, "window": 2, "output_bias": True},
    "t5": {"positions": "t5", "score": "additive", "norm_kind": "batch"},
}
LANGUAGE_MODELS = {
    "rotary": {"positions": "rotary", "num_key_heads": 1, "num_layers": 2},
    "alibi": {"positions": "alibi", "window": 3},
}


def by_torch(graph):
    program = graph.traced().module()

    def run(inputs):
        outputs = program(*(inputs[name] for name in graph.inputs))
        return dict(zip(graph.outputs, outputs, strict=True))

    return run


def nothing_yet(graph, batch):
    """The caches before the first token."""
    shapes = {name: axes.shape for name, axes in graph.inputs.items() if "past" in name}
    return {name: torch.zeros(batch, s[1], 0, s[3]) for name, s in shapes.items()}


def check_steps(step, inputs_of, state, model, past, token):
    """Four steps by a graph against the model's own; ``given`` puts a token for it."""
    for _ in range(4):
        ours, state = model.step(token[:, -1], state)
        outputs = step(inputs_of(token) | past)
        torch.testing.assert_close(outputs.pop("log_probs"), ours, atol=1e-4, rtol=0)
        past = {name.replace("present", "past"): each for name, each in outputs.items()}
        token = torch.randint(2, 11, (len(token), 1))


def check_translator(options):
    options = {"num_encoder_layers": 1, "num_decoder_layers": 1, **options}
    config = TransformerConfig(model_dim=8, num_heads=2, ffn_dim=8, **options)
    model = Transformer(config, source_vocab=11, target_vocab=11, shared_vocab=True).eval()
    graphs = step_graphs(SimpleNamespace(model=model))
    encode, step = (by_torch(graph) for graph in graphs)
    for sizes in SIZES:
        source, lengths = torch.randint(3, 11, (len(sizes), max(sizes))), torch.tensor(sizes)
        read = {"source": source, "source_lengths": lengths}
        read |= encode(read)
        past, token = nothing_yet(graphs[1], len(source)), torch.randint(2, 11, (len(source), 1))
        inputs_of = lambda token, read=read: {"token": token[:, 0]} | read  # noqa: E731
        check_steps(step, inputs_of, model.start(source, lengths), model, past, token)


def check_language_model(options):
    options = {"num_layers": 1, **options}
    config = DecoderConfig(model_dim=8, num_heads=2, ffn_dim=8, **options)
    model = Decoder(config, vocab_size=11).eval()
    (graph,) = step_graphs(SimpleNamespace(model=model))
    step = by_torch(graph)
    for sizes in SIZES:
        width, lengths = max(sizes), torch.tensor(sizes)
        prompts = torch.randint(3, 11, (len(sizes), width))
        padding = width - lengths
        # Ours is padded on the right, and reads its last token with the first step.
        turned = (torch.arange(width) - padding[:, None]) % width
        past, token = nothing_yet(graph, len(prompts)), prompts.gather(1, turned)
        inputs_of = lambda ids, padding=padding: {"ids": ids, "padding": padding}  # noqa: E731
        check_steps(step, inputs_of, model.start(prompts, lengths), model, past, token)


@pytest.mark.slow
@pytest.mark.parametrize("case", TRANSLATORS)
def test_steps_of_a_translator_are_ours(case):
    with torch.no_grad():
        check_translator(TRANSLATORS[case])


@pytest.mark.slow
@pytest.mark.parametrize("case", LANGUAGE_MODELS)
def test_steps_of_a_language_model_are_ours(case):
    with torch.no_grad():
        check_language_model(LANGUAGE_MODELS[case])


def test_pictures_are_scaled_by_the_graph():
    config = VisionTransformerConfig(model_dim=8, num_heads=2, num_layers=1, ffn_dim=8)
    model = VisionTransformer(config, size=(4, 6), channels=3, num_classes=5).eval()
    task = SimpleNamespace(mean=7.0, deviation=2.5)
    recipe = SimpleNamespace(model=config)
    predictor = SimpleNamespace(model=model, task=task, recipe=recipe, is_seq2seq=False)
    assert refuse_head(predictor) is None
    graph = head_graph(predictor)
    assert str(graph.inputs["pictures"]) == "float32 batch × 3 × 4 × 6"
    run = by_torch(graph)
    for batch in (1, 11):
        pictures = 16 * torch.rand(batch, 3, 4, 6)
        ours = model((pictures - 7) / 2.5)
        torch.testing.assert_close(run({"pictures": pictures})["logits"], ours, atol=1e-5, rtol=0)


LAYOUTS = {
    "classification-bag": "`text 3`",
    "language-model": "`3 prompt`",
    "pair-matching-cross": "`2 first-text 3 second-text 3`",
    "tagging-transformer": "`the words`",
    "translation-bpe": "`source`",
    "translation-transformer": "`source 3`",
}


@pytest.mark.usefixtures("untraced")
@pytest.mark.parametrize("name", LAYOUTS)
def test_the_card_says_how_rows_are_laid_out(runs, tmp_path, name):
    export_run(runs / name / "run", "onnx", tmp_path / "out")
    assert f"A row is: {LAYOUTS[name]}." in (tmp_path / "out" / "README.md").read_text()


def test_programs_end_where_learned_positions_do():
    config = EncoderConfig(model_dim=8, num_heads=2, num_layers=1, ffn_dim=8, max_length=6)
    reader = Encoder(config, vocab_size=9).eval()
    model = Classifier(ClassifierConfig(), reader, num_classes=3).eval()
    recipe = SimpleNamespace(task="classification", model=config, data=None)
    run = SimpleNamespace(recipe=recipe, model=model, task=None)
    program = head_graph(run).traced().module()
    longest = torch.ones(1, 6, dtype=torch.long), torch.tensor([6])
    torch.testing.assert_close(program(*longest)[0], model(*longest))
    with pytest.raises((RuntimeError, AssertionError)):
        program(torch.ones(1, 7, dtype=torch.long), torch.tensor([7]))
