"""Gradients against distance: they vanish or explode in a recurrence, and stay in attention.

    python examples/experiments/gradients.py [--length 64] [--out FILE.svg]

Bengio et al. (1994); Pascanu et al. (2013), https://arxiv.org/abs/1211.5063. An RNN's recurrent
weight is an orthogonal matrix times its spectral radius; one step multiplies the gradient by that
at most, since tanh is nowhere steeper than one.
"""

import argparse

import matplotlib.pyplot as plt
import torch
from torch import nn

import regard as rg


def rnn(width, radius):
    """An RNN whose recurrent weight has this spectral radius."""
    cell = nn.RNN(width, width, bias=False).double()
    nn.init.orthogonal_(cell.weight_hh_l0).data.mul_(radius)
    return lambda inputs: cell(inputs)[0][-1]


def lstm(width, forget_bias):
    """An LSTM; a forget bias of 1 is the advice of Jozefowicz et al. (2015)."""
    cell = nn.LSTM(width, width).double()
    with torch.no_grad():
        cell.bias_ih_l0[width : 2 * width] += forget_bias
    return lambda inputs: cell(inputs)[0][-1]


def attention(width):
    """Self-attention of the last position."""
    maps = [nn.Linear(width, width, bias=False).double() for _ in range(3)]

    def last(inputs):
        query, key, value = (each(inputs) for each in maps)
        return rg.attend(query[-1:], key, value)[0]

    return last


MODELS = {
    "RNN, radius 0.5": lambda width: rnn(width, 0.5),
    "RNN, radius 0.9": lambda width: rnn(width, 0.9),
    "RNN, radius 1.5": lambda width: rnn(width, 1.5),
    "LSTM": lambda width: lstm(width, 0.0),
    "LSTM, forget bias 1": lambda width: lstm(width, 1.0),
    "self-attention": attention,
}


def norms(make, length=64, width=32, input_scale=0.01, seed=0):
    """Norm of the Jacobian of the last output by the input at each distance, the nearest first.

    Inputs are small, so that tanh is nearly straight; with inputs of deviation 1 it is flat, and
    gradients vanish at a radius of 1.5 too.
    """
    torch.manual_seed(seed)
    model = make(width)
    inputs = (input_scale * torch.randn(length, width).double()).requires_grad_()
    last = model(inputs)
    rows = [torch.autograd.grad(each, inputs, retain_graph=True)[0] for each in last]
    return torch.stack(rows).flip(1).square().sum((0, 2)).sqrt()


def factor(norms):
    """By how much one step more multiplies the norm; one neither vanishes nor explodes."""
    return float((norms[-2] / norms[1]) ** (1 / (len(norms) - 3)))


def main(length, out):
    """Print and draw."""
    print(f"{'model':20} {'distance 1':>11} {f'{length - 1}':>9} {'factor a step':>14}")
    for name, make in MODELS.items():
        found = norms(make, length)
        print(f"{name:20} {found[1]:11.2g} {found[-1]:9.2g} {factor(found):14.3f}")
        plt.semilogy(found.numpy(), label=name)
    plt.gca().set(xlabel="distance of the input", ylabel="norm of the gradient")
    plt.legend()
    plt.savefig(out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--out", default="gradients.svg")
    main(**vars(parser.parse_args()))
