"""The page's scripts by themselves, run by node: data/, model/ and parts/."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.javascript.fixtures import write_fixtures

FOLDER = Path(__file__).parent


@pytest.fixture(scope="module")
def fixtures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fixtures")
    write_fixtures(folder)
    return folder


@pytest.mark.node
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not on the path")
@pytest.mark.parametrize("name", ["data", "model", "parts"])
def test_scripts(fixtures, name):
    done = subprocess.run(
        ["node", "--test", "--test-reporter=tap", FOLDER / f"{name}.test.js"],
        capture_output=True,
        text=True,
        env=os.environ | {"REGARD_FIXTURES": str(fixtures)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# fail 0" in done.stdout
    assert "# pass 0" not in done.stdout
