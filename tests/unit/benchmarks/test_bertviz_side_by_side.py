"""Pages side by side: what is said of them, and whose memory is counted."""

import os
import subprocess
import sys

from benchmarks.bertviz_side_by_side import Memory, descendants, figures


def outcome(**known: object) -> dict[str, object]:
    names = ("made_in", "made_with", "size", "opened_in", "opened_with", "failure")
    return {**dict.fromkeys(names), **known}


def test_a_line_has_medians_and_what_became_of_the_others():
    ours = [
        outcome(made_in=s, made_with=10**9, size=2 * 10**6, opened_in=s / 2, opened_with=5 * 10**8)
        for s in (1.0, 4.0, 2.0)
    ]
    known = {"made_in": 30.0, "made_with": 4 * 10**9, "size": 10**9, "opened_with": 2 * 10**9}
    crashed = outcome(**known, failure="not opened: the tab crashed")
    lost = outcome(failure="not made: more than 180 s")
    (line,) = figures({"512": {"regard": ours, "head_view": [crashed], "model_view": [lost]}})
    assert "512 tokens" in line.what
    assert line.ours == "2.0 s, 2.0 MB, 1.0 s (1.0 GB, 0.5 GB)"
    assert line.beside == (
        "bertviz, head_view: 30.0 s, 1000.0 MB, not opened: the tab crashed (4.0 GB, 2.0 GB); "
        "bertviz, model_view: not made: more than 180 s"
    )


def test_memory_is_that_of_all_processes_below():
    held = "x = bytearray(60_000_000); x[::4096] = b'1' * len(x[::4096]); print(); input()"
    inner = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {held!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", inner], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert process.pid in descendants(os.getpid())
        assert len(descendants(process.pid)) == 1
        memory = Memory(process.pid)
        memory._done.wait(0.4)
        assert 60_000_000 < memory.stop() < 200_000_000
        process.communicate(b"\n")
