"""Layer norm and batch norm on sentences of different lengths.

    python examples/experiments/norms.py [--batches 50] [--out FILE.svg]

The states are the outputs of self-attention over random tokens: the longer a sentence, the more
values each is a mean of, and the smaller it is. A layer norm looks at one state at a time; a batch
norm divides by the size of its batch, and in use by the average of training.
"""

import argparse

import matplotlib.pyplot as plt
import torch

import regard as rg
from regard.layers.residual import BatchNorm

BATCH, LENGTH, WIDTH = 16, 32, 32


def states(lengths, first=None):
    """States (B, N, C), zero on padding, and which are real; the first sentence may be given."""
    tokens = torch.randn(len(lengths), int(lengths.max()), WIDTH)
    if first is not None:
        tokens[0, : len(first)] = first
    is_real = torch.arange(tokens.shape[1]) < lengths[:, None]
    out = rg.attend(tokens[:, None], tokens[:, None], mask=rg.lengths(lengths.tolist()))[:, 0]
    return out * is_real[..., None], is_real


def draw_lengths(spread):
    """Lengths of a batch, ``LENGTH`` give or take ``spread``."""
    return torch.randint(LENGTH - spread, LENGTH + spread + 1, (BATCH,))


@torch.no_grad()
def jitter(spread, batches=50):
    """How far one sentence's states move with the rest of the batch, for each norm."""
    torch.manual_seed(0)
    same, outputs = torch.randn(LENGTH, WIDTH), {}
    for _ in range(batches):
        lengths = draw_lengths(spread)
        lengths[0] = LENGTH
        batch, is_real = states(lengths, first=same)
        normed = {
            "layer norm": torch.nn.functional.layer_norm(batch, (WIDTH,)),
            "batch norm": BatchNorm(WIDTH)(batch, is_real),
            "batch norm, padding counted": BatchNorm(WIDTH)(batch),
        }
        for name, each in normed.items():
            outputs.setdefault(name, []).append(each[0, :LENGTH])
    return {name: float(torch.stack(each).std(0).mean()) for name, each in outputs.items()}


@torch.no_grad()
def deviation_in_use(times, batches=50):
    """Deviation of normed states of longer sentences than in training; one is right."""
    torch.manual_seed(0)
    norm = BatchNorm(WIDTH)
    for _ in range(batches):
        norm(*states(draw_lengths(LENGTH - 1)))
    longer, _ = states(torch.full((BATCH,), times * LENGTH))
    layer = torch.nn.functional.layer_norm(longer, (WIDTH,))
    return {"layer norm": float(layer.std()), "batch norm": float(norm.eval()(longer).std())}


def main(batches, out):
    """Print and draw."""
    spreads = (0, 8, 16, 31)
    found = [jitter(spread, batches) for spread in spreads]
    print(f"{'jitter, lengths 32 ±':28}", *(f"{spread:6}" for spread in spreads))
    for name in found[0]:
        line = [each[name] for each in found]
        print(f"{name:28}", *(f"{value:6.3f}" for value in line))
        plt.plot(spreads, line, marker="o", label=name)
    print("deviation in use:")
    for times in (1, 4, 16):
        values = deviation_in_use(times, batches)
        print(
            f"{times:4} times as long:", *(f"{name} {value:.2f}," for name, value in values.items())
        )
    plt.gca().set(xlabel="lengths, 32 ± this many", ylabel="jitter of one sentence's states")
    plt.legend()
    plt.savefig(out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=50)
    parser.add_argument("--out", default="norms.svg")
    main(**vars(parser.parse_args()))
