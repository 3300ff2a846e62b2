"""Training by several processes: the same curves, the same bytes, whatever is stopped or killed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# The twenty of the promise take minutes: REGARD_RANK_KILLS=20.
KILLS = int(os.environ.get("REGARD_RANK_KILLS", "2"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="trains in forked processes"),
]


def came_of(folder, scenario, *arguments):
    done = subprocess.run(
        [sys.executable, HERE / "processes.py", folder, scenario, *map(str, arguments)],
        capture_output=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def test_losses_are_the_same_however_many_processes_train(tmp_path):
    for task, found in came_of(tmp_path, "curves").items():
        alone, *others = found["losses"].values()
        assert all(end["codes"] == [0] * len(end["codes"]) for end in found["ends"].values()), found
        assert len(alone) == 22, task  # of each update to 20, and two validations
        for other in others:
            assert other == pytest.approx(alone, abs=1e-5, rel=0), task
        assert alone[0] > alone[-1]


def test_a_training_of_four_goes_on_by_one_two_and_four(tmp_path):
    found = came_of(tmp_path, "resumed")
    assert [end["codes"] for end in found["ends"]] == [
        *([0] * 4, [3] * 4),  # whole; and stopped
        *([0], [0] * 2, [0] * 4),
    ]
    assert found["stopped"] == 12  # told after 11, agreed on in the update after
    assert found["same"] == {"1": False, "2": False, "4": True}
    for other in found["curves"].values():
        assert len(other) == len(found["curve"])
        assert other == pytest.approx(found["curve"], rel=0.05)


def test_parts_of_a_model_learn_as_the_whole_does_and_leave_its_files(tmp_path):
    found = came_of(tmp_path, "sharded")
    assert [set(end["codes"]) for end in found["ends"]] == [{0}, {0}, {3}, {0}, {0}], found
    curves = found["curves"]
    for one, other in (("one", "two"), ("one", "by1")):
        assert curves[other] == pytest.approx(curves[one], abs=1e-5, rel=0), other
    assert found["same"] == {"1": False, "2": True}


@pytest.mark.timeout(60 + 30 * KILLS)
def test_a_training_whose_processes_are_killed_ends_with_the_same_bytes(tmp_path):
    found = came_of(tmp_path, "killed", KILLS)
    assert found["failures"] == []
    assert found["kills"] >= KILLS
    assert found["late"] < 60
    for codes, errors in found["errors"]:
        assert len(errors) <= 1, (codes, errors)


def test_what_cannot_be_trained_is_said_once_and_before(tmp_path):
    found = came_of(tmp_path, "refused")
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
