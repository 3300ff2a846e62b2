"""Positions: waves and bits, shifts as linear maps, and who can tell the order of its inputs.

    python examples/experiments/positions.py [--out FILE.svg]

Sinusoidal positions are those of Vaswani et al. (2017), section 3.5. Row i + δ is row i times a
matrix that does not depend on i: each pair of columns turned by δ times its frequency.
"""

import argparse

import matplotlib.pyplot as plt
import torch

import regard as rg
from regard.layers import RotaryPositions, sinusoidal

LENGTH, WIDTH = 64, 32


def rotation(shift, width=WIDTH):
    """The matrix that moves every row by ``shift`` positions."""
    angles = shift * 10000 ** (-torch.arange(0, width, 2) / width)
    blocks = [torch.tensor([[a.cos(), -a.sin()], [a.sin(), a.cos()]]) for a in angles]
    return torch.block_diag(*blocks)


def shift_error(shift, length=LENGTH, width=WIDTH):
    """How far rows times the rotation are from the rows further on."""
    here = sinusoidal(torch.arange(length), width)
    there = sinusoidal(torch.arange(length) + shift, width)
    return float((here @ rotation(shift, width) - there).abs().max())


def with_waves(states):
    """Self-attention of states with sinusoidal positions added."""
    states = states + sinusoidal(torch.arange(len(states)), states.shape[1])
    return rg.attend(states, states)


def with_rotation(states):
    """Self-attention with rotary positions."""
    turned = RotaryPositions(states.shape[1])(states[None, None])[0, 0]
    return rg.attend(turned, turned, states)


def with_slopes(states):
    """Self-attention with ALiBi."""
    return rg.attend(states[None, None], states[None, None], bias=rg.alibi())[0, 0]


WAYS = {
    "none": lambda states: rg.attend(states, states),
    "none, causal mask": lambda states: rg.attend(states, states, mask=rg.causal()),
    "sinusoidal": with_waves,
    "rotary": with_rotation,
    "ALiBi": with_slopes,
}


def order_error(way, length=LENGTH, width=WIDTH):
    """How far the outputs of shuffled inputs are from the shuffled outputs."""
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(length, width, generator=generator)
    order = torch.randperm(length, generator=generator)
    return float((way(states[order]) - way(states)[order]).abs().max())


def main(out):
    """Print and draw."""
    print("bits of 0 to 7, the lowest first:")
    for bit in range(3):
        print("   ", "".join(str(number >> bit & 1) for number in range(8)))
    for shift in (1, 5, 20):
        print(f"shift by {shift:2}: one matrix moves every row, to {shift_error(shift):.0e}")
    for name, way in WAYS.items():
        found = order_error(way)
        verdict = "cannot tell the order" if found < 1e-5 else "can tell the order"
        print(f"{name:18} {verdict} ({found:.0e})")
    plt.imshow(sinusoidal(torch.arange(LENGTH), WIDTH).numpy(), aspect="auto", cmap="RdBu")
    plt.gca().set(xlabel="column", ylabel="position")
    plt.colorbar()
    plt.savefig(out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="positions.svg")
    main(parser.parse_args().out)
