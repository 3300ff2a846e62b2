"""No number makes a compiled loop leave its arrays, or torch say what only it understands."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("as_users_have_it")]

COUNT = 600


def test_every_public_call_is_answered_by_numbers_or_refused_in_a_sentence():
    program = Path(__file__).with_name("hostile_calls.py")
    done = subprocess.run(
        [sys.executable, str(program), "20261128", str(COUNT)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    calls = [json.loads(line) for line in done.stdout.splitlines()]
    expected = ["refused" if call["wrong"] else "answered" for call in calls]
    assert len(calls) == COUNT
    assert min(expected.count("refused"), expected.count("answered")) > COUNT / 4
    pairs = zip(calls, expected, strict=True)
    assert [call for call, outcome in pairs if call["outcome"] != outcome] == []
