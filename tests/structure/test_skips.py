"""Where CI=true, no test of data or of the browser may be skipped."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.conftest import pytest_runtest_makereport

TESTS = """
import pytest

@pytest.mark.data
def test_of_data():
    pytest.skip("nothing there")

@pytest.mark.browser
def test_of_the_browser():
    pytest.skip("nothing there")

def test_of_corpora(corpora):
    pass

def test_unmarked():
    pytest.skip("does not matter")
"""


@pytest.mark.slow
def test_a_skip_is_a_failure_in_ci(tmp_path):
    shutil.copy(Path(__file__).parents[1] / "conftest.py", tmp_path)
    (tmp_path / "test_it.py").write_text(TESTS, "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  data\n  browser\n", "utf-8")
    environment = {**os.environ, "CI": "true", "REGARD_DATA": str(tmp_path / "none")}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert "2 failed, 1 skipped, 1 error" in done.stdout
    assert "must not be skipped where CI=true" in done.stdout


@pytest.mark.parametrize(
    ("marker", "ci", "data", "outcome"),
    [
        ("data", "true", "there", "failed"),
        ("data", "true", "none", "skipped"),
        ("data", "", "there", "skipped"),
        ("browser", "true", "none", "failed"),
        ("browser", "", "there", "skipped"),
        ("slow", "true", "there", "skipped"),
    ],
)
def test_which_skips_those_are(marker, ci, data, outcome, monkeypatch):
    monkeypatch.setenv("CI", ci)
    monkeypatch.setenv("REGARD_DATA", data)
    item = SimpleNamespace(get_closest_marker=lambda name: name == marker)
    hook = pytest_runtest_makereport(item)
    next(hook)
    with pytest.raises(StopIteration) as done:
        hook.send(SimpleNamespace(skipped=True, outcome="skipped", longrepr="nothing there"))
    assert done.value.value.outcome == outcome
