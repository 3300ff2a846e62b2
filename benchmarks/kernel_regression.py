"""Kernel regression beside statsmodels', and 100,000 points in memory that grows with their number.

    python -m benchmarks.kernel_regression [--rounds 5] [--threads 2] [--dry]

Both give the local constant fit at every one of their own points, float64, Gaussian kernel,
bandwidth 0.2. Both run in this process, in turn. ``fit`` of statsmodels gives slopes too; it has no
way to leave them out.
"""

import argparse
import json
import re
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.measuring import (
    Figure,
    Spread,
    alternate,
    apart,
    machine,
    paired_ratio,
    sized,
    write_record,
)

PEER = "statsmodels"
POINTS, MANY = sized((5000, 100_000), (40, 2000))


def _points(count: int, dim: int) -> tuple[Any, Any]:
    import numpy as np

    rng = np.random.default_rng(0)
    places = rng.uniform(0, 5, (count, dim))
    return places, 2 * np.sin(places[:, 0]) + rng.normal(0, 0.5, count)


def _side_by_side(dim: int, rounds: int) -> dict[str, Any]:
    import numpy as np
    import torch

    from regard.models import KernelRegression, KernelRegressionConfig

    warnings.simplefilter("ignore", FutureWarning)
    places, seen = _points(POINTS, dim)
    model = KernelRegression(KernelRegressionConfig(bandwidth=0.2), dim=dim)
    asked, values = torch.from_numpy(places), torch.from_numpy(seen[:, None])
    fits: dict[str, Any] = {}

    def timed(name: str, call: Any) -> float:
        began = time.perf_counter()
        fits[name] = call()
        return time.perf_counter() - began

    def ours() -> Any:
        return model(asked, asked, values)[:, 0].numpy()

    def theirs() -> Any:
        from statsmodels.nonparametric.kernel_regression import KernelReg

        return KernelReg(seen, places, "c" * dim, reg_type="lc", bw=[0.2] * dim).fit()[0]

    ours()
    sides = {"regard": lambda: timed("regard", ours), PEER: lambda: timed(PEER, theirs)}
    if find_spec(PEER) is None:
        print(f"left out: {PEER} is not installed")
        del sides[PEER]
    seconds = alternate(sides, rounds)
    found = {
        "dim": dim,
        "points": POINTS,
        "seconds": {name: Spread.of(each).table() for name, each in seconds.items()},
    }
    if PEER in sides:
        found["ratio"] = paired_ratio(seconds[PEER], seconds["regard"]).table()
        found["largest_difference"] = float(np.abs(fits["regard"] - fits[PEER]).max())
    return found


def _many() -> tuple[float, float]:
    """Guess at each of very many points from all: seconds and the growth of the memory."""
    import torch

    from regard.models import KernelRegression, KernelRegressionConfig

    places, seen = _points(MANY, 1)
    asked = torch.from_numpy(places).float()
    values = torch.from_numpy(seen[:, None]).float()
    model = KernelRegression(KernelRegressionConfig(bandwidth=0.2))
    model(asked[:1000], asked[:1000], values[:1000])
    # Loading took more than the fit will: count the peak from here on.
    Path("/proc/self/clear_refs").write_text("5")
    before = _peak_mib()
    began = time.perf_counter()
    model(asked, asked, values)
    seconds = time.perf_counter() - began
    return seconds, _peak_mib() - before


def _peak_mib() -> float:
    """The most memory that this process held since its peak was cleared; Linux only."""
    status = Path("/proc/self/status").read_text()
    found = re.search(r"^VmHWM:\s+(\d+) kB", status, flags=re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dry", action="store_true", help="measure, and write nothing")
    parser.add_argument("--many", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.many:
        print(json.dumps(_many()))
        return
    import torch

    torch.set_num_threads(arguments.threads)
    facts = machine()
    compared = [_side_by_side(dim, arguments.rounds) for dim in (1, 2)]
    seconds, mib = apart("benchmarks.kernel_regression", "--many", threads=arguments.threads)
    print(f"{MANY} points: {seconds:.1f} s, {mib:.0f} MiB")
    if arguments.dry or any("ratio" not in each for each in compared):
        return
    figures = [
        Figure(
            what=f"Kernel regression at {POINTS:,} points, {each['dim']} dimension(s)",
            ours=f"{each['ratio']['median']:.1f} × as fast",
            beside="statsmodels KernelReg, local constant",
            note=f"the same fit to {each['largest_difference']:.0e}",
        )
        for each in compared
    ]
    figures.append(
        Figure(
            what=f"Kernel regression, every one of {MANY:,} points from all",
            ours=f"{seconds:.0f} s, {mib:,.0f} MiB",
            beside=f"{MANY**2 * 4 / 2**30:,.0f} GiB for the matrix of weights",
            note="float32",
        )
    )
    path = write_record(
        "kernel_regression",
        title="Kernel regression beside statsmodels, and of very many points",
        figures=figures,
        details={
            "threads": arguments.threads,
            "side_by_side": compared,
            "many": {"points": MANY, "seconds": seconds, "memory_mib": mib},
        },
        packages=("torch", "statsmodels", "numpy"),
        started_on=facts,
    )
    print(path)


if __name__ == "__main__":
    main()
