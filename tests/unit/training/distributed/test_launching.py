import os
import signal

import pytest

from regard.errors import SettingError, TrainingError
from regard.training.distributed import launching
from regard.training.distributed.launching import ProcessRank, check_processes, find_rank, launch

WHOLE = {"RANK": "1", "WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}


def test_the_rank_is_what_torchrun_sets():
    local = {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"}
    assert find_rank(WHOLE | local) == ProcessRank(1, 3, 0, 2)
    assert find_rank(WHOLE) == ProcessRank(1, 3, 1, 3)
    assert find_rank({}) is None
    assert find_rank({"WORLD_SIZE": "1", "RANK": "0"}) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"WORLD_SIZE": "two"},
        {"WORLD_SIZE": "0"},
        {"RANK": "3"},
        {"RANK": ""},
        {"LOCAL_RANK": "5", "LOCAL_WORLD_SIZE": "2"},
        {"MASTER_ADDR": ""},
        {"MASTER_PORT": ""},
    ],
)
def test_variables_that_torchrun_would_not_set_are_refused(wrong):
    port = wrong.get("MASTER_PORT", "29500") or "nothing"
    with pytest.raises(SettingError, match=rf"sets them; got RANK=.*, MASTER_PORT={port}\. To"):
        find_rank(WHOLE | wrong)


def test_processes_must_be_some_and_not_several_times_several(monkeypatch):
    with pytest.raises(SettingError, match="--processes must be at least 1; got -1"):
        check_processes(-1)
    monkeypatch.setattr(launching, "count_cores", lambda: 2)
    check_processes(2)
    with pytest.raises(SettingError, match="at most 2, the processors that this process may use; "):
        check_processes(100_000)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 8)
    check_processes(8)
    with pytest.raises(SettingError, match="at most 8, the GPUs that this process may use; got 9"):
        check_processes(9)
    for name, value in WHOLE.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingError, match="--processes must be left out under torchrun"):
        check_processes(2)


def launched(text, processes):
    """Launch processes of a program of ours."""
    return launch([], processes, program=["-c", f"import os, signal, sys, time\n{text}"])


def test_what_ends_well_is_0():
    assert (
        launched("assert os.environ['WORLD_SIZE'] == '3' and os.environ['RANK'] in '012'", 3) == 0
    )
    assert "REGARD_LAUNCHED" not in os.environ


def test_the_others_are_ended_where_one_fails():
    assert launched("sys.exit(7) if os.environ['RANK'] == '1' else time.sleep(60)", 2) == 7


def test_a_killed_process_is_named():
    with pytest.raises(TrainingError, match=r"got process 2 ended by SIGKILL, perhaps by the sys"):
        launched(
            "os.kill(os.getpid(), signal.SIGKILL) if os.environ['RANK'] == '2' else time.sleep(60)",
            3,
        )


def test_a_signal_is_passed_on_to_all():
    before = signal.getsignal(signal.SIGTERM)
    code = launched(
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\n"
        "if os.environ['RANK'] == '0':\n"
        "    time.sleep(0.5)\n"
        "    os.kill(os.getppid(), signal.SIGTERM)\n"
        "time.sleep(60)",
        2,
    )
    assert code == 143
    assert signal.getsignal(signal.SIGTERM) == before


def test_an_ignored_hangup_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert launched("os.kill(os.getppid(), signal.SIGHUP)\ntime.sleep(0.5)", 2) == 0
    finally:
        signal.signal(signal.SIGHUP, before)
