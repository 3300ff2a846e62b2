"""Weights of whole rows of scores, by compiled loops where there are any."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from regard.attention.weighting import Weighting
from regard.kernels import why_not
from regard.kernels.threads import parallel_for

# Numbers that are worth handing to a thread: a fraction of a millisecond.
_NUMBERS_OF_A_TASK = 2**17


def weights_of(weighting: Weighting, scores: Tensor) -> Tensor:
    """``weighting.rows(scores)``, in one pass where it is compiled."""
    if (code := _code(weighting, scores)) is None:
        return weighting.rows(scores)
    from regard.kernels.attention import weightings

    return _applied(partial(weightings.rows, code), scores)


def gradient_of(weighting: Weighting, weights: Tensor, grad: Tensor) -> Tensor:
    """``weighting.gradient(weights, grad)``, in one pass where it is compiled."""
    if (code := _code(weighting, weights, grad)) is None:
        return weighting.gradient(weights, grad)
    from regard.kernels.attention import weightings

    return _applied(partial(weightings.gradient, code), weights, grad)


def _code(weighting: Weighting, *rows: Tensor) -> int | None:
    """Code of a weighting in compiled loops; None where they cannot run."""
    name = weighting.compiled_as
    if name is None or not all(_may_be_read(tensor) for tensor in rows) or why_not() is not None:
        return None
    from regard.kernels.attention.weightings import CODES

    return CODES[name]


def _may_be_read(tensor: Tensor) -> bool:
    """Whether a loop may read a tensor: nothing is recorded of what it does."""
    is_recorded = torch.is_grad_enabled() and tensor.requires_grad
    return tensor.dtype is torch.float32 and tensor.device.type == "cpu" and not is_recorded


def _applied(loop: Callable[..., None], *rows: Tensor) -> Tensor:
    """Run a loop over rows, and return its output."""
    out = torch.empty_like(rows[0], memory_format=torch.contiguous_format)
    width = max(1, out.shape[-1])
    arrays = [t.detach().contiguous().view(-1, width).numpy() for t in (*rows, out)]
    many = max(1, _NUMBERS_OF_A_TASK // width)

    def do(task: int) -> None:
        loop(*(array[task * many : (task + 1) * many] for array in arrays))

    parallel_for(-(-len(arrays[0]) // many) if out.numel() else 0, do)
    return out
