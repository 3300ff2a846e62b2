"""A training that stops anywhere and goes on ends with the bytes of one that never stopped."""

import os
import signal

import pytest

from regard.errors import Interrupted
from regard.inference import Run

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
    "two optimizers": {"optimizer": "muon"},
    "momentum": {"optimizer": "sgd"},
    "half precision": {"precision": "bfloat16"},
}


class PowerCut(Exception):  # noqa: N818
    """Not one of ours."""


def at(update, act):
    """An act for after one update."""
    return lambda made: act() if made == update else None


def cut():
    raise PowerCut


@pytest.mark.parametrize("option", sorted(OPTIONS))
def test_stopped_by_an_error(toy, tmp_path, option):
    settings = OPTIONS[option]
    _, summary = toy.fit(tmp_path / "whole", **settings)
    for update in {1, 6, 9} & set(range(summary["updates"])):
        path = tmp_path / str(update)
        with pytest.raises(PowerCut):
            toy.fit(path, reporter=toy.Recorder(at(update, cut)), **settings)
        recorder = toy.Recorder()
        toy.fit(path, reporter=recorder, **settings)
        expected = [("resumed", update // 4 * 4)] if update >= 4 else []
        assert [e for e in recorder.events if e[0] == "resumed"] == expected
        assert toy.contents(path) == toy.contents(tmp_path / "whole")


def test_stopped_between_two_lines_of_figures(toy, tmp_path):
    settings = {"updates": 100, "validate_every": 30}
    toy.fit(tmp_path / "whole", **settings)
    with pytest.raises(PowerCut):
        toy.fit(tmp_path / "run", reporter=toy.Recorder(at(70, cut)), **settings)
    toy.fit(tmp_path / "run", **settings)
    assert toy.contents(tmp_path / "run") == toy.contents(tmp_path / "whole")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("option", sorted(OPTIONS))
def test_stopped_by_a_signal(toy, tmp_path, option, number):
    settings = OPTIONS[option]
    _, summary = toy.fit(tmp_path / "whole", **settings)
    # At 4 a validation is due, 9 and 11 lie among the checkpoints that are averaged.
    for update in {1, 4, 9, 11} & set(range(summary["updates"])):
        path = tmp_path / str(update)
        recorder = toy.Recorder(at(update, lambda: os.kill(os.getpid(), number)))
        with pytest.raises(Interrupted) as stopped:
            toy.fit(path, reporter=recorder, **settings)
        assert stopped.value.signal_number == number
        assert recorder.events[-1] == ("interrupted", update)
        assert Run.open(path).newest_checkpoint().step == update
        again = toy.Recorder()
        toy.fit(path, reporter=again, **settings)
        assert ("resumed", update) in again.events
        assert toy.contents(path) == toy.contents(tmp_path / "whole")


def test_stopped_at_every_update(toy, tmp_path):
    settings = {"ema": 0.9, "accumulate": 2, "patience": 3, "keep": 2}
    toy.fit(tmp_path / "whole", **settings)
    path = tmp_path / "run"
    for update in range(1, UPDATES):
        recorder = toy.Recorder(at(update, lambda: os.kill(os.getpid(), signal.SIGTERM)))
        with pytest.raises(Interrupted):
            toy.fit(path, reporter=recorder, **settings)
    toy.fit(path, **settings)
    assert toy.contents(path) == toy.contents(tmp_path / "whole")
    steps = [saved.step for saved in Run.open(path).checkpoints()]
    assert steps == [saved.step for saved in Run.open(tmp_path / "whole").checkpoints()]


def test_stopped_with_a_validation_still_to_come(toy, tmp_path):
    # The validation that is put off decides which weights are best.
    figures = [3.0, 1.0, 2.0, 2.0, 1.0, 2.0]
    toy.fit(tmp_path / "whole", task=toy.Task(figures=figures))
    recorder = toy.Recorder(at(8, lambda: os.kill(os.getpid(), signal.SIGTERM)))
    task = toy.Task(figures=figures)
    with pytest.raises(Interrupted):
        toy.fit(tmp_path / "run", task=task, reporter=recorder)
    again = toy.Recorder()
    toy.fit(tmp_path / "run", task=task, reporter=again)
    assert again.events[:2] == [("resumed", 8), ("validated", 8, True)]
    assert toy.contents(tmp_path / "run") == toy.contents(tmp_path / "whole")


def test_a_signal_during_the_last_update_does_not_keep_it_from_finishing(toy, tmp_path):
    recorder = toy.Recorder(at(UPDATES, lambda: os.kill(os.getpid(), signal.SIGTERM)))
    toy.fit(tmp_path / "run", reporter=recorder)
    assert Run.open(tmp_path / "run").is_finished


def test_a_finished_training_stays_as_it_is(toy, tmp_path):
    toy.fit(tmp_path / "run")
    before = toy.contents(tmp_path / "run")
    recorder = toy.Recorder()
    toy.fit(tmp_path / "run", reporter=recorder)
    assert toy.contents(tmp_path / "run") == before
    assert recorder.figures == []


def test_a_damaged_checkpoint_is_passed_over(toy, tmp_path):
    toy.fit(tmp_path / "whole")
    with pytest.raises(PowerCut):
        toy.fit(tmp_path / "run", reporter=toy.Recorder(at(10, cut)))
    newest = Run.open(tmp_path / "run").newest_checkpoint()
    file = newest.folder / "state.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    recorder = toy.Recorder()
    with pytest.warns(UserWarning, match="damaged"):
        toy.fit(tmp_path / "run", reporter=recorder)
    assert ("resumed", 4) in recorder.events
    assert toy.contents(tmp_path / "run") == toy.contents(tmp_path / "whole")
