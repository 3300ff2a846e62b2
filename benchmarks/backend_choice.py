"""Whether the backend that ``attend`` chooses on a CPU is the fastest of ours.

Twenty calls, forward and backward, on every backend that serves them, in turn; fails where the one
chosen takes more than 1.3 times what the fastest takes. The thresholds that decide stand in
``regard.attention.backends.base``. One thread: at several, all backends share out alike.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from benchmarks.measuring import TINY, before_timing, sized, write_record
from regard.attention import alibi, attend, causal, explain, lengths, window
from regard.attention.plan import BACKENDS
from regard.errors import SettingError

_LARGEST_RATIO = 1.3
_SECONDS, _ROUNDS, _FEWEST_ROUNDS = sized((5.0, 300, 12), (0.001, 1, 0))
_Case = tuple[tuple[int, int, int, int], dict[str, Any], bool]


def _cases() -> dict[str, _Case]:
    """Shapes (B, H, N, D), options, and whether gradients are worked out, by their names."""
    tiny = (1, 2, 4, 8)
    short, middle, long = (
        sized(s, tiny) for s in ((64, 4, 16, 32), (16, 8, 64, 64), (4, 8, 256, 64))
    )
    small, longest = (sized(s, tiny) for s in ((2, 4, 8, 32), (1, 8, 1024, 64)))

    def some(shape: tuple[int, int, int, int]) -> Any:
        generator = torch.Generator().manual_seed(1)
        return lengths(torch.randint(shape[2] // 2, shape[2] + 1, shape[:1], generator=generator))

    cases: dict[str, _Case] = {}
    for name, shape in (("short", short), ("middle", middle), ("long", long)):
        cases[f"{name}, plain"] = (shape, {}, True)
        cases[f"{name}, causal"] = (shape, {"mask": causal()}, True)
        cases[f"{name}, lengths"] = (shape, {"mask": some(shape)}, True)
        cases[f"{name}, ALiBi"] = (shape, {"bias": alibi()}, True)
        cases[f"{name}, dropout"] = (shape, {"dropout": 0.1}, True)
    cases["small, causal"] = (small, {"mask": causal()}, True)
    cases["longest, causal, forward"] = (longest, {"mask": causal()}, False)
    cases["longest, window, forward"] = (longest, {"mask": window(64, 0)}, False)
    cases["long, lengths, forward"] = (long, {"mask": some(long)}, False)
    cases["short, ALiBi, forward"] = (short, {"bias": alibi()}, False)
    return cases


def main() -> None:
    """Measure all calls, write the record, and fail where the choice is too slow."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dry", action="store_true", help="write no record")
    dry = parser.parse_args().dry
    before = before_timing(_FEWEST_ROUNDS, is_dry=dry)
    torch.set_num_threads(1)
    calls = {}
    for name, case in _cases().items():
        best = {side: min(each) for side, each in _samples(_sides(*case)).items()}
        chosen = _chosen(*case)
        ratio = best[chosen] / min(best.values())
        milliseconds = {side: round(1e3 * each, 4) for side, each in best.items()}
        calls[name] = {
            "shape": case[0],
            "chosen": chosen,
            "ratio": round(ratio, 3),
            "milliseconds": milliseconds,
        }
        print(f"{name}: {chosen}, {ratio:.2f} × the fastest; {milliseconds}", flush=True)
    if not dry:
        write_record(
            "backend_choice",
            title="The backend that attend chooses on a CPU beside the fastest of ours",
            figures=[],
            details={"largest ratio allowed": _LARGEST_RATIO, "calls": calls},
            rounds=_FEWEST_ROUNDS,
            started_on=before,
        )
    slow = [name for name, call in calls.items() if call["ratio"] > _LARGEST_RATIO]
    if slow and TINY is None:
        raise SystemExit(f"chosen more than {_LARGEST_RATIO} × too slow: {', '.join(slow)}")


def _inputs(shape: tuple[int, int, int, int], learns: bool) -> list[Tensor]:
    return [torch.randn(shape).requires_grad_(learns) for _ in range(3)]


def _chosen(shape: tuple[int, int, int, int], options: dict[str, Any], learns: bool) -> str:
    with torch.set_grad_enabled(learns):
        return explain(*_inputs(shape, learns), **options).backend


def _sides(
    shape: tuple[int, int, int, int], options: dict[str, Any], learns: bool
) -> dict[str, Callable[[], float]]:
    """A measurement for each backend that serves the call."""
    inputs, grad = _inputs(shape, learns), torch.randn(shape)

    def call(backend: str) -> float:
        start = time.perf_counter()
        with torch.set_grad_enabled(learns):
            out = attend(*inputs, backend=backend, **options)
        if learns:
            torch.autograd.grad(out, inputs, grad)
        return time.perf_counter() - start

    sides = {}
    for backend in BACKENDS:
        try:
            call(backend)
        except SettingError:
            continue
        sides[backend] = lambda backend=backend: call(backend)
    return sides


def _samples(sides: dict[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Seconds of each side, in turn; of many rounds, so that the least is of a calm moment."""
    samples: dict[str, list[float]] = {side: [] for side in sides}
    start = time.perf_counter()
    for turn in range(_ROUNDS):
        for side, measure in sides.items():
            samples[side].append(measure())
        if turn >= _FEWEST_ROUNDS and time.perf_counter() - start > _SECONDS:
            break
    return samples


if __name__ == "__main__":
    main()
