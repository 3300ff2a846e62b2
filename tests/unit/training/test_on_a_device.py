"""Training elsewhere than on the CPU: the same run, wherever it starts and resumes."""

import pytest
import torch
from tests.pretended_device import KIND

from regard.errors import OutOfMemory
from regard.layers import residual
from regard.runs import Run
from regard.training import precision, trainer


@pytest.fixture
def fit(toy, tmp_path):
    """Trains a toy model in a folder, on a device."""

    def fitted(name, device, *, dropout=0.0, **settings):
        torch.manual_seed(1)
        model = toy.Model(dropout=dropout).to(device)
        return toy.fit(tmp_path / name, model=model, updates=9, validate_every=3, **settings)

    return fitted


@pytest.mark.parametrize("settings", [{}, {"ema": 0.5}, {"accumulate": 2}, {"optimizer": "muon"}])
def test_a_training_is_that_of_the_cpu(fit, toy, tmp_path, device, settings):
    _, on_cpu = fit("here", torch.device("cpu"), **settings)
    trainer, on_device = fit("there", device, **settings)
    assert trainer.device == device
    assert toy.losses(tmp_path / "there") == pytest.approx(toy.losses(tmp_path / "here"), rel=1e-5)
    assert on_device["weights"] == on_cpu["weights"]
    run = Run.open(tmp_path / "there")
    assert all(tensor.device.type == "cpu" for tensor in run.load_model().values())


@pytest.mark.parametrize("settings", [{}, {"ema": 0.5}, {"optimizer": "sgd"}])
def test_resumed_on_a_device_is_undisturbed_with_dropout_of_its_own(
    fit, toy, tmp_path, device, settings
):
    fit("whole", device, dropout=0.5, **settings)
    with pytest.raises(toy.PowerCut):
        fit("run", device, dropout=0.5, reporter=toy.cutting(4), **settings)
    fit("run", device, dropout=0.5, **settings)
    assert toy.contents(tmp_path / "run") == toy.contents(tmp_path / "whole")


def test_dropout_there_is_drawn_from_the_devices_numbers(fit, tmp_path, device, monkeypatch):
    monkeypatch.setattr(residual, "random_bytes", None)
    fit("run", device, dropout=0.5)


@pytest.mark.parametrize("is_begun_there", [True, False])
def test_a_run_that_began_on_one_device_resumes_on_another(
    fit, toy, tmp_path, device, is_begun_there
):
    fit("whole", torch.device("cpu"))
    devices = [device, torch.device("cpu")]
    first, second = devices if is_begun_there else reversed(devices)
    with pytest.raises(toy.PowerCut):
        fit("run", first, reporter=toy.cutting(4))
    _, summary = fit("run", second)
    assert summary["updates"] == 9
    assert toy.losses(tmp_path / "run") == pytest.approx(toy.losses(tmp_path / "whole"), rel=1e-5)


def test_a_checkpoint_of_a_cpu_says_nothing_of_devices(fit, tmp_path):
    fit("run", torch.device("cpu"))
    state = Run.open(tmp_path / "run").newest_checkpoint().load_trainer()
    assert state.keys() == {"position", "optimizer", "random", "ema"}


def test_a_checkpoint_of_a_device_has_its_random_numbers(fit, tmp_path, device):
    fit("run", device)
    state = Run.open(tmp_path / "run").newest_checkpoint().load_trainer()
    assert state["device"]["random"].keys() == {"cpu", KIND}


def test_where_memory_does_not_do_the_cure_is_a_command_and_what_was_learned_is_kept(
    fit, toy, tmp_path
):
    task = toy.Task()
    learn = task.backward

    def backward(*args, **settings):
        if task.calls == 5:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return learn(*args, **settings)

    task.backward = backward
    with pytest.raises(
        OutOfMemory,
        match=r"training.batch_tokens must fit into the memory of cpu, .*; got 4,096, which did "
        r"not after update 5. .*--set training.batch_tokens=2048 --set training.accumulate=2",
    ):
        fit("run", torch.device("cpu"), task=task)
    assert Run.open(tmp_path / "run").newest_checkpoint().step == 5


@pytest.fixture
def in_float16(monkeypatch):
    """Products as a GPU without bfloat16 does them, on the CPU."""
    monkeypatch.setattr(trainer, "compute_dtype", lambda *_: torch.float16)


def test_in_float16_updates_that_overflow_are_skipped_and_training_continues(
    fit, toy, tmp_path, in_float16, monkeypatch
):
    monkeypatch.setattr(precision, "_FIRST_SCALE", 2.0**20)
    trainer, _ = fit("run", torch.device("cpu"))
    assert 1 < trainer.loss_scale.factor < 2.0**20
    assert toy.losses(tmp_path / "run")[-1] < toy.losses(tmp_path / "run")[0]
    steps = trainer.optimizer.state_dict()["state"][0]["step"]
    assert steps < 9  # of which some were left out


def test_a_scaled_loss_has_the_gradient_of_the_loss(fit, toy, tmp_path, in_float16, monkeypatch):
    ends = []
    for scale in (1.0, 2.0**7):
        monkeypatch.setattr(precision, "_FIRST_SCALE", scale)
        fit(f"{scale}", torch.device("cpu"), task=None)
        ends.append(toy.losses(tmp_path / f"{scale}"))
    assert ends[1] == pytest.approx(ends[0], rel=1e-2)
