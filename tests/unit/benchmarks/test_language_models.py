"""The parts of the comparison with nanoGPT that need neither side."""

import math

import numpy as np
import pytest
import torch
from benchmarks.peers import nanogpt
from benchmarks.peers.windows import whole_loss


def test_every_token_but_the_first_is_scored_once_after_those_of_its_window():
    ids = torch.tensor([0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4])
    read = []

    def successor(windows):
        read.extend(windows.tolist())
        right = torch.full((*windows.shape, 7), -1e9)
        return right.scatter(-1, ((windows + 1) % 7)[..., None], 0.0)

    assert whole_loss(successor, ids, context=4) == pytest.approx(0)
    assert read == [[0, 1, 2, 3], [4, 5, 6, 0], [1, 2, 3]]
    flat = whole_loss(lambda windows: torch.zeros(*windows.shape, 7), ids, context=4)
    assert flat == pytest.approx(math.log(7))


def test_nanogpt_gets_the_text_as_its_own_script_cuts_it(tmp_path):
    source = tmp_path / "nanogpt"
    (source / "config").mkdir(parents=True)
    for name in ("train.py", "model.py", "configurator.py"):
        (source / name).write_text("", "utf-8")
    text = "to be or\nnot to be?"
    nanogpt.prepare(source, tmp_path / "home", text)
    folder = tmp_path / "home" / "data" / "shakespeare_char"
    ids = [np.fromfile(folder / f"{part}.bin", dtype=np.uint16) for part in ("train", "val")]
    assert [len(part) for part in ids] == [17, 2]  # int(0.9 * 19)
    letters = sorted(set(text))
    assert "".join(letters[i] for part in ids for i in part) == text
    assert nanogpt.parts(text) == (text[:17], text[17:])
