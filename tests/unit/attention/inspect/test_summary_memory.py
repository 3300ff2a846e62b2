"""Summaries of thousands of queries and keys hold blocks, never the matrix.

Forward and backward of any kind stay below a fraction of one matrix of float32.
"""

import pytest
import torch
from tests.profiling import profiled

import regard as rg

pytestmark = pytest.mark.slow

H, N, M, D = 3, 3001, 4003, 8
MATRIX = 4 * H * N * M
CALLS = {
    "plain": {},
    "causal": {"mask": rg.causal()},
    "window": {"mask": rg.window(before=50)},
    "documents": {"mask": rg.documents(torch.arange(N) // 101, torch.arange(M) // 127)},
    "where": {"mask": rg.where(lambda b, h, i, j: (i + j) % 3 > 0)},
    "ALiBi": {"bias": rg.alibi()},
    "sparsemax": {"weighting": rg.Sparsemax(), "mask": rg.window(before=300)},
}


def random_inputs():
    return [torch.randn(1, H, size, D, requires_grad=True) for size in (N, M)]


@pytest.mark.parametrize("options", CALLS.values(), ids=list(CALLS))
def test_no_summary_holds_the_matrix(options):
    query, key = random_inputs()
    # At most two blocks of 2 M scores of four bytes, the gradients' copies of them, and O(N).
    profile = profiled(lambda: rg.summarize(query, key, **options))
    assert profile.largest < MATRIX / 2
    assert profile.peak < MATRIX / 2


def test_no_gradient_of_a_summary_holds_the_matrix():
    query, key = random_inputs()
    mask = rg.window(before=100)

    def call():
        summary = rg.summarize(query, key, mask=mask)
        loss = summary.entropy.sum() + summary.received.square().sum()
        loss.backward()

    assert profiled(call).peak < MATRIX / 2
