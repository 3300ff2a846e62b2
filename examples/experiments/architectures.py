"""Convolution, recurrence and self-attention: kernels in a row, longest path, memory.

    python examples/experiments/architectures.py [--lengths 64 128 256 512 1024] [--out FILE.svg]

Table 1 of Vaswani et al. (2017), https://arxiv.org/abs/1706.03762, counted as kernels start.
"""

import argparse
import weakref

import matplotlib.pyplot as plt
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import regard as rg


def recurrence(states):
    """``h_t = tanh(x_t + U h_{t-1})``, one position after another."""
    weight = torch.ones(states.shape[1], states.shape[1], requires_grad=True)
    outputs = [torch.zeros(states.shape[1])]
    for row in states:
        outputs.append(torch.tanh(row + weight @ outputs[-1]))
    return torch.stack(outputs[1:])


def convolution(states):
    """A causal convolution of three positions."""
    weight = torch.ones(states.shape[1], states.shape[1], 3, requires_grad=True)
    return torch.conv1d(states.T, weight, padding=2)[:, :-2].T


LAYERS = {layer.__name__: layer for layer in (convolution, recurrence)} | {
    "self-attention, as written": lambda x: (x @ x.T / x.shape[1] ** 0.5).softmax(-1) @ x,
    "self-attention by attend": lambda x: rg.attend(x[None, None], x[None, None])[0, 0],
}


class Counter(TorchDispatchMode):
    """Counts kernels started, and the most bytes that their results take at once."""

    kernels = held = peak = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        before, after = (
            {t.untyped_storage()._cdata: t for t in tree_leaves(tree) if torch.is_tensor(t)}
            for tree in ((args, kwargs), out)
        )
        made = [after[address].untyped_storage() for address in after.keys() - before.keys()]
        self.kernels += bool(made) and "empty" not in str(func)
        for storage in made:
            self.hold(storage.nbytes())
            weakref.finalize(storage, self.hold, -storage.nbytes())
        return out

    def hold(self, size):
        self.held += size
        self.peak = max(self.peak, self.held)


def measure(layer, length, width=64):
    """Kernels of a forward pass, and peak bytes of a training step."""
    states = torch.randn(length, width, requires_grad=True)
    with Counter() as counter:
        outputs, kernels = layer(states), counter.kernels
        outputs.sum().backward()
    return kernels, counter.peak


def path(layer, length):
    """Hops until the last output has a gradient at the first input: layers, or recurrent steps."""
    inputs = torch.rand(length, 4).mul(1e-3).requires_grad_()
    states = torch.zeros_like(inputs) if layer is recurrence else inputs
    for hops in range(1, length + 1):
        before = torch.cat([torch.zeros_like(states[:1]), states[:-1]])  # a step at all positions
        states = torch.tanh(inputs + before) if layer is recurrence else layer(states)
        if torch.autograd.grad(states[-1].sum(), inputs, retain_graph=True)[0][0].any():
            return hops
    return None


def main(lengths, out):
    """Print and draw."""
    print(f"{'layer':27} {'kernels, n =':>13} {lengths[-1]} {'path, n = 64':>13} {'MiB':>7}")
    for name, layer in LAYERS.items():
        kernels, peaks = zip(*(measure(layer, n) for n in lengths), strict=True)
        print(f"{name:27} {kernels[-1]:18,} {path(layer, 64):13} {peaks[-1] / 2**20:7.1f}")
        plt.loglog(lengths, [peak / 2**20 for peak in peaks], marker="o", label=name)
    plt.gca().set(xlabel="length n", ylabel="MiB of a training step")
    plt.legend()
    plt.savefig(out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lengths", type=int, nargs="+", default=[64, 128, 256, 512, 1024])
    parser.add_argument("--out", default="architectures.svg")
    main(**vars(parser.parse_args()))
