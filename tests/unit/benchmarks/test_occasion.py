"""Bad times to measure are refused."""

import pytest
from benchmarks import occasion


@pytest.fixture
def idle(monkeypatch):
    """Sets commit and load, without any waiting."""

    def be(commit="abc1234", load=0.2):
        monkeypatch.setattr(occasion, "TINY", None)
        monkeypatch.setattr(occasion, "_PATIENCE", -1)
        monkeypatch.setattr(occasion, "commit", lambda: commit)
        monkeypatch.setattr(occasion.os, "getloadavg", lambda: (load, load, load))

    return be


def test_an_idle_machine_is_measured_on(idle):
    idle()
    assert occasion.before_timing(5, is_dry=False)["load_at_start"] == 0.2


@pytest.mark.parametrize(
    ("rounds", "state", "problem"),
    [
        (4, {}, "rounds must be at least 5; got 4"),
        (5, {"load": 2.5}, r"the load must be at most 1.0; got 2.50"),
        (5, {"commit": "abc1234+"}, "must be that of a commit; got changes after abc1234"),
        (5, {"commit": None}, "must be that of a commit; got a folder that is no clone"),
    ],
)
def test_what_is_no_time_to_measure_is_refused_unless_nothing_is_written(
    idle, rounds, state, problem
):
    idle(**state)
    with pytest.raises(SystemExit, match=f"{problem}.*without writing a record: --dry"):
        occasion.before_timing(rounds, is_dry=False)
    assert occasion.before_timing(rounds, is_dry=True)["cores"]
