"""Whole trainings in one pass, small ones: classification, tagging, language modelling."""

import json
import random
from types import SimpleNamespace

import pytest
import torch

from regard.cli.evaluate import evaluate
from regard.errors import DataError, RunError, SettingError
from regard.inference import Predictor
from regard.inference.ensemble import Ensemble
from regard.tasks import TASKS, read_parts, recipe_from_table
from regard.training import TrainingConfig
from regard.training.distributed.world import BatchShard
from regard.training.session import fit as train
from regard.training.task_training import TaskTraining

WORDS = ["ba", "be", "bi", "da", "de", "di", "ga", "ge", "gi"]
TRAINING = {
    "updates": 60,
    "batch_tokens": 90,
    "learning_rate": 0.02,
    "warmup": 5,
    "schedule": "constant",
    "label_smoothing": 0.0,
    "validate_every": 30,
    "precision": "float32",
}


def sentences(count, seed):
    dice = random.Random(seed)
    return [dice.choices(WORDS, k=dice.randint(2, 7)) for _ in range(count)]


def write_classification(path, count, seed):
    # The label is whether there are words with g; the aspect asks for it, or for its opposite.
    rows = []
    for number, words in enumerate(sentences(count, seed)):
        has_g = any(word[0] == "g" for word in words)
        rows.append(f"{'yes' if has_g else 'no'}\t{'kind' + str(number % 2)}\t{' '.join(words)}\n")
    path.write_text("".join(rows), encoding="utf-8")


def write_tagging(path, count, seed):
    # A word's tag is its consonant's entity; one that follows its like is inside it.
    blocks = []
    for words in sentences(count, seed):
        before, lines = "", []
        for word in words:
            kind = {"b": "O", "d": "D", "g": "G"}[word[0]]
            tag = "O" if kind == "O" else f"{'I' if kind == before else 'B'}-{kind}"
            before = kind
            lines.append(f"{word}\t{tag}\n")
        blocks.append("".join(lines))
    path.write_text("\n".join(blocks), encoding="utf-8")


def write_text(path, count, seed):
    path.write_text("\n".join("bdg" * 7 for _ in range(count)) + "\n", encoding="utf-8")


# For each task: the files' ending, who writes one, and what its recipe says besides.
CASES = {
    "classification": (
        "tsv",
        write_classification,
        {
            "data": {"text": 3, "label": 1},
            "tokenizer": {"type": "words"},
            "model": {"type": "bag", "embed_dim": 12, "dropout": 0.1},
            "head": {"pooling": "maximum", "dropout": 0.0},
        },
    ),
    "tagging": (
        "conll",
        write_tagging,
        {
            "data": {"drop_words": 0.1},
            "model": {"type": "recurrent", "embed_dim": 12, "hidden_dim": 12, "dropout": 0.1},
            "head": {"crf": True, "dropout": 0.1},
        },
    ),
    "language_modelling": (
        "txt",
        write_text,
        {
            "data": {"context": 10},
            "tokenizer": {"type": "characters"},
            "model": {"type": "recurrent", "cell": "gru", "embed_dim": 8, "hidden_dim": 12},
        },
    ),
}


@pytest.fixture
def recipe(tmp_path):
    """A maker of recipes of one task, on text written for it."""

    def make(task, **changes):
        ending, write, table = CASES[task]
        if not (tmp_path / f"train.{ending}").exists():
            write(tmp_path / f"train.{ending}", 120, 1)
            write(tmp_path / f"valid.{ending}", 30, 2)
        files = {"train": f"train.{ending}", "valid": f"valid.{ending}"}
        sections = {name: {**table.get(name, {}), **changes.get(name, {})} for name in (*table,)}
        sections["data"] = files | sections["data"]
        training = TRAINING | changes.get("training", {})
        return recipe_from_table({"task": task, **sections, "training": training}, folder=tmp_path)

    return make


def training_of(given):
    """The training of a recipe, its vocabularies learned."""
    parts = read_parts(given)
    learned = TASKS[given.task].task.learn(given, parts.train)
    return TaskTraining(learned, parts.train, parts.valid, TrainingConfig(**TRAINING))


def shared(work, share):
    work.begin_epoch(0)
    return list(work.batches(0, 0, share))


def test_windows_of_text_are_the_same_however_many_share_a_batch(recipe):
    work = training_of(recipe("language_modelling"))
    work.begin_epoch(0)
    wholes = list(work.batches(0, 0))
    of_each = [shared(work, BatchShard(rank, 3)) for rank in range(3)]
    assert len(wholes) > 3
    for whole, *pieces in zip(wholes, *of_each, strict=True):
        batches = [batch for batch, _ in pieces if batch is not None]
        assert {cursor for _, cursor in pieces} == {whole[1]}
        assert torch.cat([batch["ids"] for batch in batches]).equal(whole[0]["ids"])
        assert torch.cat([batch["labels"] for batch in batches]).equal(whole[0]["labels"])


def test_who_has_no_part_of_a_batch_is_given_none(recipe):
    work = training_of(recipe("tagging"))
    whole, _ = shared(work, BatchShard())[0]
    rows = len(whole["ids"])
    found = [shared(work, BatchShard(rank, rows + 2))[0][0] for rank in range(rows + 2)]
    assert found.count(None) >= 2
    assert sum(len(batch["ids"]) for batch in found if batch is not None) == rows
    assert 1 < work.examples_a_batch < work.num_samples


@pytest.mark.slow
@pytest.mark.parametrize("task", sorted(CASES))
def test_a_job_is_learned_saved_and_answers_alike(toy, tmp_path, recipe, task):
    trained = train(recipe(task), tmp_path / "run", reporter=toy.Recorder())
    figures = trained.summary["validation"]
    if task == "language_modelling":
        assert figures["perplexity"] < 1.3
        assert figures["bits per byte"] < 0.5
    else:
        assert figures["accuracy"] > 95
        assert figures["f1"] > 90
    loaded = Predictor.load(tmp_path / "run")
    examples = loaded.task.read(loaded.task.recipe, "valid")
    assert loaded.answers(examples) == trained.predictor.answers(examples)
    # One at a time as together: neither padding nor company changes an answer.
    alone = [loaded.answers([example])[0] for example in examples[:5]]
    together = loaded.answers(examples)[:5]
    if task == "tagging":
        assert alone == together
    shown = [loaded.task.show(e, a) for e, a in zip(examples, together, strict=False)]
    assert all(shown)


@pytest.mark.parametrize(
    ("task", "text", "error", "message"),
    [
        ("classification", "yes\tk\tba\n" * 20, DataError, "at least two different labels"),
        ("classification", "x\n", DataError, "expected 3 columns, found 1"),
        ("tagging", "ba\tO\n\n" * 20, DataError, "at least two different tags; got"),
        ("tagging", "baO\n", DataError, "A tab must stand between the word and its tag"),
    ],
)
def test_text_that_cannot_be_used_leaves_no_run(toy, tmp_path, recipe, task, text, error, message):
    made = recipe(task)
    (tmp_path / f"train.{CASES[task][0]}").write_text(text, encoding="utf-8")
    with pytest.raises(error, match=message):
        train(made, tmp_path / "run", reporter=toy.Recorder())
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("task", "old", "new", "message"),
    [
        ("classification", "yes", "maybe", r"valid.tsv:\d+: label must be one met in training"),
        ("tagging", "B-D", "B-X", r"valid.conll:\d+: tags must be ones met in training .*'B-X'"),
    ],
)
def test_labels_unknown_to_training_are_named(toy, tmp_path, recipe, task, old, new, message):
    made = recipe(task)
    path = tmp_path / f"valid.{CASES[task][0]}"
    path.write_text(path.read_text().replace(old, new), encoding="utf-8")
    with pytest.raises(DataError, match=message):
        train(made, tmp_path / "run", reporter=toy.Recorder())
    assert not (tmp_path / "run").exists()


def test_settings_that_make_no_sense_are_named(recipe):
    with pytest.raises(SettingError, match=r"head.pooling must be one of"):
        recipe("classification", head={"pooling": "median"})
    with pytest.raises(SettingError, match="text, label and aspect must be different columns"):
        recipe("classification", data={"text": 1, "label": 1})
    with pytest.raises(SettingError, match="overlap must be at least 0 and below context = 10"):
        recipe("language_modelling", data={"overlap": 10})


def test_the_aspect_is_read_where_the_head_asks_for_it(toy, tmp_path, recipe):
    changes = {"data": {"aspect": 2}, "head": {"pooling": "aspect"}}
    changes["training"] = {"updates": 2, "validate_every": 2}
    trained = train(recipe("classification", **changes), tmp_path / "run", reporter=toy.Recorder())
    one, other = trained.predictor.predict(
        [{"text": "ba ge di", "aspect": "kind0"}, {"text": "ba ge di", "aspect": "kind1"}]
    )
    assert one.probabilities != other.probabilities


def test_a_run_of_one_kind_is_not_taken_for_the_other(toy, tmp_path, recipe):
    few = {"training": {"updates": 2, "validate_every": 2}}
    train(recipe("classification", **few), tmp_path / "run", reporter=toy.Recorder())
    with pytest.raises(RunError, match="must be the run of a translator; it is one of classificat"):
        Predictor.load(tmp_path / "run").translate(["ba"])
    with pytest.raises(RunError):
        Predictor.load(tmp_path)


def test_runs_that_answer_together_are_evaluated_by_one_command(toy, tmp_path, recipe, capsys):
    runs = []
    for seed in (1, 2, 3):
        few = {"training": {"updates": 20, "validate_every": 20, "seed": seed}}
        runs.append(tmp_path / f"run{seed}")
        train(recipe("classification", **few), runs[-1], reporter=toy.Recorder())
    ensemble = Ensemble.load(*runs)
    examples = ensemble.task.read(ensemble.task.recipe, "valid")
    wanted = ensemble.task.score(ensemble.answers(examples), examples)["accuracy"]
    evaluate(runs[0], also=tuple(runs[1:]), split="valid", as_json=True)
    record = json.loads(capsys.readouterr().out)
    found = {figure["name"]: figure["value"] for figure in record["figures"]}
    assert found["accuracy"] == wanted


@pytest.mark.parametrize(
    ("target", "note"),
    [
        ("a b", "perplexity is that of whole words: not"),
        ("a cab b b", "as 25.0% of those validated on are: not"),
    ],
)
def test_unknown_words_are_named_beside_a_perplexity_of_words(target, note):
    tokenizer = SimpleNamespace(encode=lambda word: list(word.strip()))
    recipe = SimpleNamespace(tokenizer=SimpleNamespace(type="words"))
    task = SimpleNamespace(tokenizer=tokenizer, recipe=recipe, is_written=True, metrics={})
    training = SimpleNamespace(task=task, valid=[SimpleNamespace(target=target)])
    (line,) = TaskTraining.describe_perplexity(training)
    assert note in line
