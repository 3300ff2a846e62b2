"""``regard audit``: what a file has, what it is called with, and what is printed of it."""

import json

import pytest

from regard.cli.app import run_command

FILE = """
import torch
from torch import nn

print("a line of the file")


def attention(query, key, value):
    scores = query @ key.transpose(-2, -1) / key.shape[-1] ** 0.5
    return scores.softmax(dim=1) @ value


class Right(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, x, mask=None):
        return self.attention(x, x, x, key_padding_mask=mask)[0]


class Sized(nn.Module):
    def __init__(self, width):
        super().__init__()


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(9, 16)

    def forward(self, ids, lengths):
        return self.table(ids).mean(1)


states = torch.randn(2, 7, 16)
padded = {"x": states, "mask": torch.arange(7) >= torch.tensor([[7], [4]])}
Reader_inputs = torch.randint(1, 9, (2, 8)), torch.tensor([8, 5])


def model_inputs():
    return states


model = Right()
number = 3
"""


@pytest.fixture(autouse=True)
def _file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(FILE, "utf-8")
    (tmp_path / "broken.py").write_text("x = 1\nx.y\n", "utf-8")


def run(capsys, *arguments):
    code = run_command(["audit", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_fault_is_printed_with_its_line_and_status_1(capsys):
    code, out, err = run(capsys, "mine.py:attention")
    assert code == 1
    assert out.startswith("attention(2×12×64, 2×12×64, 2×12×64): 1 fault\n\nrows ")
    assert "mine.py:10: return scores.softmax(dim=1) @ value" in out
    assert "a line of the file" in err
    assert "inputs: floats of 2×12×64" in err


def test_what_is_right_has_status_0(capsys):
    for arguments in (["mine.py:Right"], ["mine.py:model", "--inputs", "padded"]):
        code, out, _ = run(capsys, *arguments)
        assert code == 0
        assert "no fault" in out
    assert "passed     rows" in run(capsys, "mine.py:model")[1]


def test_json_is_one_object(capsys):
    code, out, _ = run(capsys, "mine.py:attention", "--json")
    report = json.loads(out)
    assert code == 1
    assert [fault["name"] for fault in report["faults"]] == ["rows"]
    assert set(report["faults"][0]) == {"name", "number", "text", "lines", "cure"}


def test_options_say_what_is_promised(capsys):
    assert "future" in run(capsys, "mine.py:model", "--causal")[1]
    code, out, _ = run(capsys, "mine.py:Reader", "--padding", "1")
    assert code == 1
    assert "\npadding " in out
    assert "passed     batch, padding" in run(
        capsys, "mine.py:model", "--inputs", "padded", "--padding", "mask"
    )[1].replace("rows, future, batch", "batch").replace("rows, batch", "batch")


REFUSED = {
    "mine.py": r"must name what to audit in mine.py; got no name. It has attention, Right",
    "mine.py:nobody": "must be a module or a function in mine.py; got 'nobody'",
    "mine.py:number": "must be a module or a function in mine.py; got 'number'",
    "mine.py:Sized": "must be a class that is made without arguments; got Sized",
    "none.py:x": "must name a file that is there; got 'none.py:x'",
    "broken.py:x": "broken.py:2: must run; got AttributeError",
}


@pytest.mark.parametrize("target", REFUSED)
def test_what_cannot_be_audited_is_one_line(capsys, target):
    code, out, err = run(capsys, target)
    assert (code, out) == (2, "")
    assert REFUSED[target] in err


def test_inputs_must_be_in_the_file(capsys):
    code, _, err = run(capsys, "mine.py:model", "--inputs", "none")
    assert code == 2
    assert "--inputs must name something in mine.py; got 'none'" in err
