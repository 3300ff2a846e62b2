"""``--device``: what is no device is one line, before anything is read."""

import pytest

from regard.cli import run_command

COMMANDS = {
    "train": ["train", "demo"],
    "predict": ["predict", "nowhere"],
    "evaluate": ["evaluate", "nowhere"],
    "look": ["look", "nowhere", "text"],
    "serve": ["serve", "nowhere"],
}


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_what_is_no_device_is_refused_first(command, capsys):
    assert run_command([*COMMANDS[command], "--device", "Cuda"]) == 2
    said = capsys.readouterr().err
    assert "error: --device must be one of auto, cpu, cuda, mps; got 'Cuda'" in said
