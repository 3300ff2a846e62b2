"""Going on with a run by other settings than it was begun with."""

import shlex

import pytest
import torch

from regard.config import parse_settings
from regard.errors import RunError, TrainingError
from regard.runs import Run, RunWarning
from regard.runs.files import checksum, seal, unseal
from regard.tasks import recipe_from_table
from regard.training import resume
from regard.training.session import fit as train

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight"]


@pytest.fixture
def trained_run(toy, tmp_path):
    """A run of six updates; gives its recipe, its folder, and a reporter that has heard all."""
    rows = [f"{a} {b} {c}\t{c} {b} {a}\n" for a in WORDS[:4] for b in WORDS for c in WORDS[:3]]
    (tmp_path / "train.tsv").write_text("".join(rows), encoding="utf-8")

    def make(updates=6, **training):
        settings = {"updates": updates, "batch_tokens": 60, "learning_rate": 0.01, "warmup": 3}
        settings |= {"validate_every": 3, "validation_pairs": 0, "precision": "float32", "keep": 9}
        sizes = {"embed_dim": 4, "hidden_dim": 4, "attention_dim": 4}
        table = {
            "data": {"train": str(tmp_path / "train.tsv")},
            "tokenizer": {"type": "words"},
            "model": {"type": "rnn_seq2seq", **sizes},
            "training": settings | training,
        }
        return recipe_from_table(table)

    path = tmp_path / "run"
    train(make(), path, reporter=toy.Recorder())
    return make, path


# What may change, with what must be seen of it in the updates that follow.
CHANGES = {
    "updates=9": lambda figures: len(figures) == 3,
    "epochs=3": lambda figures: len(figures) > 6,
    "learning_rate=0.002": lambda figures: figures[0]["learning_rate"] < 0.002,
    "warmup_share=none": lambda figures: figures[0]["learning_rate"] > 0.006,
    "batch_tokens=30": lambda figures: max(each["tokens"] for each in figures) <= 30,
    "accumulate=2": lambda figures: max(each["tokens"] for each in figures) > 60,
    "ema=0.9": lambda figures: len(figures) == 6,
    "patience=1": lambda figures: 0 < len(figures) <= 6,
}


@pytest.mark.parametrize("change", sorted(CHANGES))
def test_a_run_resumes_by_other_settings_and_records_them(toy, trained_run, change):
    _, path = trained_run
    recorder = toy.Recorder()
    limit = {"epochs=3": "none", "updates=9": "9"}.get(change, "12")
    settings = [f"training.updates={limit}", f"training.{change}"]
    trained = resume(path, settings=parse_settings(settings), reporter=recorder)
    assert ("resumed", 6) in recorder.events
    assert CHANGES[change](recorder.figures)
    name, _, _ = change.partition("=")
    run = Run.open(path)
    assert [each["update"] for each in run.changes] == [6]
    assert f"training.{name}" in run.changes[0]["is"]
    assert run.recipe["training"][name] == run.changes[0]["is"][f"training.{name}"]
    assert trained.summary["updates"] == run.summary["updates"] > 6
    [changed] = [fact for fact in recorder.facts if fact.startswith("since update 6: ")]
    assert f"training.{name} = " in changed


def test_a_run_from_before_a_setting_resumes_as_it_began(toy, trained_run):
    make, path = trained_run
    # A short training that was begun when all of it was warm-up.
    text = (path / "recipe.toml").read_text().replace("warmup_share = 0.2\n", "")
    card = unseal((path / "run.json").read_bytes(), where=path)
    del card["threads"], card["changes"]
    (path / "recipe.toml").write_text(text.replace("warmup = 3", "warmup = 100"))
    content = (path / "recipe.toml").read_bytes()
    (path / "run.json").write_bytes(seal(card | {"recipe": checksum(content)}))
    for checkpoint in Run.open(path).checkpoints():
        checkpoint.delete()
    recorder = toy.Recorder()
    train(make(warmup=100), path, reporter=recorder)
    rates = [figures["learning_rate"] for figures in recorder.figures]
    assert rates == pytest.approx([0.0001 * update for update in range(1, 7)])


def test_betas_are_those_of_now_and_moments_those_of_before(toy, tmp_path):
    toy.fit(tmp_path / "run", updates=4)
    trainer, _ = toy.fit(tmp_path / "run", updates=5, betas=(0.5, 0.6), weight_decay=0.1)
    [group] = trainer.optimizer.param_groups
    assert (group["betas"], group["weight_decay"]) == ((0.5, 0.6), 0.1)
    steps = {int(state["step"]) for state in trainer.optimizer.parts[0].state.values()}
    assert steps == {5}


def test_the_same_call_with_other_settings_says_how_to_resume(trained_run):
    make, path = trained_run
    recipe = make(learning_rate=0.005, updates=9)
    with pytest.raises(RunError) as refused:
        train(recipe, path)
    message = str(refused.value)
    assert "holds a run with other settings: training.updates was 6, now 9." in message
    _, _, command = message.partition("To go on with it by these: ")
    words = shlex.split(command.partition(". To begin anew")[0])
    assert words[:5] == ["regard", "train", "--resume", "--run", str(path)]
    settings = [word for word in words[5:] if word != "--set"]
    assert sorted(settings) == ["training.learning_rate=0.005", "training.updates=9"]
    assert resume(path, settings=parse_settings(settings)).summary["updates"] == 9


STAYING = [
    *("model.hidden_dim=5", "tokenizer.type=characters", "data.max_length=9"),
    *("training.optimizer=sgd", "training.metric=bleu", "training.seed=2"),
]


def test_what_a_model_is_and_reads_cannot_change(trained_run):
    _, path = trained_run
    for setting in STAYING:
        name, _, _ = setting.partition("=")
        settings = [setting, "training.updates=9", "training.validation_pairs=1"]
        with pytest.raises(
            RunError, match=f"{name} was .* stay as a run was begun. Choose another"
        ):
            resume(path, settings=parse_settings(settings))
    assert Run.open(path).changes == []


def test_after_a_loss_that_is_not_finite_the_advice_works(toy, tmp_path):
    path = tmp_path / "a run"
    with pytest.raises(TrainingError) as stopped:
        toy.fit(path, task=toy.Task(poisoned=7))
    _, _, command = str(stopped.value).partition("and go on: ")
    words = shlex.split(command)
    assert words == [
        *["regard", "train", "--resume", "--run", str(path)],
        *["--set", "training.learning_rate=0.025"],
    ]


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield before
    torch.set_num_threads(before)


def test_other_threads_are_warned_of_once_and_remembered(toy, trained_run, threads):
    _, path = trained_run
    assert Run.open(path).card["threads"] == threads
    torch.set_num_threads(threads + 1)
    with pytest.warns(RunWarning, match=rf"with {threads} threads? so far, and goes on with"):
        resume(path, settings=parse_settings(["training.updates=7"]), reporter=toy.Recorder())
    assert Run.open(path).changes[-1]["was"]["threads"] == threads
    assert Run.open(path).card["threads"] == threads + 1
    resume(path, settings=parse_settings(["training.updates=8"]), reporter=toy.Recorder())
