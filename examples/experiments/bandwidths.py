"""Kernel regression with more and more points: a fixed bandwidth, and one that shrinks.

    python examples/experiments/bandwidths.py [--sizes 50 500 5000] [--out FILE.svg]

The estimate of Nadaraya (1964) and Watson (1964) finds the curve y = 2 sin x + x^0.8 only if the
bandwidth shrinks as points come, as n^(−1/5), say (Stone, 1980). With a fixed one it tends to the
curve smoothed by the kernel, which is another one.
"""

import argparse
import math

import matplotlib.pyplot as plt
import torch

from regard.models import KernelRegression, KernelRegressionConfig
from regard.models.kernel_regression import SineExample

WAYS = {
    "average pooling": lambda n: math.inf,
    "bandwidth 1": lambda n: 1.0,
    "bandwidth n^(-1/5)": lambda n: n ** (-1 / 5),
}


@torch.no_grad()
def error(size, bandwidth, seed=0):
    """Root mean squared distance of the estimate from the true curve."""
    example = SineExample.draw(seed, count=size)
    model = KernelRegression(KernelRegressionConfig(bandwidth=bandwidth))
    predicted = model(example.queries, example.places, example.targets)
    return float((predicted - example.truth).square().mean().sqrt())


def main(sizes, out):
    """Print and draw."""
    print(f"{'distance from the curve, n =':28}", *(f"{size:8,}" for size in sizes))
    for name, bandwidth in WAYS.items():
        errors = [error(size, bandwidth(size)) for size in sizes]
        print(f"{name:28}", *(f"{each:8.3f}" for each in errors))
        plt.loglog(sizes, errors, marker="o", label=name)
    plt.gca().set(xlabel="points n", ylabel="root mean squared error")
    plt.legend()
    plt.savefig(out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 500, 5000])
    parser.add_argument("--out", default="bandwidths.svg")
    main(**vars(parser.parse_args()))
