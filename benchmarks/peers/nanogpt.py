"""nanoGPT's side: its own script trains, its own model code is asked for the loss.

nanoGPT (https://github.com/karpathy/nanoGPT, MIT) is not part of this repository: ``--nanogpt``
names a folder with its ``train.py``, ``model.py``, ``configurator.py`` and ``config/``. Files are
read from there; what it writes goes to the work folder. It runs on this Python, with this torch.

``python -m benchmarks.peers.nanogpt WORK --threads 2`` prints the loss of its checkpoint.
"""

import argparse
import gzip
import importlib.util
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import measuring
from benchmarks.peers.windows import whole_loss

CONFIG = "config/train_shakespeare_char.py"
# The settings that its README gives for a CPU; the rest is in CONFIG.
CPU_FLAGS = {
    "device": "cpu",
    "compile": "False",
    "eval_iters": "20",
    "block_size": "64",
    "batch_size": "12",
    "n_layer": "4",
    "n_head": "4",
    "n_embd": "128",
    "max_iters": "2000",
    "lr_decay_iters": "2000",
    "dropout": "0.0",
}
# Those of CONFIG, which is made for a GPU.
GPU_FLAGS = {"device": "cuda"}
_ITERATION = re.compile(r"^iter (\d+): loss ([\d.]+), time ([\d.]+)ms")
_DATA = Path("data") / "shakespeare_char"


def texts(work: Path, nanogpt: Path | None) -> tuple[Path, Path]:
    """Where its scripts work, if they are given, and the parts of tiny Shakespeare as files."""
    home, folder = work / "nanogpt", work / "characters"
    with gzip.open(measuring.corpora() / "tinyshakespeare" / "input.txt.gz", "rt") as file:
        text = file.read()
    if nanogpt is not None:
        prepare(nanogpt, home, text)
    folder.mkdir(parents=True, exist_ok=True)
    for name, part in zip(("train", "valid"), parts(text), strict=True):
        (folder / f"{name}.txt").write_text(part, "utf-8")
    return home.resolve(), folder.resolve()


def prepare(nanogpt: Path, home: Path, text: str) -> None:
    """Lay out a copy of its scripts, and the text as its own ``prepare.py`` writes it."""
    (home / _DATA).mkdir(parents=True, exist_ok=True)
    for name in ("train.py", "model.py", "configurator.py"):
        shutil.copy(nanogpt / name, home / name)
    shutil.copytree(nanogpt / "config", home / "config", dirs_exist_ok=True)
    letters = sorted(set(text))
    ids = {letter: number for number, letter in enumerate(letters)}
    for name, part in zip(("train", "val"), parts(text), strict=True):
        numbers = np.array([ids[letter] for letter in part], dtype=np.uint16)
        numbers.tofile(home / _DATA / f"{name}.bin")
    meta = {"vocab_size": len(letters), "itos": dict(enumerate(letters)), "stoi": ids}
    (home / _DATA / "meta.pkl").write_bytes(pickle.dumps(meta))


def parts(text: str) -> tuple[str, str]:
    """The first nine tenths of the characters, and the last."""
    cut = int(len(text) * 0.9)
    return text[:cut], text[cut:]


def train(
    home: Path, *, iterations: int, threads: int, flags: Mapping[str, str] = CPU_FLAGS
) -> dict[str, Any]:
    """Train, in a process of its own; milliseconds of every iteration, evaluations left out.

    Its checkpoint is written after ``iterations``, or where ``flags`` say so.
    """
    told = {"max_iters": str(iterations), "eval_interval": str(iterations)}
    told |= {"always_save_checkpoint": "True", "log_interval": "1", "out_dir": "out", **flags}
    command: Sequence[str] = [
        *(sys.executable, "train.py", CONFIG),
        *(f"--{name}={value}" for name, value in told.items()),
    ]
    environment = {**measuring.thread_environment(threads), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        command, cwd=home, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"nanoGPT failed:\n{done.stderr[-3000:]}")
    found = [match for line in done.stdout.splitlines() if (match := _ITERATION.match(line))]
    # What follows an evaluation is timed with it.
    kept = [float(match[3]) for match in found if int(match[1]) % int(told["eval_interval"])]
    return {"milliseconds": kept}


def loss(home: Path) -> float:
    """Of its checkpoint, by its own model code, over the whole validation part."""
    spec = importlib.util.spec_from_file_location("nanogpt_model", home / "model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    saved = torch.load(home / "out" / "ckpt.pt", map_location="cpu", weights_only=True)
    model = module.GPT(module.GPTConfig(**saved["model_args"]))
    model.load_state_dict(saved["model"])
    model.eval()
    ids = torch.from_numpy(np.fromfile(home / _DATA / "val.bin", dtype=np.uint16).astype(np.int64))
    # Asked for a loss too, it gives the logits of all positions.
    return whole_loss(
        lambda read: model(read, read)[0], ids, context=saved["model_args"]["block_size"]
    )


def main() -> None:
    """Print the loss of the checkpoint in a work folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("home", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    with Path(os.devnull).open("w") as nowhere:
        kept, sys.stdout = sys.stdout, nowhere  # its model tells how large it is
        found = loss(given.home)
        sys.stdout = kept
    print(json.dumps({"loss": found}))


if __name__ == "__main__":
    main()
