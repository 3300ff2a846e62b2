"""A tiny training through the run folder, struck at every dealing with the disk; prints a report.

``python scripted_run.py FOLDER`` runs as a process of its own, because it forks one process for
each blow and forking is safe only from a process with one thread.
"""

import errno
import json
import os
import shutil
import signal
import sys
import traceback
import warnings
from pathlib import Path

import torch

from regard.errors import RunError
from regard.runs import Run, average, is_run

STEPS, SAVE_EVERY, KEEP = 4, 2, 1
OPERATIONS = ("write", "fsync", "replace", "rename", "unlink", "rmdir", "mkdir", "truncate")
OPERATIONS += ("ftruncate",)


class Fault:
    """Counts the calls of the process to the disk, and strikes before, inside or after one."""

    def __init__(self, at=0, moment="before", strike=None):
        self.at = at  # from 1; 0 only counts
        self.moment = moment  # inside a write, half of it is done
        self.strike = strike or (lambda: os.kill(os.getpid(), signal.SIGKILL))
        self.calls: list[str] = []
        self._original = {name: getattr(os, name) for name in OPERATIONS}

    def __enter__(self):
        for name, original in self._original.items():
            setattr(os, name, self._watched(name, original))
        return self

    def __exit__(self, *_):
        for name, original in self._original.items():
            setattr(os, name, original)

    def _watched(self, name, original):
        def call(*args, **kwargs):
            self.calls.append(name)
            if len(self.calls) != self.at:
                return original(*args, **kwargs)
            if self.moment == "before":
                self.strike()
            if self.moment == "inside" and name == "write":
                descriptor, content = args
                original(descriptor, content[: len(content) // 2])
                self.strike()
            result = original(*args, **kwargs)
            self.strike()
            return result

        return call


def is_killed(work, at, moment):
    """Work in a child that dies at a call to the disk; whether it died."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with Fault(at, moment):
                work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), "the child has failed; its traceback is above"
    return status != 0


def train(path):
    """Begin or go on; whatever happened before, the folder ends with the same bytes."""
    recipe = {"task": "translation", "training": {"steps": STEPS}}
    with (
        Run.open_for_training(path)
        if is_run(path)
        else Run.create(path, recipe, "translation") as run
    ):
        if not run.has_tokenizer:
            with run.new_tokenizer_folder() as folder:
                (folder / "words.txt").write_text("爱\nlove\n")
        model, optimizer, generator, start = _restore(run.resume())
        for step in range(start + 1, STEPS + 1):
            loss = _update(model, optimizer, generator)
            run.append_metrics({"step": step, "loss": loss})
            if step % SAVE_EVERY == 0:
                _save(run, step, model, optimizer, generator)
        _save(run, STEPS, model, optimizer, generator, note="last")  # takes the place of another
        if not run.is_finished:
            run.finish(average(run.newest_checkpoints(KEEP)), {"steps": STEPS})


def _restore(checkpoint):
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    generator = torch.Generator().manual_seed(1)
    if checkpoint is None:
        return model, optimizer, generator, 0
    state = checkpoint.load_trainer()
    model.load_state_dict(checkpoint.load_model())
    optimizer.load_state_dict(state["optimizer"])
    generator.set_state(state["generator"])
    return model, optimizer, generator, checkpoint.step


def _update(model, optimizer, generator):
    loss = model(torch.randn(5, 3, generator=generator)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return float(loss.detach())


def _save(run, step, model, optimizer, generator, note=""):
    state = {"optimizer": optimizer.state_dict(), "generator": generator.get_state(), "note": note}
    run.save_checkpoint(step, model.state_dict(), state)
    run.prune(keep_last=KEEP)


def contents(path):
    files = [file for file in sorted(path.rglob("*")) if file.is_file() and file.name != "lock"]
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


class Report:
    def __init__(self, whole):
        self.whole = contents(whole)
        self.kills = 0
        self.failures: list[str] = []

    def kill(self, path, at, moment):
        """Train in a process of its own that is killed; False if it ended before that."""
        died = is_killed(lambda: train(path), at, moment)
        self.kills += died
        return died

    def expect_recovery(self, path, what):
        """The folder can be read as it is, and resuming completes it."""
        try:
            if is_run(path):
                read(path)
            train(path)
            if contents(path) != self.whole:
                self.failures.append(f"{what}: other bytes")
        except Exception as error:
            self.failures.append(f"{what}: {type(error).__name__}: {error}")
        shutil.rmtree(path)


def read(path):
    run = Run.open(path)
    run.metrics()
    checkpoint = run.newest_checkpoint()
    if checkpoint is not None:
        checkpoint.load_model()
        checkpoint.load_trainer()
    if run.is_finished:
        run.load_model()


def kill_at_every_call(report, path, calls):
    for at, name in enumerate(calls, start=1):
        for moment in ("before", "inside") if name == "write" else ("before",):
            if not report.kill(path, at, moment):
                report.failures.append(f"{moment} {name} {at}: was not killed")
            report.expect_recovery(path, f"kill {moment} {name} {at}")


def fill_the_disk_at_every_call(report, path, calls):
    def refuse():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for at, name in enumerate(calls, start=1):
        try:
            with Fault(at, "before", refuse):
                train(path)
        except RunError as error:
            if "Free some space" not in str(error):
                report.failures.append(f"full disk at {name} {at}: {error}")
        except OSError:
            report.failures.append(f"full disk at {name} {at}: not explained")
        report.expect_recovery(path, f"full disk at {name} {at}")


def main(home):
    torch.set_num_threads(1)
    warnings.simplefilter("error")
    train(home / "warm")  # torch writes files of its own the first time
    with Fault() as fault:
        train(home / "whole")
    report = Report(home / "whole")
    kill_at_every_call(report, home / "run", fault.calls)
    fill_the_disk_at_every_call(report, home / "run", fault.calls)
    results = {"calls": fault.calls, "kills": report.kills, "failures": report.failures}
    sys.stdout.write(json.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
