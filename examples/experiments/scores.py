"""Scores against the width: why dot products are divided by the root of d.

    python examples/experiments/scores.py [--widths 4 16 64 256 1024] [--out FILE.svg]

Vaswani et al. (2017), section 3.2.1. Queries and keys have mean 0 and variance 1, so their dot
product has variance d: its softmax comes near to arg-max, and its gradient near to zero.
"""

import argparse
from math import log, sqrt

import matplotlib.pyplot as plt
import torch

import regard as rg


def scores(width, keys=32, queries=64):
    """Every score of the same random queries and keys, (N, M) each."""
    generator = torch.Generator().manual_seed(width)

    def normal(*shape, scale=1.0):
        return scale * torch.randn(*shape, generator=generator)

    query, key = normal(queries, width), normal(keys, width)
    matrix = normal(width, width, scale=1 / sqrt(width))
    for_query, for_key = normal(2, width, width, scale=1 / sqrt(2 * width))
    w = normal(width, scale=1 / sqrt(width))
    return {
        "dot": rg.Dot().tile(query, key),
        "scaled dot": rg.ScaledDot().tile(query, key),
        "bilinear": rg.Bilinear(matrix).tile(query, key, matrix),
        "additive": rg.Additive(w).tile(query @ for_query, key @ for_key, w),
    }


def entropy(scores):
    """Mean entropy of the softmax, in nats."""
    return float(torch.special.entr(scores.double().softmax(-1)).sum(-1).mean())


def gradient(scores):
    """Mean norm of the softmax's Jacobian, ``diag(p) − p pᵀ``."""
    p = scores.double().softmax(-1)
    jacobian = torch.diag_embed(p) - p[:, :, None] * p[:, None]
    return float(jacobian.flatten(1).norm(dim=1).mean())


def main(widths, out):
    """Print and draw."""
    every = {width: scores(width) for width in widths}
    figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    print(f"{'score':11} {'width =':8}", *(f"{width:8,}" for width in widths))
    for name in every[widths[0]]:
        of_width = [every[width][name] for width in widths]
        entropies, gradients = list(map(entropy, of_width)), list(map(gradient, of_width))
        print(f"{name:11} variance", *(f"{float(each.var()):8.1f}" for each in of_width))
        print(f"{'':11} entropy ", *(f"{each:8.2f}" for each in entropies))
        print(f"{'':11} gradient", *(f"{each:8.3f}" for each in gradients))
        axes[0].semilogx(widths, entropies, marker="o", label=name)
        axes[1].loglog(widths, gradients, marker="o", label=name)
    axes[0].axhline(log(32), color="gray", linestyle=":", label="all keys alike")
    axes[0].set(xlabel="width d", ylabel="entropy of the softmax, nats")
    axes[1].set(xlabel="width d", ylabel="gradient of the softmax")
    axes[0].legend()
    figure.savefig(out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--widths", type=int, nargs="+", default=[4, 16, 64, 256, 1024])
    parser.add_argument("--out", default="scores.svg")
    main(**vars(parser.parse_args()))
