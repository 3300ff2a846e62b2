"""Whole trainings in one pass, small ones: classification, tagging, language modelling."""

import json
import random
from types import SimpleNamespace

import pytest
import torch

from regard.cli.evaluate import evaluate
from regard.errors import DataError, RunError, SettingError
from regard.inference import Predictor
from regard.inference.evaluation.comparison import Ensemble
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
def make_recipe(tmp_path):
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


def training_of(recipe):
    """The training of a recipe, its vocabularies learned."""
    parts = read_parts(recipe)
    learned = TASKS[recipe.task].task.learn(recipe, parts.train)
    return TaskTraining(learned, parts.train, parts.valid, TrainingConfig(**TRAINING))


def shared(training, shard):
    training.begin_epoch(0)
    return list(training.batches(0, 0, shard))


def test_windows_of_text_are_the_same_however_many_share_a_batch(make_recipe):
    training = training_of(make_recipe("language_modelling"))
    training.begin_epoch(0)
    whole_batches = list(training.batches(0, 0))
    shards = [shared(training, BatchShard(rank, 3)) for rank in range(3)]
    assert len(whole_batches) > 3
    for batch_of_all, *pieces in zip(whole_batches, *shards, strict=True):
        batches = [batch for batch, _ in pieces if batch is not None]
        assert {cursor for _, cursor in pieces} == {batch_of_all[1]}
        assert torch.cat([batch["ids"] for batch in batches]).equal(batch_of_all[0]["ids"])
        assert torch.cat([batch["labels"] for batch in batches]).equal(batch_of_all[0]["labels"])


def test_a_rank_without_a_part_of_a_batch_gets_none(make_recipe):
    training = training_of(make_recipe("tagging"))
    whole, _ = shared(training, BatchShard())[0]
    rows = len(whole["ids"])
    batches = [shared(training, BatchShard(rank, rows + 2))[0][0] for rank in range(rows + 2)]
    assert batches.count(None) >= 2
    assert sum(len(batch["ids"]) for batch in batches if batch is not None) == rows
    assert 1 < training.examples_a_batch < training.num_samples


@pytest.mark.slow
@pytest.mark.parametrize("task", sorted(CASES))
def test_a_job_is_learned_saved_and_answers_alike(toy, tmp_path, make_recipe, task):
    trained = train(make_recipe(task), tmp_path / "run", reporter=toy.Recorder())
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
    single = [loaded.answers([example])[0] for example in examples[:5]]
    batched = loaded.answers(examples)[:5]
    if task == "tagging":
        assert single == batched
    drawings = [loaded.task.show(e, a) for e, a in zip(examples, batched, strict=False)]
    assert all(drawings)


@pytest.mark.parametrize(
    ("task", "text", "error", "message"),
    [
        ("classification", "yes\tk\tba\n" * 20, DataError, "at least two different labels"),
        ("classification", "x\n", DataError, "expected 3 columns, found 1"),
        ("tagging", "ba\tO\n\n" * 20, DataError, "at least two different tags; got"),
        ("tagging", "baO\n", DataError, "A tab must stand between the word and its tag"),
    ],
)
def test_text_that_cannot_be_used_leaves_no_run(
    toy, tmp_path, make_recipe, task, text, error, message
):
    recipe = make_recipe(task)
    (tmp_path / f"train.{CASES[task][0]}").write_text(text, encoding="utf-8")
    with pytest.raises(error, match=message):
        train(recipe, tmp_path / "run", reporter=toy.Recorder())
    assert not (tmp_path / "run").exists()


def test_settings_that_make_no_sense_are_named(make_recipe):
    with pytest.raises(SettingError, match=r"head.pooling must be one of"):
        make_recipe("classification", head={"pooling": "median"})
    with pytest.raises(SettingError, match="text, label and aspect must be different columns"):
        make_recipe("classification", data={"text": 1, "label": 1})
    with pytest.raises(SettingError, match="overlap must be at least 0 and below context = 10"):
        make_recipe("language_modelling", data={"overlap": 10})


def test_two_readings_of_a_batch_are_of_tasks_that_write(toy, tmp_path, make_recipe):
    message = "training.r_drop must be 0 for tagging; got 1.0. It is of tasks that write"
    with pytest.raises(SettingError, match=message):
        train(make_recipe("tagging", training={"r_drop": 1.0}), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_aspect_is_read_where_the_head_pools_by_it(toy, tmp_path, make_recipe):
    changes = {"data": {"aspect": 2}, "head": {"pooling": "aspect"}}
    changes["training"] = {"updates": 2, "validate_every": 2}
    trained = train(
        make_recipe("classification", **changes), tmp_path / "run", reporter=toy.Recorder()
    )
    one, other = trained.predictor.predict(
        [{"text": "ba ge di", "aspect": "kind0"}, {"text": "ba ge di", "aspect": "kind1"}]
    )
    assert one.probabilities != other.probabilities


def test_a_run_of_one_kind_is_not_taken_for_the_other(toy, tmp_path, make_recipe):
    short = {"training": {"updates": 2, "validate_every": 2}}
    train(make_recipe("classification", **short), tmp_path / "run", reporter=toy.Recorder())
    with pytest.raises(RunError, match="must be the run of a translator; it is one of classificat"):
        Predictor.load(tmp_path / "run").translate(["ba"])
    with pytest.raises(RunError):
        Predictor.load(tmp_path)


def test_an_ensemble_of_runs_is_evaluated_by_one_command(toy, tmp_path, make_recipe, capsys):
    runs = []
    for seed in (1, 2, 3):
        short = {"training": {"updates": 20, "validate_every": 20, "seed": seed}}
        runs.append(tmp_path / f"run{seed}")
        train(make_recipe("classification", **short), runs[-1], reporter=toy.Recorder())
    ensemble = Ensemble.load(*runs)
    examples = ensemble.task.read(ensemble.task.recipe, "valid")
    expected = ensemble.task.score(ensemble.answers(examples), examples)["accuracy"]
    evaluate(runs[0], also=tuple(runs[1:]), split="valid", as_json=True)
    record = json.loads(capsys.readouterr().out)
    figures = {figure["name"]: figure["value"] for figure in record["figures"]}
    assert figures["accuracy"] == expected


@pytest.mark.parametrize(
    ("target", "note"),
    [
        ("a b", "perplexity is that of whole words: not"),
        ("a cab b b", "as 25.0% of those validated on are: not"),
        ("我爱中国", "perplexity is that of characters, as words are not spaced: not to be"),
    ],
)
def test_unknown_words_are_named_with_a_perplexity_of_words(target, note):
    tokenizer = SimpleNamespace(encode=lambda word: list(word.strip()))
    recipe = SimpleNamespace(tokenizer=SimpleNamespace(type="words"))
    task = SimpleNamespace(tokenizer=tokenizer, recipe=recipe, is_written=True, metrics={})
    training = SimpleNamespace(task=task, valid=[SimpleNamespace(target=target)])
    (line,) = TaskTraining.describe_perplexity(training)
    assert note in line
