"""Callbacks get every event, change no result, may stop a training, and may fail."""

import pytest
import torch

import regard
from regard.runs import Run, RunWarning
from regard.training import Callback
from regard.training.session import fit as train


class Watcher(Callback):
    """Records events, and may act on them."""

    def __init__(self, on_update=None, on_validation=None):
        self.updates, self.validations = [], []
        self._update, self._validation = on_update, on_validation

    def on_update(self, update):
        self.updates.append(update)
        if self._update is not None:
            self._update(update)

    def on_validation(self, validation):
        self.validations.append(validation)
        if self._validation is not None:
            self._validation(validation)


@pytest.fixture
def fit(small_recipe, toy, tmp_path):
    def fit(name, *callbacks):
        return train(small_recipe, tmp_path / name, reporter=toy.Recorder(), callbacks=callbacks)

    return fit


def test_every_update_and_validation_is_reported(fit, tmp_path):
    watcher = Watcher()
    fit("run", watcher)
    assert [update.number for update in watcher.updates] == [1, 2, 3, 4, 5, 6]
    assert {*watcher.updates[0].figures} == {"loss", "learning_rate", "gradient_norm"}
    records = Run.open(tmp_path / "run").metrics()
    losses = [each["loss"] for each in records if each["split"] == "train"]
    assert [update.figures["loss"] for update in watcher.updates] == losses
    assert [each.update for each in watcher.validations] == [3, 6]
    assert watcher.validations[0].is_best
    assert watcher.validations[0].samples[0].startswith("a e → ")
    assert watcher.updates[0].training.path == tmp_path / "run"


def test_it_leaves_no_mark_whatever_it_does(fit, toy, tmp_path):
    def meddle(event):
        torch.rand(5)
        event.training.predictor.translate(["a e"])
        event.figures["loss"] = 0.0

    fit("plain")
    fit("watched", Watcher(meddle, meddle), Watcher())
    assert toy.contents(tmp_path / "watched") == toy.contents(tmp_path / "plain")


def test_it_stops_a_training_which_is_done_then(fit, tmp_path):
    def stop(update):
        if update.number == 4:
            update.training.stop()

    watcher = Watcher(stop)
    trained = fit("run", watcher)
    assert trained.summary["updates"] == 4
    assert [each.update for each in watcher.validations] == [3, 4]
    run = Run.open(tmp_path / "run")
    assert run.is_finished
    assert trained.predictor.translate(["a e"])


def test_a_validation_may_stop_it_too(fit):
    watcher = Watcher(on_validation=lambda validation: validation.training.stop())
    assert fit("run", watcher).summary["updates"] == 3
    assert [each.update for each in watcher.validations] == [3]


@pytest.mark.parametrize("error", [ZeroDivisionError("mine"), OSError(28, "mine")])
@pytest.mark.parametrize("where", ["on_update", "on_validation"])
def test_an_error_in_it_leaves_a_run_that_resumes(where, error, fit, toy, tmp_path):
    def fail(event):
        if getattr(event, "number", 3) == 3:
            raise error

    with pytest.raises(type(error), match="mine"):
        fit("run", Watcher(**{where: fail}))
    assert Run.open(tmp_path / "run").newest_checkpoint().step == 3
    with pytest.warns(RunWarning, match="has not finished training"):
        assert regard.load(tmp_path / "run").predict("a e")
    fit("run")
    fit("plain")
    assert toy.contents(tmp_path / "run") == toy.contents(tmp_path / "plain")
