"""A whole model watched: what ``regard.watch`` costs beside the model's plain forward.

The model is shaped like a small Llama (4 layers, 8 heads of 64) with random weights; its own
forward goes through torch's fused kernel. ``benchmarks.inspection`` puts this into its record.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.measuring import ROOT, alternate, paired_ratio, thread_environment

LAYERS, HEADS, HEAD_DIM = 4, 8, 64


def ratios(length: int, rounds: int) -> dict[str, Any]:
    """Seconds of the plain and of the watched forward, alternating, and their ratios."""
    answer = _child("seconds", length, rounds)
    plain, watched = answer["plain"], answer["watched"]
    return {**answer, "length": length, "ratio": paired_ratio(watched, plain).table()}


def peak(length: int) -> dict[str, Any]:
    """The most memory that a process held which watched one forward, in bytes."""
    return {"length": length, **_child("peak", length, 1)}


def _child(what: str, length: int, rounds: int) -> dict[str, Any]:
    """A measurement in a process of its own, of one thread."""
    command = [sys.executable, "-m", "benchmarks.watched_model", what, str(length), str(rounds)]
    done = subprocess.run(
        command, cwd=ROOT, env=thread_environment(1), check=True, capture_output=True, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _forwards(length: int) -> tuple[Callable[[], None], Callable[[], None]]:
    """The plain forward and the watched one."""
    import torch
    import transformers

    import regard as rg

    torch.manual_seed(0)
    torch.set_grad_enabled(False)
    config = transformers.LlamaConfig(
        vocab_size=1000,
        hidden_size=HEADS * HEAD_DIM,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=1376,
        max_position_embeddings=length,
        attn_implementation="sdpa",
    )
    model = transformers.LlamaModel(config).eval()
    ids = torch.randint(0, 1000, (1, length))

    def plain() -> None:
        model(input_ids=ids, use_cache=False)

    def watched() -> None:
        with rg.watch(model) as seen:
            plain()
        assert len(seen) == LAYERS

    return plain, watched


def _seconds_of(forward: Callable[[], None]) -> float:
    start = time.process_time()
    forward()
    return time.process_time() - start


def main() -> None:
    """Measure, in a process of its own, and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["seconds", "peak"])
    parser.add_argument("length", type=int)
    parser.add_argument("rounds", type=int)
    given = parser.parse_args()
    plain, watched = _forwards(given.length)
    if given.what == "peak":
        watched()
        # In kilobytes, on Linux.
        print(json.dumps({"peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
        return
    if given.length < 4096:  # the first call of each pays for what is made once
        plain()
        watched()
    sides = {"plain": lambda: _seconds_of(plain), "watched": lambda: _seconds_of(watched)}
    print(json.dumps(alternate(sides, given.rounds, report=lambda line: None)))


if __name__ == "__main__":
    main()
