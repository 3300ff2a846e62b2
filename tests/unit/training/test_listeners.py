import pytest

from regard.runs import Run, RunWarning
from regard.training import Update
from regard.training.callbacks import Callbacks
from regard.training.reporters import TensorBoardReporter
from regard.training.session import fit as train

FIGURES = {"loss": 2.0, "learning_rate": 0.1, "gradient_norm": 3.0}
UPDATE = Update(number=1, epoch=0, tokens=5, figures=FIGURES, training=None)


def full_disk(update):
    raise OSError(28, "No space left on device")


def mistake(update):
    raise ZeroDivisionError("ours")


def test_a_reporter_that_cannot_write_is_dropped(toy, tmp_path):
    failing, working = toy.Recorder(full_disk), toy.Recorder()
    callbacks = Callbacks(failing, working)
    with pytest.warns(RunWarning, match="Recorder must be able to write; got: .*No space left"):
        toy.fit(tmp_path / "run", reporter=callbacks)
    assert len(failing.figures) == 1
    assert len(working.figures) == 12
    assert Run.open(tmp_path / "run").is_finished


def test_a_mistake_in_the_users_reporter_is_theirs_to_see(toy):
    with pytest.raises(ZeroDivisionError):
        Callbacks(toy.Recorder(mistake)).on_update(UPDATE)


def test_a_mistake_in_a_watcher_stops_nothing(toy):
    callbacks = Callbacks(toy.Recorder(), toy.Recorder(mistake))
    with pytest.warns(RunWarning, match="got: ours. Training goes on without it"):
        callbacks.on_update(UPDATE)


def curves(folder):
    event_accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator"
    )
    events = event_accumulator.EventAccumulator(str(folder))
    events.Reload()
    return {
        name: [(point.step, point.value) for point in events.Scalars(name)]
        for name in events.Tags()["scalars"]
    }


def test_tensorboard_shows_the_figures_and_resumes_them(toy, tmp_path):
    pytest.importorskip("tensorboard")
    for updates in (8, 12):
        watcher = TensorBoardReporter(tmp_path / "run")
        recorder = toy.Recorder()
        callbacks = Callbacks(recorder, watcher)
        toy.fit(tmp_path / "run", reporter=callbacks, updates=updates, validate_every=4)
    scalars = curves(tmp_path / "run" / "tensorboard")
    assert [step for step, _ in scalars["train/loss"]] == list(range(1, 13))
    assert [step for step, _ in scalars["valid/loss"]] == [4, 8, 12]
    rates = [figures["learning_rate"] for figures in recorder.figures]
    assert [value for _, value in scalars["train/learning_rate"]][8:] == pytest.approx(rates)


def test_a_training_writes_curves_where_tensorboard_is_installed(
    toy, tmp_path, monkeypatch, small_recipe
):
    pytest.importorskip("tensorboard")
    train(small_recipe, tmp_path / "with", reporter=toy.Recorder())
    assert "valid/loss" in curves(tmp_path / "with" / "tensorboard")
    monkeypatch.setattr("regard.training.session.has_tensorboard", lambda: False)
    train(small_recipe, tmp_path / "without", reporter=toy.Recorder())
    assert not (tmp_path / "without" / "tensorboard").exists()
