"""Training by one process and several: the same bytes and curves, whatever is stopped or killed."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# The twenty of the promise take minutes: REGARD_RANK_KILLS=20.
RANK_KILLS = int(os.environ.get("REGARD_RANK_KILLS", "2"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="trains in forked processes"),
]


ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}


@pytest.fixture(scope="module")
def folder():
    """A kill loses nothing that the system has taken, so memory will do for a disk."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as f:
        yield Path(f)


@pytest.fixture(scope="module")
def came_of(folder):
    """Runs a scenario in the one process of the module from which all others are forked."""
    command = [sys.executable, HERE / "processes.py", folder]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": ENVIRONMENT}
    with (folder / "errors").open("w") as errors:
        process = subprocess.Popen(command, stderr=errors, **pipes)

    def run(*words):
        print(*words, file=process.stdin, flush=True)
        line = process.stdout.readline()
        assert line, (folder / "errors").read_text()
        return json.loads(line)

    yield run
    process.communicate()


def test_training_killed_at_every_call_to_the_disk_ends_with_the_same_bytes(folder):
    command = [sys.executable, HERE / "scripted_run.py", folder]
    done = subprocess.run(command, capture_output=True, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr.decode()
    results = json.loads(done.stdout)
    assert results["failures"] == []
    assert results["kills"] >= len(results["calls"])
    assert {"write", "fsync", "replace", "rename"} <= set(results["calls"])


def test_losses_are_the_same_however_many_processes_train(came_of):
    for task, results in came_of("curves").items():
        by_one, *by_several = results["losses"].values()
        assert all(end["codes"] == [0] * len(end["codes"]) for end in results["ends"].values()), (
            results
        )
        assert len(by_one) == 22, task  # of each update to 20, and two validations
        for losses in by_several:
            assert losses == pytest.approx(by_one, abs=1e-5, rel=0), task
        assert by_one[0] > by_one[-1]


def test_a_training_of_four_resumes_by_one_two_and_four(came_of):
    results = came_of("resumed")
    assert [end["codes"] for end in results["ends"]] == [
        *([0] * 4, [3] * 4),  # whole; and stopped
        *([0], [0] * 2, [0] * 4),
    ]
    assert results["stopped"] == 12  # told after 11, agreed on in the update after
    assert results["same"] == {"1": False, "2": False, "4": True}
    for other in results["curves"].values():
        assert len(other) == len(results["curve"])
        assert other == pytest.approx(results["curve"], rel=0.05)


def test_parts_of_a_model_learn_as_the_whole_does_and_leave_its_files(came_of):
    results = came_of("sharded")
    assert [set(end["codes"]) for end in results["ends"]] == [{0}, {0}, {3}, {0}, {0}], results
    curves = results["curves"]
    for one, other in (("one", "two"), ("one", "by1")):
        assert curves[other] == pytest.approx(curves[one], abs=1e-5, rel=0), other
    assert results["same"] == {"1": False, "2": True}


@pytest.mark.timeout(60 + 30 * RANK_KILLS)
def test_a_training_whose_processes_are_killed_ends_with_the_same_bytes(came_of):
    results = came_of("killed", RANK_KILLS)
    assert results["failures"] == []
    assert results["kills"] >= RANK_KILLS
    assert results["late"] < 60
    for codes, errors in results["errors"]:
        assert len(errors) <= 1, (codes, errors)


def test_what_cannot_be_trained_is_reported_once_and_before(came_of):
    results = came_of("refused")
    messages = {
        "missing": "none.tsv must exist; it does not.",
        "few": "training.batch_tokens must give each of 4 processes an example; got",
        "batch": "model.norm_kind must be layer or rms where 2 processes train",
        "cuda": "training.device must be",
        "muon": "training.optimizer must be adamw or sgd where training.shard is true",
        "recipe": "training.seed must be the same in all processes; got None in process 0 and 2 in",
        "folder": "run must be a folder that all processes see; process 1 does not see what",
    }
    for name, case in results.items():
        assert set(case["codes"]) == {2}, (name, case)
        assert len(case["errors"]) == 1, (name, case)
        assert messages[name] in case["errors"][0]
        assert not case["left"] or name == "folder"
