"""The page of the audit prints what the command prints of the file that it shows."""

import re
from pathlib import Path

import pytest

from regard.cli import run_command

DOCS = Path(__file__).parents[3] / "docs"
_FILE = re.compile(r'^```python title="attention.py"\n(.*?)^```', re.DOTALL | re.MULTILINE)
_PRINTED = re.compile(r"^```text\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", ["auditing.md", "auditing.zh.md"])
def test_the_page_prints_what_the_command_prints(page, tmp_path, monkeypatch, capsys):
    text = (DOCS / page).read_text("utf-8")
    (tmp_path / "attention.py").write_text(_FILE.findall(text)[0], "utf-8")
    monkeypatch.chdir(tmp_path)
    assert run_command(["audit", "attention.py:MultiHeadAttention"]) == 1
    # Sums of weights hang on random parameters.
    numbers = re.compile(r"\d+\.\d+")
    printed = capsys.readouterr().out
    assert numbers.sub("0", printed) == numbers.sub("0", _PRINTED.findall(text)[0])
