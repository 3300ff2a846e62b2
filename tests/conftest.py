import errno
import os
import re
import signal
import sys
from pathlib import Path

import jaxtyping
import pytest
import torch
from hypothesis import HealthCheck, settings

# Machines that do other work besides are slow, and nothing is wrong with it.
settings.register_profile(
    "regard", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("regard")

# Processes that tests start write as those of a shell do: a buffer, and a last flush of it.
os.environ.pop("PYTHONUNBUFFERED", None)
# Compiled once, not by every worker and every process that a test starts.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Servers that tests start are on this machine: no proxy leads to them.
os.environ["no_proxy"] = os.environ["NO_PROXY"] = "127.0.0.1,localhost,::1"
# A run in the background, or below nohup, ignores signals, and so would all that tests start.
for number, handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

CORPORA = Path(os.environ.get("REGARD_DATA", Path(__file__).parents[2] / "shared" / "data"))

# Largest error of a result of order one, by dtype: a few roundings of a sum of some ten terms.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-5, torch.bfloat16: 3e-2, torch.float16: 4e-3}


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.fixture
def small_files(monkeypatch):
    """No file may grow beyond 1,000 bytes, as on a disk with that much room.

    A limit of the system (RLIMIT_FSIZE) would hold for the log of the tests too.
    """
    write = os.write

    def limited(descriptor, content):
        room = 1000 - os.lseek(descriptor, 0, os.SEEK_END)
        if room <= 0:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        return write(descriptor, bytes(content)[:room])

    monkeypatch.setattr(os, "write", limited)


@pytest.fixture
def unchecked_shapes():
    """Switch the net of shape checks off, to reach the errors users meet without it."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def corpora():
    """The folder of real corpora; the test is skipped where it is absent."""
    if not CORPORA.is_dir():
        pytest.skip(f"no corpora at {CORPORA}; set REGARD_DATA to their folder")
    return CORPORA


@pytest.fixture(scope="module")
def as_users_have_it(request):
    """Skip where functions check their shapes: compilers cannot trace those."""
    if request.config.getoption("jaxtyping_packages"):
        pytest.skip("shapes are checked in this run")


def pytest_ignore_collect(collection_path, config):
    """Leave files without a test of the chosen speed unread: half of collecting is imports."""
    chosen = config.getoption("markexpr")
    if collection_path.suffix != ".py" or chosen not in ("slow", "not slow"):
        return None
    text = collection_path.read_text("utf-8")
    if chosen == "slow":
        return None if "mark.slow" in text else True
    return (
        re.search(r"^pytestmark = (\[[^]]*|.*)mark\.slow\b", text, re.MULTILINE) is not None or None
    )


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Look for doctests in the package alone: in tests that is a third of collecting."""
    return [each for each in (yield) if type(each) is pytest.Module]


# One worker runs a whole file: what takes minutes is not to be left for the end.
_LONG = {
    "test_additive_triton.py",
    "test_cli_processes.py",
    "test_compiling.py",
    "test_graphs.py",
    "test_on_ray.py",
    "test_processes.py",
    "test_processes_by_command.py",
    "test_programs.py",
    "test_smoke.py",
    "test_tutorials.py",
    "test_typing_page.py",
}


def pytest_collection_modifyitems(items):
    """Mark tests that ask for the corpora, and put files that take minutes first."""
    items.sort(key=lambda item: item.path.name not in _LONG)
    for item in items:
        if "corpora" in getattr(item, "fixturenames", ()):
            item.add_marker("data")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Under CI=true, a test of data, of the browser or of node that is skipped has failed.

    REGARD_DATA=none says that there are no corpora, as in a public CI.
    """
    report = yield
    needs = ("browser", "node", *["data"] * (os.environ.get("REGARD_DATA") != "none"))
    is_needed = any(item.get_closest_marker(name) for name in needs)
    if os.environ.get("CI") == "true" and is_needed and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"must not be skipped where CI=true: {report.longrepr}"
    return report
