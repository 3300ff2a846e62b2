"""Training by one process and several: the same bytes and curves, whatever is stopped or killed."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# The fifty and the twenty of the promise take minutes: REGARD_KILLS=50, REGARD_RANK_KILLS=20.
KILLS = int(os.environ.get("REGARD_KILLS", "5"))
RANK_KILLS = int(os.environ.get("REGARD_RANK_KILLS", "2"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="trains in forked processes"),
]


@pytest.fixture
def folder(tmp_path):
    """A kill loses nothing that the system has taken, so memory will do for a disk."""
    with tempfile.TemporaryDirectory(
        dir="/dev/shm" if Path("/dev/shm").is_dir() else tmp_path
    ) as f:
        yield f


def came_of(folder, *arguments, script="processes.py"):
    done = subprocess.run(
        [sys.executable, HERE / script, folder, *map(str, arguments)],
        capture_output=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def test_training_killed_at_every_call_to_the_disk_ends_with_the_same_bytes(folder):
    found = came_of(folder, script="scripted_run.py")
    assert found["failures"] == []
    assert found["kills"] >= len(found["calls"])
    assert {"write", "fsync", "replace", "rename"} <= set(found["calls"])


@pytest.mark.timeout(60 + 30 * KILLS)
def test_a_training_killed_at_random_moments_ends_with_the_same_bytes(folder):
    found = came_of(folder, "struck", KILLS)
    assert found["failures"] == []
    assert found["kills"] >= KILLS


def test_losses_are_the_same_however_many_processes_train(folder):
    for task, found in came_of(folder, "curves").items():
        alone, *others = found["losses"].values()
        assert all(end["codes"] == [0] * len(end["codes"]) for end in found["ends"].values()), found
        assert len(alone) == 22, task  # of each update to 20, and two validations
        for other in others:
            assert other == pytest.approx(alone, abs=1e-5, rel=0), task
        assert alone[0] > alone[-1]


def test_a_training_of_four_goes_on_by_one_two_and_four(folder):
    found = came_of(folder, "resumed")
    assert [end["codes"] for end in found["ends"]] == [
        *([0] * 4, [3] * 4),  # whole; and stopped
        *([0], [0] * 2, [0] * 4),
    ]
    assert found["stopped"] == 12  # told after 11, agreed on in the update after
    assert found["same"] == {"1": False, "2": False, "4": True}
    for other in found["curves"].values():
        assert len(other) == len(found["curve"])
        assert other == pytest.approx(found["curve"], rel=0.05)


def test_parts_of_a_model_learn_as_the_whole_does_and_leave_its_files(folder):
    found = came_of(folder, "sharded")
    assert [set(end["codes"]) for end in found["ends"]] == [{0}, {0}, {3}, {0}, {0}], found
    curves = found["curves"]
    for one, other in (("one", "two"), ("one", "by1")):
        assert curves[other] == pytest.approx(curves[one], abs=1e-5, rel=0), other
    assert found["same"] == {"1": False, "2": True}


@pytest.mark.timeout(60 + 30 * RANK_KILLS)
def test_a_training_whose_processes_are_killed_ends_with_the_same_bytes(folder):
    found = came_of(folder, "killed", RANK_KILLS)
    assert found["failures"] == []
    assert found["kills"] >= RANK_KILLS
    assert found["late"] < 60
    for codes, errors in found["errors"]:
        assert len(errors) <= 1, (codes, errors)


def test_what_cannot_be_trained_is_said_once_and_before(folder):
    found = came_of(folder, "refused")
    said = {
        "missing": "none.tsv must exist; it does not.",
        "few": "training.batch_tokens must give each of 4 processes an example; got",
        "batch": "model.norm_kind must be layer or rms where 2 processes train",
        "cuda": "training.device must be",
        "muon": "training.optimizer must be adamw or sgd where training.shard is true",
        "recipe": "training.seed must be the same in all processes; got None in process 0 and 2 in",
        "folder": "run must be a folder that all processes see; process 1 does not see what",
    }
    for name, case in found.items():
        assert set(case["codes"]) == {2}, (name, case)
        assert len(case["errors"]) == 1, (name, case)
        assert said[name] in case["errors"][0]
        assert not case["left"] or name == "folder"
