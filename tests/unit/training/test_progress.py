import contextlib
import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from regard.training import ConsoleReporter, Update, Validation
from regard.training import reporters as module

FIGURES = {"loss": 1.2345, "learning_rate": 0.1, "gradient_norm": 3.0}


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(module.time, "perf_counter", lambda: now[0])
    return now


def console(*, is_terminal=False):
    file = io.StringIO()
    return Console(file=file, force_terminal=is_terminal, width=120), file


def update_of(number, epoch, tokens, figures):
    return Update(number=number, epoch=epoch, tokens=tokens, figures=figures, training=None)


def test_lines_say_loss_speed_and_time_left(clock):
    screen, file = console()
    reporter, share = ConsoleReporter(screen), [0.0]
    reporter.on_start([], loss_unit="texts")
    with reporter.training(lambda: share[0]):
        for update in range(1, 26):
            clock[0] += 1
            share[0] = update / 100
            reporter.on_update(update_of(update, 0, 500, FIGURES))
    lines = file.getvalue().splitlines()
    assert lines == [
        "epoch 1  update 10  loss 1.234  500 texts/s  10%  1:30 left",
        "epoch 1  update 20  loss 1.234  500 texts/s  20%  1:20 left",
    ]


@pytest.mark.parametrize(
    ("processes", "expected"), [(2, "waiting 0% 10%  "), (9, "waiting 0% to 80%  ")]
)
def test_the_line_says_which_share_of_its_time_each_process_waits(clock, processes, expected):
    screen, file = console()
    reporter = ConsoleReporter(screen)
    waiting = {f"waiting_{rank}": rank / 10 for rank in range(processes)}
    with reporter.training(lambda: 0.5):
        for update in range(1, 30):
            clock[0] += 10
            reporter.on_update(update_of(update, 0, 5000, {**FIGURES, **waiting}))
    assert f"500 tokens/s  {expected}50%" in file.getvalue().splitlines()[-1]


def test_a_terminal_gets_a_bar(clock):
    screen, file = console(is_terminal=True)
    reporter = ConsoleReporter(screen)
    with reporter.training(lambda: 0.5):
        clock[0] += 1
        reporter.on_update(update_of(7, 2, 500, FIGURES))
    text = file.getvalue()
    assert "epoch 3" in text
    assert "50%" in text
    assert "update 7  loss 1.234  500 tokens/s" in text


def test_validation_shows_figures_and_samples():
    for quiet, expected in ((False, True), (True, False)):
        screen, file = console()
        reporter = ConsoleReporter(screen, quiet=quiet)
        figures, samples = {"loss": 2.0, "bleu": 31.25}, ["[a] → b"]
        reporter.on_validation(
            Validation(update=100, figures=figures, is_best=True, samples=samples, training=None)
        )
        text = file.getvalue()
        assert "validation at update 100: loss 2  bleu 31.25  (best so far)" in text
        assert ("  [a] → b" in text) == expected


def test_start_pause_and_end_are_printed():
    screen, file = console()
    reporter = ConsoleReporter(screen)
    reporter.on_start(["900 pairs to train on"])
    reporter.on_resume(40)
    reporter.on_interrupt(Path("run"), 55)
    summary = {"updates": 60, "weights": "last", "validation": {"loss": 1.5}}
    reporter.on_finish(Path("run"), summary, 3725.0)
    assert file.getvalue().splitlines() == [
        "900 pairs to train on",
        "going on from update 40",
        "stopped at update 55, saved in run; run the same command to go on",
        "done: 60 updates in 1:02:05; weights: last; validation: loss 1.5; in run",
    ]


@pytest.mark.parametrize("kind", ["a closed pipe", "a full disk", "a closed file", "nothing"])
def test_a_stream_that_takes_nothing_ends_nothing(monkeypatch, kind):
    if kind == "a closed pipe":
        read_end, write_end = os.pipe()
        os.close(read_end)
        stream = os.fdopen(write_end, "w")
    else:
        stream = {
            "a full disk": lambda: os.fdopen(os.open("/dev/full", os.O_WRONLY), "w"),
            "a closed file": closed_file,
            "nothing": lambda: None,
        }[kind]()
    monkeypatch.setattr(module.sys, "stderr", stream)
    reporter = ConsoleReporter()
    reporter.on_start(["900 pairs to train on"])
    with reporter.training(lambda: 0.5):
        reporter.on_update(update_of(1, 0, 500, FIGURES))
    reporter.on_interrupt(Path("run"), 55)
    with contextlib.suppress(OSError, AttributeError):
        stream.close()


def closed_file():
    file = io.StringIO()
    file.close()
    return file
