"""A training that stops anywhere and resumes ends with the bytes of one that never stopped."""

import os
import signal
from itertools import cycle

import pytest
import torch

from regard.errors import Interrupted
from regard.runs import Run

UPDATES = 12
# Whatever carries something from one update to the next.
OPTIONS = {
    "dropout": {},
    "moving average": {"ema": 0.9},
    "accumulation": {"accumulate": 2},
    "linear schedule": {"schedule": "linear"},
    "epochs": {"updates": None, "epochs": 2, "schedule": "linear"},
    "average of the last": {"keep": 2},
    "early stopping": {"patience": 1},
    "a validation an epoch": {"validate_every": "auto", "keep": 2},
    "two optimizers": {"optimizer": "muon"},
    "momentum": {"optimizer": "sgd"},
    "half precision": {"precision": "bfloat16"},
}


def test_stopped_between_two_lines_of_figures(toy, tmp_path):
    settings = {"updates": 100, "validate_every": 30}
    toy.fit(tmp_path / "whole", **settings)
    with pytest.raises(toy.PowerCut):
        toy.fit(tmp_path / "run", reporter=toy.cutting(70), **settings)
    toy.fit(tmp_path / "run", **settings)
    assert toy.contents(tmp_path / "run") == toy.contents(tmp_path / "whole")


def on_call(number, function, error):
    """The function, which raises at one of its calls."""
    calls = iter(range(1, 1000))

    def wrapped(*args, **kwargs):
        if next(calls) == number:
            raise error
        return function(*args, **kwargs)

    return wrapped


@pytest.mark.parametrize(
    ("method", "call", "saved", "error", "ema"),
    [
        ("backward", 7, 6, MemoryError(), None),
        ("validate", 2, 8, ArithmeticError(), 0.9),
        ("samples", 2, 8, SystemExit(1), None),
        ("begin_epoch", 2, 7, ArithmeticError(), 0.9),
    ],
)
def test_an_error_of_the_task_saves_first(toy, tmp_path, method, call, saved, error, ema):
    toy.fit(tmp_path / "whole", ema=ema)
    task = toy.Task()
    setattr(task, method, on_call(call, getattr(task, method), error))
    recorder = toy.Recorder()
    with pytest.raises(type(error)):
        toy.fit(tmp_path / "run", task=task, reporter=recorder, ema=ema)
    assert recorder.events[-1] == ("interrupted", saved)
    assert Run.open(tmp_path / "run").newest_checkpoint().step == saved
    toy.fit(tmp_path / "run", ema=ema)
    assert toy.contents(tmp_path / "run") == toy.contents(tmp_path / "whole")


def test_an_error_inside_an_update_keeps_the_checkpoint_before(toy, tmp_path, monkeypatch):
    toy.fit(tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(torch.optim.AdamW, "step", on_call(7, torch.optim.AdamW.step, toy.PowerCut()))
        with pytest.raises(toy.PowerCut):
            toy.fit(tmp_path / "run")
    assert Run.open(tmp_path / "run").newest_checkpoint().step == 4
    toy.fit(tmp_path / "run")
    assert toy.contents(tmp_path / "run") == toy.contents(tmp_path / "whole")


@pytest.mark.parametrize("option", ["average of the last", "early stopping", "epochs"])
def test_checkpoints_by_the_clock_change_nothing_in_the_end(toy, tmp_path, option):
    settings = OPTIONS[option]
    toy.fit(tmp_path / "whole", **settings)
    path, often = tmp_path / "run", {"save_every_minutes": 1e-9, **settings}
    with pytest.raises(toy.PowerCut):
        toy.fit(path, reporter=toy.cutting(6), **often)
    steps = [saved.step for saved in Run.open(path).checkpoints()]
    assert steps == [4, 6]  # each gives way to the next one
    toy.fit(path, **often)
    assert toy.contents(path) == toy.contents(tmp_path / "whole")
    steps = [saved.step for saved in Run.open(path).checkpoints()]
    assert steps == [saved.step for saved in Run.open(tmp_path / "whole").checkpoints()]


@pytest.mark.parametrize(("number", "call"), [(signal.SIGTERM, 2), (signal.SIGHUP, 3)])
def test_a_signal_does_not_wait_for_a_validation(toy, tmp_path, number, call):
    toy.fit(tmp_path / "whole", ema=0.9)
    task = toy.Task()
    validate, calls = task.validate, iter(range(1, 1000))

    def interrupted(model, **options):
        if next(calls) == call:
            os.kill(os.getpid(), number)
            pytest.fail("waited")
        return validate(model, **options)

    task.validate = interrupted
    with pytest.raises(Interrupted) as stopped:
        toy.fit(tmp_path / "run", task=task, ema=0.9)
    assert stopped.value.signal_number == number
    assert Run.open(tmp_path / "run").newest_checkpoint().step == 4 * call
    toy.fit(tmp_path / "run", ema=0.9)
    assert toy.contents(tmp_path / "run") == toy.contents(tmp_path / "whole")


def test_a_last_validation_that_is_put_off_is_made_up_for(toy, tmp_path):
    # By the clock training may end at any update; here at one that is no multiple.
    toy.fit(tmp_path / "whole", updates=10)
    task = toy.Task()
    task.validate = on_call(3, task.validate, toy.PowerCut())
    with pytest.raises(toy.PowerCut):
        toy.fit(tmp_path / "run", task=task, updates=10)
    toy.fit(tmp_path / "run", updates=10)
    assert toy.contents(tmp_path / "run") == toy.contents(tmp_path / "whole")


# Every option by one kind of stop, and each kind by several options.
STOPS = dict(zip(sorted(OPTIONS), cycle([signal.SIGTERM, None, signal.SIGINT]), strict=False))


@pytest.mark.parametrize(("option", "number"), STOPS.items())
def test_stopped_by_a_signal_or_an_error(toy, tmp_path, option, number):
    settings = OPTIONS[option]
    _, summary = toy.fit(tmp_path / "whole", **settings)
    # At 4 a validation is due, 9 and 11 lie among the checkpoints that are averaged.
    for update in {1, 4, 9, 11} & set(range(summary["updates"])):
        path = tmp_path / str(update)
        recorder = toy.stopping(update, number) if number else toy.cutting(update)
        with pytest.raises((Interrupted, toy.PowerCut)) as stopped:
            toy.fit(path, reporter=recorder, **settings)
        assert getattr(stopped.value, "signal_number", None) == number
        assert recorder.events[-1] == ("interrupted", update)
        assert Run.open(path).newest_checkpoint().step == update
        resumed = toy.Recorder()
        toy.fit(path, reporter=resumed, **settings)
        assert ("resumed", update) in resumed.events
        assert toy.contents(path) == toy.contents(tmp_path / "whole")


def test_stopped_with_a_validation_still_to_come(toy, tmp_path):
    # The validation that is put off decides which weights are best.
    figures = [3.0, 1.0, 2.0, 2.0, 1.0, 2.0]
    toy.fit(tmp_path / "whole", task=toy.Task(figures=figures))
    recorder = toy.stopping(8)
    task = toy.Task(figures=figures)
    with pytest.raises(Interrupted):
        toy.fit(tmp_path / "run", task=task, reporter=recorder)
    resumed = toy.Recorder()
    toy.fit(tmp_path / "run", task=task, reporter=resumed)
    assert resumed.events[:2] == [("resumed", 8), ("validated", 8, True)]
    assert toy.contents(tmp_path / "run") == toy.contents(tmp_path / "whole")


def test_a_signal_during_the_last_update_does_not_keep_it_from_finishing(toy, tmp_path):
    recorder = toy.stopping(UPDATES)
    toy.fit(tmp_path / "run", reporter=recorder)
    assert Run.open(tmp_path / "run").is_finished


def test_a_finished_training_stays_as_it_is(toy, tmp_path):
    toy.fit(tmp_path / "run")
    before = toy.contents(tmp_path / "run")
    recorder = toy.Recorder()
    toy.fit(tmp_path / "run", reporter=recorder)
    assert toy.contents(tmp_path / "run") == before
    assert recorder.figures == []
