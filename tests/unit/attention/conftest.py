"""Sizes that are all different primes, so that swapped axes cannot pass."""

import os
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

Inputs = Callable[..., list[Tensor]]

# A process of its own runs these: see there.
collect_ignore = [] if os.environ.get("TRITON_INTERPRET") else ["backends/additive_triton_cases.py"]


@pytest.fixture
def make_inputs():
    """Query, key and value of the sizes B, H, N, M, D, E = 2, 3, 5, 7, 11, 13."""

    def make(
        *, dtype=torch.float64, value_dim=13, key_heads=3, heads=3, queries=5, requires_grad=False
    ):
        shapes = [(2, heads, queries, 11), (2, key_heads, 7, 11), (2, key_heads, 7, value_dim)]
        return [torch.randn(s, dtype=dtype).requires_grad_(requires_grad) for s in shapes]

    return make
