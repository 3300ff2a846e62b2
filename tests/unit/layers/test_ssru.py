import math

import pytest
import torch

from regard.layers import SSRU, Packing, RecurrentCache
from regard.layers.ssru import recurrence

B, N, C = 2, 7, 5


def layer(dtype=torch.float64):
    made = SSRU(C).to(dtype)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter)
    return made


def loop(made, states, first=None):
    """The formulas in plain numbers, sentence by sentence."""
    (gate_rows, value_rows) = made.gate_value.weight.double().chunk(2)
    bias, out, last = made.gate_bias.tolist(), [], []
    for b, sentence in enumerate(states.tolist()):
        kept = [0.0] * C if first is None else first[b].tolist()
        out.append([])
        for x in sentence:
            for c in range(C):
                told = sum(w * v for w, v in zip(gate_rows[c].tolist(), x, strict=True)) + bias[c]
                value = sum(w * v for w, v in zip(value_rows[c].tolist(), x, strict=True))
                gate = 1 / (1 + math.exp(-told))
                kept[c] = gate * kept[c] + (1 - gate) * value
            out[b].append([max(each, 0.0) for each in kept])
        last.append(kept)
    return torch.tensor(out, dtype=torch.float64), torch.tensor(last, dtype=torch.float64)


def test_it_is_the_formula():
    made, states = layer(), torch.randn(B, N, C, dtype=torch.float64)
    found, kept = made(states, cache=made.empty_cache(B))
    expected, last = loop(made, states)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(kept.state, last)
    assert (found > 0).any()
    assert (found == 0).any()
    assert made(states)[1] is None


def test_it_goes_on_from_a_state_in_steps_of_any_length():
    made, states = layer(), torch.randn(B, N, C, dtype=torch.float64)
    first = torch.randn(B, C, dtype=torch.float64)
    expected, last = loop(made, states, first)
    for ends in ([N], [1, 4, N], range(1, N + 1)):
        cache, parts, begin = RecurrentCache(first, 0), [], 0
        for end in ends:
            part, cache = made(states[:, begin:end], cache=cache)
            parts.append(part)
            begin = end
        torch.testing.assert_close(torch.cat(parts, dim=1), expected)
        torch.testing.assert_close(cache.state, last)
        assert cache.length == N
        assert cache.state.shape == (B, C)


def test_rows_of_a_cache_can_be_taken_in_any_order():
    cache = RecurrentCache(torch.arange(6.0).view(2, 3), 4).select(torch.tensor([1, 1, 0]))
    assert cache.state.tolist() == [[3, 4, 5], [3, 4, 5], [0, 1, 2]]
    assert cache.length == 4


def test_no_position_knows_a_later_one():
    made, states = layer(), torch.randn(B, N, C, dtype=torch.float64, requires_grad=True)
    made(states)[0][:, 3].sum().backward()
    assert states.grad[:, 4:].eq(0).all()
    assert states.grad[:, :4].ne(0).any(-1).all()


def test_gradients_of_first_and_second_order_are_right():
    gates, inputs = (torch.rand(2, 4, 3, dtype=torch.float64) for _ in range(2))
    given = [each.requires_grad_() for each in (gates, inputs - 0.5, torch.rand(2, 3).double())]
    assert torch.autograd.gradcheck(recurrence, given)
    assert torch.autograd.gradgradcheck(recurrence, given)
    made, states = layer(), torch.randn(B, N, C, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: made(x)[0], states)


@pytest.mark.parametrize("gate", [0.0, 1.0])
def test_gates_that_are_shut_or_open_lose_nothing(gate):
    inputs, first = torch.randn(1, 500, 3), torch.randn(1, 3)
    gates = torch.full_like(inputs, gate).requires_grad_()
    states = recurrence(gates, inputs, first)
    expected = inputs if gate == 0 else first[:, None] + inputs.double().cumsum(1).float()
    torch.testing.assert_close(states, expected, rtol=1e-4, atol=1e-4)
    states.sum().backward()
    assert gates.grad.isfinite().all()


def test_long_texts_in_float32_are_those_in_float64():
    gates, inputs, first = torch.rand(2, 1000, 3), torch.randn(2, 1000, 3), torch.zeros(2, 3)
    exact = recurrence(gates.double(), inputs.double(), first.double())
    torch.testing.assert_close(recurrence(gates, inputs, first).double(), exact, atol=1e-5, rtol=0)


def test_what_is_packed_gives_what_stands_alone():
    made, states = layer(), torch.randn(B, N, C, dtype=torch.float64)
    packing = Packing(torch.tensor([N, 3]), N)
    packed, _ = made(packing.pack(states), packing=packing)
    whole, _ = made(states)
    torch.testing.assert_close(packed, packing.pack(whole))


def test_states_of_half_precision_are_kept_in_float32():
    made = layer(torch.bfloat16)
    found, cache = made(torch.randn(B, N, C).bfloat16(), cache=made.empty_cache(B))
    assert (found.dtype, cache.state.dtype) == (torch.bfloat16, torch.float32)


def test_a_compiler_sees_one_graph_with_the_same_numbers(as_users_have_it):
    torch._dynamo.reset()
    made, states = layer(torch.float32), torch.randn(B, N, C)
    compiled = torch.compile(lambda x: made(x)[0], backend="aot_eager", fullgraph=True)
    grads = []
    for run in (lambda x: made(x)[0], compiled):
        given = states.clone().requires_grad_()
        run(given).square().sum().backward()
        grads.append(given.grad)
    torch.testing.assert_close(*grads)
