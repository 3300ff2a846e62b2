"""Recurrent cells and encoders: each is its formula, step by step."""

from copy import deepcopy

import pytest
import torch
from torch import nn

from regard.layers import RecurrentEncoder
from regard.layers.recurrent import RecurrentCell

B, S, X, h = 3, 5, 7, 2
CELLS = ["gru", "lstm", "rnn"]


def formula(cell, gates_in, gates_hidden, state):
    """One step of one sentence: the hidden values and, of an LSTM, its memory behind them."""
    if cell == "rnn":
        return (gates_in + gates_hidden).tanh()
    inputs, hiddens = gates_in.view(-1, h), gates_hidden.view(-1, h)
    if cell == "gru":
        reset, update = (inputs[:2] + hiddens[:2]).sigmoid()
        return (1 - update) * (inputs[2] + reset * hiddens[2]).tanh() + update * state
    keep_in, forget, show = (inputs[:3] + hiddens[:3]).sigmoid()
    memory = forget * state[h:] + keep_in * (inputs[3] + hiddens[3]).tanh()
    return torch.cat([show * memory.tanh(), memory])


def randomised(module):
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    return module.double()


@pytest.mark.parametrize("cell", CELLS)
@torch.no_grad()
def test_steps_are_the_formulas(cell):
    layer = randomised(RecurrentCell(cell, X, h))
    inputs = torch.randn(B, S, X, dtype=torch.float64)
    state = torch.randn(B, layer.state_dim, dtype=torch.float64)
    states = [state]
    for gates in layer.project(inputs).unbind(1):
        states.append(layer(gates, states[-1]))
    for row in range(B):
        expected = state[row]
        for t in range(S):
            expected = formula(
                cell, layer.input(inputs[row, t]), layer.hidden(expected[:h]), expected
            )
            torch.testing.assert_close(states[t + 1][row], expected)
            torch.testing.assert_close(layer.output(states[t + 1])[row], expected[:h])


def test_a_state_stays_whole_when_gates_come_in_half_precision():
    layer = RecurrentCell("gru", X, h)
    with torch.autocast("cpu", torch.bfloat16):
        gates = layer.project(torch.randn(B, X))
        state = layer(gates, torch.randn(B, h))
    assert gates.dtype == torch.bfloat16
    assert state.dtype == torch.float32


@pytest.mark.parametrize("cell", CELLS)
@torch.no_grad()
def test_encoder_is_the_formulas_in_both_directions(cell):
    encoder = randomised(RecurrentEncoder(cell, X, h))
    inputs, lengths = torch.randn(B, S, X, dtype=torch.float64), torch.tensor([3, 5, 1])
    out, last = encoder(inputs, lengths)
    parameters = dict(encoder.recurrence.named_parameters())
    # Torch's order of gates, into ours.
    order = [0, 1, 3, 2] if cell == "lstm" else list(range(3 if cell == "gru" else 1))
    for row, n in enumerate(lengths.tolist()):
        ends = []
        for side, suffix in enumerate(("", "_reverse")):
            W, U, b, c = (
                parameters[f"{name}_l0{suffix}"].unflatten(0, (-1, h))[order].flatten(0, 1)
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            )
            state = torch.zeros(2 * h if cell == "lstm" else h).double()
            for t in range(n)[:: -1 if side else 1]:
                state = formula(cell, W @ inputs[row, t] + b, U @ state[:h] + c, state)
                output = out[row, t, side * h : (side + 1) * h]
                torch.testing.assert_close(output, state[:h])
            ends.append(state[:h])
        torch.testing.assert_close(last[row], torch.cat(ends))
        assert not out[row, n:].any()


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("num_layers", [1, 2])
def test_what_stands_on_padding_changes_nothing(cell, num_layers):
    encoder = RecurrentEncoder(cell, X, h, num_layers=num_layers)
    inputs, lengths = torch.randn(B, S, X), torch.tensor([3, 5, 1])
    out, last = encoder(inputs, lengths)
    noisy = torch.cat([inputs, torch.full((B, 4, X), 1e4)], dim=1)
    for row, n in enumerate(lengths.tolist()):
        noisy[row, n:] = 1e4
    noisy_out, noisy_last = encoder(noisy, lengths)
    torch.testing.assert_close(noisy_out[:, :S], out)
    assert noisy_out.shape == (B, S + 4, 2 * h)
    assert not noisy_out[:, S:].any()
    torch.testing.assert_close(noisy_last, last)


@pytest.mark.parametrize("cell", CELLS)
def test_packed_rows_and_padded_ones_give_the_same_states_and_gradients(cell):
    """On a GPU rows are packed, on a CPU they are not."""
    encoder = RecurrentEncoder(cell, X, h, num_layers=2).double()
    inputs, lengths = torch.randn(B, S, X, dtype=torch.float64), torch.tensor([3, 5, 1])
    results = []
    for read in (encoder._packed, encoder._unpacked):
        encoder.zero_grad()
        out = read(inputs, lengths)
        out.square().sum().backward()
        results.append([out, *(p.grad.clone() for p in encoder.parameters())])
    torch.testing.assert_close(*results)


@pytest.mark.parametrize("cell", CELLS)
def test_products_in_half_precision_leave_an_encoder_its_states_and_gradients(cell):
    encoder = RecurrentEncoder(cell, X, 16, num_layers=2)  # of fewer, one gradient may vanish
    inputs, lengths = torch.randn(B, S, X), torch.tensor([3, 5, 1])

    def derivatives(read, inputs):
        out, last = read(inputs, lengths)
        return [out, *torch.autograd.grad(out.square().sum() + last.sum(), [*read.parameters()])]

    expected = derivatives(deepcopy(encoder).double(), inputs.double())
    with torch.autocast("cpu", torch.bfloat16):
        got = derivatives(encoder, inputs)
        rounded = encoder(inputs.bfloat16(), lengths)[0]
    for one, value in zip(got, expected, strict=True):
        assert one.dtype == torch.float32
        error = (one - value).norm() / value.norm()
        assert 1e-6 < error < 0.03
    assert rounded.dtype == torch.float32


def test_dropout_works_between_encoder_layers_only():
    inputs, lengths = torch.randn(B, S, X), torch.tensor([3, 5, 1])
    for num_layers, differs in ((1, False), (2, True)):
        encoder = RecurrentEncoder("gru", X, h, num_layers=num_layers, dropout=0.5).train()
        one, other = encoder(inputs, lengths)[0], encoder(inputs, lengths)[0]
        assert torch.equal(one, other) != differs


def test_recurrent_weights_begin_orthogonal_gate_by_gate():
    for module, name in (
        (RecurrentCell("lstm", X, 17), "hidden.weight"),
        (RecurrentEncoder("lstm", X, 17).recurrence, "weight_hh_l0_reverse"),
    ):
        parameters = dict(module.named_parameters())
        for gate in parameters[name].chunk(4):
            torch.testing.assert_close(gate @ gate.T, torch.eye(17), atol=1e-5, rtol=0)
        assert not any(p.any() for key, p in parameters.items() if "bias" in key)
