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


def test_nanogpt_s_iterations_are_timed_without_those_that_evaluate(tmp_path):
    (tmp_path / "train.py").write_text(
        "import sys, pathlib\n"
        "told = dict(word[2:].split('=') for word in sys.argv[2:])\n"
        "pathlib.Path('flags').write_text(told['eval_interval'] + told['always_save_checkpoint'])\n"
        "for n in range(5):\n"
        "    print(f'iter {n}: loss 1.0, time {n}.00ms, mfu 1.00%')\n"
    )
    timed = nanogpt.train(tmp_path, iterations=4, threads=1)
    assert timed["milliseconds"] == [1.0, 2.0, 3.0]
    assert (tmp_path / "flags").read_text() == "4True"
