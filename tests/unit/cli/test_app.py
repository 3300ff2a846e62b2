"""The process of the command line."""

import subprocess
import sys

import pytest

from regard.cli.output import program

MAIN = """
import atexit, os, sys
from regard.cli import main
atexit.register(lambda: print(os.environ.get("GOMP_SPINCOUNT"), "torch" in sys.modules, flush=True))
sys.argv = ["regard", "--version"]
main()
"""


@pytest.mark.parametrize(
    ("environment", "spins"),
    [({}, "5000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "active"}, "None")],
)
def test_waiting_threads_spin_for_a_moment_unless_the_environment_says_otherwise(
    environment, spins, monkeypatch
):
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    done = subprocess.run([sys.executable, "-c", MAIN], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == f"{spins} False"  # before torch and OpenMP are loaded


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("/bin/regard", "regard"),
        ("mine/stars.py", "python mine/stars.py"),
        ("__main__.py", "regard"),
    ],
)
def test_the_commands_that_it_names_are_those_of_the_file_that_runs_it(file, name, monkeypatch):
    monkeypatch.setattr(sys, "argv", [file, "train"])
    assert program() == name
