"""Whether the backend that ``attend`` chooses on a CPU is the fastest of ours, and of torch's.

    python -m benchmarks.backend_choice [--threads 1 2] [--seconds 2] [--only SHAPE] [--dry]

Calls of seven sizes, forward, and forward and backward: without options, under masks, with biases
and with dropout, on every backend that serves them and by torch's
``scaled_dot_product_attention`` with a mask or a bias made before. Fails where the choice takes
more than 1.3 times what the fastest of ours takes; beside torch, ratios are recorded. The
thresholds that decide stand in ``regard.attention.call.choice``.
"""

import argparse
import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from benchmarks.measuring import TINY, before_timing, sized, write_record
from regard.attention import alibi, attend, causal, explain, lengths, window
from regard.attention.biases import alibi_slopes
from regard.attention.call.choice import BACKENDS
from regard.errors import SettingError

_LARGEST_RATIO = 1.3
_SECONDS, _ROUNDS, _FEWEST_ROUNDS = sized((2.0, 300, 12), (0.001, 1, 0))
# ``attend`` left to choose, and torch's function.
OURS, TORCH = "attend", "torch"
_Shape = tuple[int, int, int, int]
# Options of ``attend``, and of torch's function.
_Options = tuple[dict[str, Any], dict[str, Any]]

# (B, H, N, D), by name.
SHAPES: dict[str, _Shape] = {
    "tiny": (1, 1, 16, 16),
    "small": (2, 4, 8, 32),
    "few": (8, 4, 32, 32),
    "short": (64, 4, 16, 32),
    "middle": (16, 8, 64, 64),
    "long": (4, 8, 256, 64),
    "longest": (1, 8, 1024, 64),
}


def _options(shape: _Shape) -> dict[str, _Options]:
    """Options of calls of one size, by what they are."""
    B, H, N, _ = shape
    generator = torch.Generator().manual_seed(1)
    padding = lengths(torch.randint(N // 2, N + 1, (B,), generator=generator))
    distances = (torch.arange(N)[:, None] - torch.arange(N)).abs().float()
    slopes = torch.tensor(alibi_slopes(H))[:, None, None] * -distances
    bias = torch.randn(1, H, N, N, generator=generator)
    near = window(max(1, N // 16), 0)
    return {
        "plain": ({}, {}),
        "causal": ({"mask": causal()}, {"is_causal": True}),
        "lengths": ({"mask": padding}, {"attn_mask": padding.bind(B, H, N, N).dense()}),
        "window": ({"mask": near}, {"attn_mask": near.bind(1, 1, N, N).dense()}),
        "bias": ({"bias": bias}, {"attn_mask": bias}),
        "ALiBi": ({"bias": alibi()}, {"attn_mask": slopes}),
        "dropout": ({"dropout": 0.1}, {"dropout_p": 0.1}),
        "dropout, lengths": (
            {"dropout": 0.1, "mask": padding},
            {"dropout_p": 0.1, "attn_mask": padding.bind(B, H, N, N).dense()},
        ),
    }


def _cases(only: str | None) -> Iterator[tuple[str, _Shape, _Options, bool]]:
    """Name, shape, options, and whether gradients are computed."""
    for name, full in SHAPES.items():
        shape = sized(full, (1, 2, 4, 8))
        if only not in (None, name):
            continue
        for option, options in _options(shape).items():
            yield f"{name}, {option}", shape, options, True
            yield f"{name}, {option}, forward", shape, options, False


def main() -> None:
    """Measure all calls, write the record, and fail where the choice is too slow."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=_SECONDS, help="of each call")
    parser.add_argument("--only", choices=SHAPES, help="calls of one size")
    parser.add_argument("--dry", action="store_true", help="write no record")
    arguments = parser.parse_args()
    before = before_timing(_FEWEST_ROUNDS, is_dry=arguments.dry)
    calls: dict[str, dict[str, Any]] = {}
    for threads in arguments.threads:
        torch.set_num_threads(threads)
        for name, shape, options, learns in _cases(arguments.only):
            call = _measured(shape, options, learns, arguments.seconds)
            calls[f"{name}, threads: {threads}"] = call
            text = ", ".join(f"{side} {took}" for side, took in call["milliseconds"].items())
            ratios = (
                f"{call['ratio']:.2f} × the fastest of ours, {call['beside torch']:.2f} × torch"
            )
            print(f"{name}, threads: {threads}: {call['chosen']}, {ratios}; {text}", flush=True)
    if not arguments.dry:
        write_record(
            "backend_choice",
            title="The backend that attend chooses on a CPU beside the fastest of ours",
            figures=[],
            details={"largest ratio allowed": _LARGEST_RATIO, "calls": calls},
            threads=arguments.threads,
            rounds=_FEWEST_ROUNDS,
            started_on=before,
        )
    slow = [name for name, call in calls.items() if call["ratio"] > _LARGEST_RATIO]
    if slow and TINY is None:
        raise SystemExit(f"chosen more than {_LARGEST_RATIO} × too slow: {', '.join(slow)}")


def _measured(shape: _Shape, options: _Options, learns: bool, seconds: float) -> dict[str, Any]:
    """Least milliseconds of each side, the backend chosen, and its ratios."""
    sides = _sides(shape, options, learns)
    best = {side: min(each) for side, each in _samples(sides, seconds).items()}
    with torch.set_grad_enabled(learns):
        chosen = explain(*_inputs(shape, learns), **options[0]).backend
    of_ours = min(took for side, took in best.items() if side != TORCH)
    return {
        "shape": shape,
        "chosen": chosen,
        "ratio": round(best[OURS] / of_ours, 3),
        "beside torch": round(best[OURS] / best[TORCH], 3),
        "milliseconds": {side: round(1e3 * each, 4) for side, each in best.items()},
    }


def _inputs(shape: _Shape, learns: bool) -> list[Tensor]:
    return [torch.randn(shape).requires_grad_(learns) for _ in range(3)]


def _sides(shape: _Shape, options: _Options, learns: bool) -> dict[str, Callable[[], float]]:
    """A measurement for each backend that serves the call, and for torch's function."""
    inputs, grad = _inputs(shape, learns), torch.randn(shape)

    def call(function: Callable[..., Tensor]) -> float:
        start = time.perf_counter()
        with torch.set_grad_enabled(learns):
            out = function(*inputs)
        if learns:
            torch.autograd.grad(out, inputs, grad)
        return time.perf_counter() - start

    ours, theirs = options
    sides: dict[str, Callable[[], float]] = {OURS: partial(call, partial(attend, **ours))}
    for backend in BACKENDS:
        function = partial(attend, backend=backend, **ours)
        try:
            call(function)
        except SettingError:
            continue
        sides[backend] = partial(call, function)
    sides[TORCH] = partial(call, partial(scaled_dot_product_attention, **theirs))
    return sides


def _samples(sides: dict[str, Callable[[], float]], seconds: float) -> dict[str, list[float]]:
    """Seconds of each side, in many rounds, so that the least is of a calm moment."""
    samples: dict[str, list[float]] = {side: [] for side in sides}
    start = time.perf_counter()
    # In an order of its own each time: a small call is faster behind one that ran the same code.
    orders, order = random.Random(1), list(sides)
    for turn in range(_ROUNDS):
        orders.shuffle(order)
        for side in order:
            samples[side].append(sides[side]())
        if turn >= _FEWEST_ROUNDS and time.perf_counter() - start > seconds:
            break
    return samples


if __name__ == "__main__":
    main()
