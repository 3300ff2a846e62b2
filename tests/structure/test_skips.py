"""Where CI=true, no test of data or of the browser may be skipped."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

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


def test_skips_of_data_and_browser_fail_in_ci_alone(tmp_path):
    shutil.copy(Path(__file__).parents[1] / "conftest.py", tmp_path)
    (tmp_path / "test_it.py").write_text(TESTS, "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  data\n  browser\n", "utf-8")
    absent = str(tmp_path / "none")
    for ci, data, summary in [
        ("true", absent, "2 failed, 1 skipped, 1 error"),
        ("true", "none", "1 failed, 3 skipped"),
        ("", absent, "4 skipped"),
    ]:
        environment = {**os.environ, "CI": ci, "REGARD_DATA": data}
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(tmp_path)]
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True
        )
        assert summary in done.stdout
        assert ("must not be skipped where CI=true" in done.stdout) == (ci == "true")
