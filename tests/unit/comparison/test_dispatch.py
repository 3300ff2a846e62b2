"""What is counted as it is dispatched is what was done."""

import pytest
import torch
from torch.nn import functional as F

import regard as rg
from regard.comparison.dispatch import peak_bytes, trace

N, D, M = 5, 7, 11


@pytest.mark.parametrize(
    ("call", "products"),
    [
        (lambda x: x @ torch.ones(D, M), N * D * M),
        (lambda x: F.linear(x, torch.ones(M, D), torch.ones(M)), N * D * M),
        (lambda x: torch.ones(3, M, N) @ x, 3 * M * N * D),
        (lambda x: x @ torch.ones(D), N * D),
        (lambda x: torch.mv(x, torch.ones(D)), N * D),
        (lambda x: F.conv1d(x.T[None], torch.ones(M, D, 3), padding=1), 3 * N * D * M),
        (lambda x: rg.attend(x[None, None], x[None, None]), 2 * N * N * D),
        (lambda x: x.tanh() + x, 0),
    ],
    ids=["mm", "addmm", "bmm", "vector", "mv", "convolution", "fused attention", "none"],
)
def test_multiply_adds_are_those_of_the_sizes(call, products):
    assert trace(call, torch.randn(N, D)).multiply_adds == products


def test_steps_count_the_longest_chain_and_not_the_kernels():
    def wide(x):
        return sum(((x + k).exp() for k in range(4)), start=torch.zeros(1))

    # add, exp, then a sum one after another; the first of those adds a constant.
    assert trace(wide, torch.randn(3)).steps == 2 + 4
    assert trace(wide, torch.randn(3)).kernels == 8 + 4 + 1


def test_views_cost_no_step_and_are_followed():
    assert trace(lambda x: x.T[2:].reshape(-1)[None].exp(), torch.randn(5, 7).T).steps == 1


def test_writing_into_parts_of_one_tensor_makes_nobody_wait_for_another_part():
    def in_parts(x):
        out = torch.empty_like(x)
        for row in range(len(x)):
            out[row] = x[row].exp()
        return out

    assert trace(in_parts, torch.randn(5, 7)).steps == 2


def test_reading_a_part_waits_for_that_part_alone():
    def one_of_two(x):
        out = torch.empty(2, 7)
        out[0] = x.exp().exp().exp().exp().exp()
        out[1] = x.exp()
        return out[1].tanh()

    assert trace(one_of_two, torch.randn(7)).steps == 3


def test_writing_over_what_was_written_waits():
    def in_place(x):
        out = torch.empty_like(x)
        for _ in range(5):
            out.add_(x)
        return out

    assert trace(in_place, torch.randn(7)).steps == 5


def test_what_does_not_come_from_the_input_makes_nobody_wait():
    def masked(x):
        mask = (torch.arange(7) + 1 > 3).logical_not()
        return x.masked_fill(mask, 0.0)

    assert trace(masked, torch.randn(7)).steps == 1


def test_bytes_are_those_held_at_once():
    x = torch.ones(256)  # 1 KiB
    assert peak_bytes(lambda: x + 1) == 1024
    assert peak_bytes(lambda: (x + 1) + 1) == 2 * 1024
    assert peak_bytes(lambda: [x + 1, x + 1, x + 1]) == 3 * 1024
    assert peak_bytes(lambda: x.view(16, 16)[:3].T) == 0
    assert peak_bytes(lambda: x.add_(1)) == 0


def test_what_a_gradient_needs_is_held():
    x = torch.ones(256, requires_grad=True)

    def kept():
        return x.exp().exp().exp()

    with torch.no_grad():
        assert peak_bytes(kept) == 2 * 1024
    assert peak_bytes(kept) == 3 * 1024
