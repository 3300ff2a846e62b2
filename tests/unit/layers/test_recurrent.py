import math

import pytest
import torch
from torch import nn

from regard.errors import SettingError
from regard.layers import RecurrentCell, RecurrentEncoder

B, S, X, h = 3, 5, 7, 2
CELLS = ["gru", "lstm", "rnn"]


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def affine(weight, bias, x):
    return [
        sum(w * v for w, v in zip(row, x, strict=True)) + b
        for row, b in zip(weight, bias, strict=True)
    ]


def loop_step(cell, gates_in, gates_hidden, hidden, memory):
    """One step of one sentence in plain numbers: the new hidden values and LSTM's memory."""
    if cell == "rnn":
        return [math.tanh(a + b) for a, b in zip(gates_in, gates_hidden, strict=True)], memory
    if cell == "gru":
        new = []
        for i in range(h):
            reset = sigmoid(gates_in[i] + gates_hidden[i])
            update = sigmoid(gates_in[h + i] + gates_hidden[h + i])
            fresh = math.tanh(gates_in[2 * h + i] + reset * gates_hidden[2 * h + i])
            new.append((1 - update) * fresh + update * hidden[i])
        return new, memory
    gates = [a + b for a, b in zip(gates_in, gates_hidden, strict=True)]
    new, new_memory = [], []
    for i in range(h):
        keep_in, forget, show = (sigmoid(gates[k * h + i]) for k in range(3))
        value = forget * memory[i] + keep_in * math.tanh(gates[3 * h + i])
        new_memory.append(value)
        new.append(show * math.tanh(value))
    return new, new_memory


def randomised(module):
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    return module.double()


@pytest.mark.parametrize("cell", CELLS)
def test_steps_are_the_formulas(cell):
    layer = randomised(RecurrentCell(cell, X, h))
    inputs = torch.randn(B, S, X, dtype=torch.float64)
    state = torch.randn(B, layer.state_dim, dtype=torch.float64)
    found = [state]
    for gates in layer.project(inputs).unbind(1):
        found.append(layer(gates, found[-1]))
    W, b = layer.input.weight.tolist(), layer.input.bias.tolist()
    U, c = layer.hidden.weight.tolist(), layer.hidden.bias.tolist()
    for row in range(B):
        hidden, memory = state[row, :h].tolist(), state[row, h:].tolist()
        for t in range(S):
            gates_in = affine(W, b, inputs[row, t].tolist())
            hidden, memory = loop_step(cell, gates_in, affine(U, c, hidden), hidden, memory)
            assert found[t + 1][row].tolist() == pytest.approx(hidden + memory)
            assert layer.output(found[t + 1])[row].tolist() == pytest.approx(hidden)


def test_a_state_stays_whole_when_gates_come_in_half_precision():
    layer = RecurrentCell("gru", X, h)
    with torch.autocast("cpu", torch.bfloat16):
        gates = layer.project(torch.randn(B, X))
        state = layer(gates, torch.randn(B, h))
    assert gates.dtype == torch.bfloat16
    assert state.dtype == torch.float32


@pytest.mark.parametrize("cell", CELLS)
def test_encoder_is_the_formulas_in_both_directions(cell):
    encoder = randomised(RecurrentEncoder(cell, X, h))
    inputs, lengths = torch.randn(B, S, X, dtype=torch.float64), torch.tensor([3, 5, 1])
    out, last = encoder(inputs, lengths)
    parameters = {name: p.tolist() for name, p in encoder.recurrence.named_parameters()}
    for row in range(B):
        n = int(lengths[row])
        ends = []
        for side, suffix in ((0, ""), (1, "_reverse")):
            order = range(n) if side == 0 else range(n - 1, -1, -1)
            hidden, memory = [0.0] * h, [0.0] * h
            for t in order:
                W, U = (parameters[f"weight_{k}_l0{suffix}"] for k in ("ih", "hh"))
                b, c = (parameters[f"bias_{k}_l0{suffix}"] for k in ("ih", "hh"))
                gates_in, gates_hidden = (
                    affine(W, b, inputs[row, t].tolist()),
                    affine(U, c, hidden),
                )
                if cell == "lstm":  # torch's order of gates, into ours
                    gates_in, gates_hidden = (
                        g[: 2 * h] + g[3 * h :] + g[2 * h : 3 * h] for g in (gates_in, gates_hidden)
                    )
                hidden, memory = loop_step(cell, gates_in, gates_hidden, hidden, memory)
                found = out[row, t, side * h : (side + 1) * h].tolist()
                assert found == pytest.approx(hidden)
            ends += hidden
        assert last[row].tolist() == pytest.approx(ends)
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
    found = []
    for read in (encoder._packed, encoder._unpacked):
        encoder.zero_grad()
        out = read(inputs, lengths)
        out.square().sum().backward()
        found.append([out, *(p.grad.clone() for p in encoder.parameters())])
    torch.testing.assert_close(*found)


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


@pytest.mark.parametrize("build", [RecurrentCell, RecurrentEncoder])
def test_unknown_cell_is_named_with_the_nearest(build):
    with pytest.raises(SettingError, match=r"cell must be .*; got 'gruu'. Did you mean 'gru'"):
        build("gruu", X, h)
