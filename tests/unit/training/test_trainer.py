import json
from dataclasses import fields

import pytest
import torch
from torch.nn import functional as F

from regard.errors import TrainingError
from regard.runs import Run
from regard.training import TrainingConfig


def weights_after(toy, path, **settings):
    _, summary = toy.fit(path, **settings)
    return Run.open(path).load_model(), summary


def fresh(toy, **options):
    torch.manual_seed(4)
    return toy.Model(**options)


@pytest.fixture
def gradients(monkeypatch):
    """The gradients that the optimizer sees at each of its steps."""
    gradients, step = [], torch.optim.AdamW.step

    def recorded_step(self, closure=None):
        gradients.append([p.grad.clone() for p in self.param_groups[0]["params"]])
        return step(self, closure)

    monkeypatch.setattr(torch.optim.AdamW, "step", recorded_step)
    return gradients


def test_gradient_is_the_mean_over_real_tokens(toy, tmp_path, gradients):
    model, task = toy.Model(dropout=0.0), toy.Task()
    ids = torch.cat([batch for batch, _ in list(task.batches(0, 0))[:3]])
    loss = F.cross_entropy(model.project(model(ids)), (3 * ids + 1) % toy.V, label_smoothing=0.1)
    expected = torch.autograd.grad(loss, list(model.parameters()))
    toy.fit(tmp_path / "run", model=model, task=task, updates=1, accumulate=3)
    torch.testing.assert_close(gradients[0], list(expected))


def test_an_epoch_ends_with_an_update_of_what_is_left(toy, tmp_path):
    recorder = toy.Recorder()
    task = toy.Task(batch_size=3)
    toy.fit(tmp_path / "run", task=task, accumulate=2, updates=6, reporter=recorder)
    # 13 samples in batches of 3, 3, 3, 3, 1: updates of two batches, two, one.
    tokens = [figures["tokens"] for figures in recorder.figures]
    sizes = [sum(map(len, task.texts))] * 2
    assert [sum(tokens[:3]), sum(tokens[3:])] == sizes
    assert [figures["epoch"] for figures in recorder.figures] == [0, 0, 0, 1, 1, 1]
    assert task.begun == [0, 1]


def test_gradients_are_clipped_by_their_whole_norm(toy, tmp_path, gradients):
    def norms(name, **settings):
        """Before clipping, as reported; and as the optimizer sees them."""
        recorder = toy.Recorder()
        gradients.clear()
        toy.fit(tmp_path / name, model=fresh(toy), reporter=recorder, **settings)
        clipped = [torch.cat([g.flatten() for g in each]).norm().item() for each in gradients]
        return [figures["gradient_norm"] for figures in recorder.figures], clipped

    reported, clipped = norms("free")
    assert clipped == pytest.approx(reported, rel=1e-5)
    limit = sorted(reported)[6]
    reported, clipped = norms("clipped", clip_norm=limit)
    assert min(reported) < limit < max(reported)
    assert clipped == pytest.approx([min(norm, limit) for norm in reported], rel=1e-5)


def test_final_weights_may_be_the_average_of_the_last_checkpoints(toy, tmp_path):
    # Four validations, then the candidates: last, best (the first), average.
    task = toy.Task(figures=[1.0, 2.0, 3.0, 4.0, 4.0, 1.0, 0.5])
    final, summary = weights_after(toy, tmp_path / "run", task=task, updates=16, keep=3)
    saved = Run.open(tmp_path / "run").checkpoints()
    assert [one.step for one in saved] == [4, 8, 12, 16]  # the best is kept beside the last three
    assert summary["weights"] == "average of 3"
    for name, tensor in final.items():
        stack = torch.stack([one.load_model()[name].double() for one in saved[1:]])
        torch.testing.assert_close(tensor, stack.mean(0).float(), atol=0, rtol=0)


@pytest.mark.parametrize(("chosen", "step"), [("last", 16), ("best", 4)])
def test_final_weights_are_the_best_by_validation(toy, tmp_path, chosen, step):
    final = {"last": [0.5, 1.0, 0.6], "best": [4.0, 1.0, 2.0]}[chosen]
    task = toy.Task(figures=[1.0, 2.0, 3.0, 4.0, *final])
    weights, summary = weights_after(toy, tmp_path / "run", task=task, updates=16, keep=3)
    assert summary["weights"] == chosen
    saved = {one.step: one for one in Run.open(tmp_path / "run").checkpoints()}
    for name, tensor in saved[step].load_model().items():
        assert torch.equal(weights[name], tensor)


def test_training_stops_when_validation_no_longer_improves(toy, tmp_path):
    task = toy.Task(figures=[3.0, 2.0, 2.5, 2.1, 2.1, 2.0, 2.3])
    trainer, summary = toy.fit(tmp_path / "run", task=task, updates=100, patience=2)
    assert summary["updates"] == 16
    assert summary["weights"] == "best"
    assert trainer.position.best_update == 8


def validated(recorder):
    return [event[1] for event in recorder.events if event[0] == "validated"]


@pytest.mark.parametrize(
    ("settings", "updates"),
    [
        # An epoch has 7 updates. One just before the end of a fifth puts that off.
        ({"updates": 12}, [3, 5, 7, 9, 11, 12]),
        ({"updates": 70}, [7, 14, 21, 28, 35, 42, 49, 56, 63, 70]),
        ({"updates": None, "epochs": 3}, [4, 7, 9, 13, 14, 17, 21]),
        ({"updates": 5}, [1, 2, 3, 4, 5]),
        ({"updates": 3}, [1, 2, 3]),
    ],
)
def test_without_an_interval_it_validates_after_epochs_and_five_times(
    toy, tmp_path, settings, updates
):
    recorder = toy.Recorder()
    toy.fit(tmp_path / "run", reporter=recorder, validate_every="auto", **settings)
    assert validated(recorder) == updates


def test_epochs_of_less_than_a_hundredth_of_training_share_a_validation(toy, tmp_path):
    recorder = toy.Recorder()
    task = toy.Task(batch_size=13)  # an update an epoch
    toy.fit(tmp_path / "run", task=task, reporter=recorder, validate_every="auto", updates=250)
    assert validated(recorder)[:4] == [3, 5, 8, 10]
    assert len(validated(recorder)) == 100


def test_of_validations_after_every_epoch_the_best_are_saved_and_some_others(toy, tmp_path):
    # Of 40 epochs the third is best; every second one ends a twentieth of training.
    figures = [{"loss": abs(3 - each) + 1.0, "bleu": 0.0} for each in range(1, 41)]
    candidates = [{"loss": 9.0, "bleu": 0.0}] * 3
    task = toy.Task(batch_size=13, figures=figures + candidates)
    settings = {"validate_every": "auto", "updates": 40, "keep": 100}
    toy.fit(tmp_path / "run", task=task, **settings)
    steps = [saved.step for saved in Run.open(tmp_path / "run").checkpoints()]
    assert steps == [1, 2, 3, *range(4, 41, 2)]


def test_among_equals_by_the_metric_the_loss_decides(toy, tmp_path):
    bleu = [(3.0, 7.0), (2.0, 7.0), (2.5, 7.0)]
    candidates = [(3.0, 7.0), (2.0, 7.0), (4.0, 1.0)]  # last, best, average
    figures = [{"loss": loss, "bleu": each} for loss, each in bleu + candidates]
    trainer, summary = toy.fit(tmp_path / "run", task=toy.Task(figures=figures), metric="bleu")
    assert trainer.position.best_update == 8
    assert summary["weights"] == "best"


def test_a_validation_that_is_not_a_number_is_never_the_best(toy, tmp_path):
    nan = float("nan")
    task = toy.Task(figures=[nan, 2.0, nan, 3.0, 2.0, nan])
    recorder = toy.Recorder()
    trainer, _ = toy.fit(tmp_path / "run", task=task, reporter=recorder)
    assert [e[2] for e in recorder.events if e[0] == "validated"] == [False, True, False]
    assert trainer.position.best_update == 8


@pytest.mark.parametrize("decay", [0.5, 0.99])
def test_moving_average_is_its_formula(toy, tmp_path, decay):
    model = fresh(toy)
    average = {name: p.detach().double() for name, p in model.named_parameters()}

    def follow(update):
        slow = min(decay, (1 + update) / (10 + update))
        for name, parameter in model.named_parameters():
            average[name] = slow * average[name] + (1 - slow) * parameter.detach().double()

    recorder = toy.Recorder(follow)
    trainer, summary = toy.fit(tmp_path / "run", model=model, ema=decay, reporter=recorder)
    for name, expected in average.items():
        torch.testing.assert_close(trainer.ema.weights[name].double(), expected, rtol=1e-5, atol=0)
    assert "moving average" in summary["candidates"]


def test_the_moving_average_of_the_best_validation_may_be_chosen(toy, tmp_path):
    # Validations, of which the second is best; then last, best, average, and both moving averages.
    task = toy.Task(figures=[3.0, 1.0, 2.0, 9.0, 9.0, 9.0, 9.0, 0.5])
    weights, summary = weights_after(toy, tmp_path / "run", task=task, ema=0.9)
    assert summary["weights"] == "best moving average"
    best = Run.open(tmp_path / "run").checkpoints()[-2]
    torch.testing.assert_close(weights["last.weight"], best.load_trainer()["ema"]["last.weight"])


def test_a_moving_average_keeps_tied_weights_tied(toy, tmp_path):
    # Validations, then last and average are bad, the moving average good.
    task = toy.Task(figures=[3.0, 2.0, 1.0, 9.0, 9.0, 0.5])
    model = toy.Model(is_tied=True)
    weights, summary = weights_after(toy, tmp_path / "run", model=model, task=task, ema=0.9)
    assert summary["weights"] == "moving average"
    assert weights["last.weight"] is weights["table.weight"]


def test_a_loss_that_is_not_finite_stops_at_its_update_and_keeps_the_checkpoint(toy, tmp_path):
    path = tmp_path / "run"
    with pytest.raises(
        TrainingError,
        match=r"must be finite; got loss nan.* at update 7. The checkpoint of update 4 is kept. "
        r"Lower training.learning_rate, or set training.clip_norm = 1",
    ):
        toy.fit(path, task=toy.Task(poisoned=7))
    run = Run.open(path)
    assert not run.is_finished
    assert run.newest_checkpoint().step == 4
    assert all(t.isfinite().all() for t in run.newest_checkpoint().load_model().values())


def test_a_loss_that_is_not_finite_before_any_checkpoint_names_none(toy, tmp_path):
    with pytest.raises(TrainingError, match=r"at update 2. Lower training.learning_rate"):
        toy.fit(tmp_path / "run", task=toy.Task(poisoned=2))


@pytest.mark.parametrize(
    ("limits", "updates", "epochs"),
    [
        ({"updates": 5, "epochs": 9}, 5, 0),
        ({"updates": None, "epochs": 2}, 14, 2),
        ({"updates": 50, "epochs": 2}, 14, 2),
        ({"updates": None, "minutes": 1e-9}, 1, 0),
    ],
)
def test_training_ends_at_the_first_limit(toy, tmp_path, limits, updates, epochs):
    trainer, summary = toy.fit(tmp_path / "run", **limits)
    assert (summary["updates"], summary["epochs"]) == (updates, epochs)
    assert trainer.run.newest_checkpoints(1)[0].step == updates


def test_figures_are_written_line_by_line(toy, tmp_path):
    toy.fit(tmp_path / "run", updates=100, validate_every=40)
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert [(r["split"], r["update"]) for r in records] == [
        *(("train", update) for update in range(1, 41)),
        ("valid", 40),
        *(("train", update) for update in range(41, 51)),
        ("valid", 80),
        ("train", 100),
        ("valid", 100),
    ]
    assert {"loss", "learning_rate", "gradient_norm"} < set(records[0])


# For every setting, what differs from `fit`'s own in two trainings that must not end the same.
OPTIONS = {
    "updates": ({}, {"updates": 11}),
    "epochs": ({}, {"epochs": 1}),
    "least_updates": ({"epochs": 1}, {"epochs": 1, "least_updates": 9}),
    "minutes": ({}, {"minutes": 1e-9}),
    "accumulate": ({}, {"accumulate": 2}),
    "learning_rate": ({}, {"learning_rate": None}),
    "warmup": ({}, {"warmup": 6}),
    "warmup_share": ({"warmup": 9}, {"warmup": 9, "warmup_share": None}),
    "schedule": ({}, {"schedule": "constant"}),
    "optimizer": ({}, {"optimizer": "muon"}),
    "momentum": ({"optimizer": "sgd"}, {"optimizer": "sgd", "momentum": 0.5}),
    "newton_schulz": ({"optimizer": "muon"}, {"optimizer": "muon", "newton_schulz": 5}),
    "betas": ({}, {"betas": (0.8, 0.98)}),
    "eps": ({}, {"eps": 1e-2}),
    "weight_decay": ({}, {"weight_decay": 0.1}),
    "label_smoothing": ({}, {"label_smoothing": 0.3}),
    "clip_norm": ({"eps": 1e-2}, {"eps": 1e-2, "clip_norm": 0.1}),
    "validate_every": ({}, {"validate_every": 5}),
    "metric": ({}, {"metric": "bleu"}),
    "patience": ({}, {"patience": 1}),
    "keep": ({}, {"keep": 2}),
    "ema": ({}, {"ema": 0.5}),
    "precision": ({}, {"precision": "bfloat16"}),
    "seed": ({}, {"seed": 2}),
}
# Read elsewhere: tests in test_translation.py and test_pretrained.py.
OF_THE_TASK = {
    *("batch_tokens", "encoder_rate", "encoding", "pretrained", "r_drop", "valid_share"),
    "validation_pairs",
}
# Not what is learned but where and how: tests in test_on_a_device.py, test_compiling.py,
# test_processes.py and corpora/test_training.py.
OF_THE_MACHINE = {"cache", "compile", "corpus", "device", "shard"}
# What is to go on from, not what is learned: tests in test_resuming.py.
OF_STOPPING = {"save_every_minutes"}


def test_every_setting_is_tried():
    assert OPTIONS.keys() | OF_THE_TASK | OF_THE_MACHINE | OF_STOPPING == {
        field.name for field in fields(TrainingConfig)
    }


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_setting_changes_the_result(toy, tmp_path, name):
    # By loss the first validation is best, by BLEU the last.
    figures = [{"loss": n, "bleu": n} for n in (1.0, 2.0, 3.0, 9.0, 1.0, 5.0)] * 2
    ends = []
    for number, settings in enumerate(OPTIONS[name]):
        recorder = toy.Recorder()
        task = toy.Task(figures=figures if name in ("metric", "patience") else None)
        _, summary = toy.fit(tmp_path / str(number), task=task, reporter=recorder, **settings)
        ends.append((recorder.figures, recorder.events, summary["candidates"]))
    assert ends[0] != ends[1]
