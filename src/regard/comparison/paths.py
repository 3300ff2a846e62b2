"""The longest path of a layer, found by the gradient: who can know of whom, after how many hops."""

from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from regard.comparison.candidates import Candidate, LayerSizes


def path_length(make: Callable[[LayerSizes], Candidate], sizes: LayerSizes) -> int:
    """How many hops until the last output has a gradient at the first input.

    Layers are stacked, or a recurrence is taken one step further at every place at once, until the
    gradient there is not zero. In float64, with weights drawn anew for each: what reaches whom does
    not depend on them.

    Args:
        make: The layer of a stack, by its sizes.
        sizes: Of the first one.

    Example:
        >>> from regard.comparison.candidates import Convolution, SelfAttentionLayer
        >>> path_length(Convolution, LayerSizes(length=9, width=2, kernel=3))
        4
        >>> path_length(SelfAttentionLayer, LayerSizes(length=9, width=2))
        1
    """
    generator = torch.Generator().manual_seed(0)
    shape = (sizes.length, sizes.width)
    inputs = torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
    asked = torch.randn(sizes.width, generator=generator, dtype=torch.float64)
    states = None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for hops in range(1, 2 * sizes.length):
            layer = make(replace(sizes, depth=hops - 1)).double()
            states = layer.hop(inputs, layer.start(inputs) if states is None else states)
            if bool(_gradient(states[-1] @ asked, inputs)[0].any()):
                return hops
    raise AssertionError("the first input never reached the last output")


def _gradient(of: Tensor, inputs: Float[Tensor, "N C"]) -> Float[Tensor, "N C"]:
    (gradient,) = torch.autograd.grad(of, inputs, retain_graph=True, allow_unused=True)
    return torch.zeros_like(inputs) if gradient is None else gradient
