"""Sizes that are all different primes, so that swapped axes cannot pass."""

import os
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor

from regard.attention.backends.base import Refusal
from regard.attention.call import plan
from regard.attention.call.choice import BACKENDS
from regard.attention.masks.bound import Memory

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


@pytest.fixture
def served(monkeypatch):
    """The names of the backends that run, in the order of their calls."""
    names: list[str] = []

    def noting(name, function):
        return lambda *inputs: names.append(name) or function(*inputs)

    def spied_kernel(name, make, request):
        kernel = None if make is None else make(request)
        return None if kernel is None else noting(name, kernel)

    def spied(name, offer_of, request):
        offer = offer_of(request)
        if isinstance(offer, Refusal):
            return offer
        kernel = partial(spied_kernel, name, offer.kernel)
        return offer._replace(run=noting(name, offer.run), kernel=kernel)

    monkeypatch.setattr(plan, "MEMORY", Memory())
    for name, backend in BACKENDS.items():
        monkeypatch.setattr(backend, "offer", partial(spied, name, backend.offer))
    return names
