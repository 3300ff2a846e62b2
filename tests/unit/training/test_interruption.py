import os
import signal
import subprocess
import sys
import threading

import pytest

from regard.errors import Interrupted
from regard.training.interruption import Interruption

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_a_request_inside_the_block(number):
    before = signal.getsignal(number)
    with Interruption() as interruption:
        assert not interruption.requested
        os.kill(os.getpid(), number)
        assert interruption.requested
        with pytest.raises(Interrupted) as stopped:
            interruption.leave()
    assert stopped.value.signal_number == number
    assert isinstance(stopped.value, KeyboardInterrupt)
    assert signal.getsignal(number) == before


def test_a_second_signal_ends_the_process_at_once():
    number = signal.SIGINT
    program = (
        "import os, sys\n"
        "from regard.training.interruption import Interruption\n"
        "with Interruption():\n"
        f"    os.kill(os.getpid(), {int(number)})\n"
        "    print('still here', flush=True)\n"
        f"    os.kill(os.getpid(), {int(number)})\n"
        "    print('never', flush=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == -number
    assert done.stdout == "still here\n"


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_closed_terminal_and_torchrun_may_say_so_twice(number, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "regard")
    with Interruption() as interruption:
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
        with pytest.raises(Interrupted) as stopped:
            interruption.leave()
    assert stopped.value.signal_number == number


def test_under_nohup_a_closed_terminal_is_no_request():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interruption() as interruption:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not interruption.requested
    finally:
        signal.signal(signal.SIGHUP, before)


def test_work_that_changes_nothing_is_left_at_once():
    with Interruption() as interruption, interruption.at_once(), pytest.raises(Interrupted):
        os.kill(os.getpid(), signal.SIGTERM)
    assert interruption.requested


def test_other_threads_leave_signals_alone():
    observed = []

    def work():
        before = signal.getsignal(signal.SIGTERM)
        with Interruption() as interruption:
            observed.append((signal.getsignal(signal.SIGTERM) == before, interruption.requested))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert observed == [(True, False)]
