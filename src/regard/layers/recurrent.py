"""Recurrent encoders and decoder cells, three kinds: plain, gated, long short-term memory."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.checks import choose
from regard.layers.inputs import row_lengths
from regard.layers.unrolled import CELLS, takes_sequences, unroll

ENCODERS: dict[str, Callable[..., nn.RNNBase]] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
_ONE_DIRECTION: dict[str, Callable[..., tuple[Tensor, ...]]] = {
    "RNN_TANH": torch.rnn_tanh,
    "GRU": torch.gru,
    "LSTM": torch.lstm,
}


class RecurrentEncoder(nn.Module):
    """Reads a sequence in both directions; padding is never read.

    Args:
        cell: ``rnn`` (Elman), ``gru`` (Cho et al., 2014) or ``lstm`` (Hochreiter & Schmidhuber, 1997).
        input_dim: Width of the inputs.
        hidden_dim: Width of one direction's state; an output has twice that.
        num_layers: Stacked bidirectional layers.
        dropout: Share dropped between layers while training.

    Raises:
        SettingError: The cell is unknown.

    Example:
        >>> encoder = RecurrentEncoder("gru", input_dim=3, hidden_dim=4)
        >>> outputs, last = encoder(torch.ones(2, 5, 3), torch.tensor([5, 2]))
        >>> outputs.shape, last.shape, outputs[1, 2:].any().item()
        (torch.Size([2, 5, 8]), torch.Size([2, 8]), False)
    """  # noqa: E501

    def __init__(
        self,
        cell: str,
        input_dim: int,
        hidden_dim: int,
        *,
        num_layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.hidden_dim = hidden_dim
        self.recurrence = choose("cell", cell, ENCODERS)(
            input_dim,
            hidden_dim,
            num_layers=num_layers,
            batch_first=True,
            bidirectional=True,
            dropout=dropout if num_layers > 1 else 0.0,
        )
        for name, parameter in self.recurrence.named_parameters():
            _initialise(name, parameter)

    def forward(
        self, inputs: Float[Tensor, "B S X"], lengths: Int[Tensor, " B"]
    ) -> tuple[Float[Tensor, "B S Y"], Float[Tensor, "B Y"]]:
        """The outputs (zero on padding), and the two directions' last states side by side."""
        lengths = row_lengths("lengths", lengths, "inputs", inputs.shape[:2])
        if not inputs.shape[1]:
            nothing = inputs.new_zeros(len(inputs), 2 * self.hidden_dim)
            return nothing[:, None][:, :0], nothing
        out = (self._packed if inputs.is_cuda else self._unpacked)(inputs, lengths)
        forward_end = out[torch.arange(len(out), device=out.device), lengths - 1, : self.hidden_dim]
        backward_end = out[:, 0, self.hidden_dim :]
        return out, torch.cat([forward_end, backward_end], dim=-1)

    def _packed(self, inputs: Tensor, lengths: Tensor) -> Tensor:
        """Rows without their padding, in one call; on a CPU its backward pass takes N² time."""
        with torch.autocast("cuda", enabled=False):
            packed = pack_padded_sequence(
                inputs.to(self._dtype), lengths.cpu(), batch_first=True, enforce_sorted=False
            )
            states, _ = self.recurrence(packed)
            return pad_packed_sequence(states, batch_first=True, total_length=inputs.shape[1])[0]

    @property
    def _dtype(self) -> torch.dtype:
        """Dtype of states: long sums, which stay whole where autocast makes inputs half."""
        return next(self.recurrence.parameters()).dtype

    def _unpacked(self, inputs: Tensor, lengths: Tensor) -> Tensor:
        """Padded rows, one direction at a time: states after a row's end are thrown away."""
        positions = torch.arange(inputs.shape[1], device=inputs.device)
        real = positions < lengths[:, None]
        # The order in which each row is read backwards, in front of its padding.
        turned = torch.where(real, lengths[:, None] - 1 - positions, positions)[..., None]
        states = inputs
        for layer in range(self.recurrence.num_layers):
            if layer:
                states = F.dropout(states, self.recurrence.dropout, self.training)
            ahead = self._direction(states, f"l{layer}")
            back = self._direction(states.gather(1, turned.expand_as(states)), f"l{layer}_reverse")
            states = torch.cat([ahead, back.gather(1, turned.expand_as(back))], dim=-1)
        return states.masked_fill(~real[..., None], 0)

    def _direction(self, inputs: Tensor, name: str) -> Tensor:
        weights = [
            self.recurrence.get_parameter(f"{kind}_{name}")
            for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        ]
        mode, rows = self.recurrence.mode, len(inputs)
        is_lstm = mode == "LSTM"
        # In float32, a layer of torch's LSTM takes less time than its steps.
        is_stepwise = not is_lstm or torch.is_autocast_enabled(inputs.device.type)
        if is_stepwise and takes_sequences(inputs, *weights):
            into, weight, bias, of_state = map(gates_of_lstm, weights) if is_lstm else weights
            cell, width = mode.partition("_")[0].lower(), self.hidden_dim * (1 + is_lstm)
            gates = F.linear(inputs, into, bias)
            return unroll(cell, gates, weight.new_zeros(rows, width), weight, of_state)[0]
        with torch.autocast(inputs.device.type, enabled=False):
            whole = inputs.to(self._dtype)
            start = whole.new_zeros(1, rows, self.hidden_dim)
            states: Tensor = _ONE_DIRECTION[mode](
                whole,
                (start, start) if is_lstm else start,
                weights,
                True,  # with biases
                1,  # one layer
                0.0,  # without dropout
                self.training,
                False,  # in one direction
                True,  # batch first
            )[0]
        return states


def gates_of_lstm(weights: Float[Tensor, "G ..."]) -> Float[Tensor, "G ..."]:
    """Weights of the gates in the order of ``RecurrentCell``, from that of ``nn.LSTM``."""
    keep_in, forget, new, show = weights.chunk(4)
    return torch.cat([keep_in, forget, show, new])


class RecurrentCell(nn.Module):
    """A step of a recurrence whose inputs are projected ahead of time, all steps at once."""

    # A state is one (B, h) tensor; an LSTM's holds hidden and cell side by side, (B, 2h).

    def __init__(self, cell: str, input_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.advance, self.num_gates = choose("cell", cell, CELLS)
        self.hidden_dim = hidden_dim
        self.state_dim = 2 * hidden_dim if cell == "lstm" else hidden_dim
        self.input = nn.Linear(input_dim, self.num_gates * hidden_dim)
        self.hidden = nn.Linear(hidden_dim, self.num_gates * hidden_dim)
        for name, parameter in self.named_parameters():
            _initialise(f"hh_{name}" if name.startswith("hidden") else name, parameter)

    def project(self, inputs: Float[Tensor, "*batch X"]) -> Float[Tensor, "*batch G"]:
        """The inputs' share of every gate."""
        gates: Tensor = self.input(inputs)
        return gates

    def forward(
        self, projected: Float[Tensor, "B G"], state: Float[Tensor, "B Y"]
    ) -> Float[Tensor, "B Y"]:
        """The state after one step."""
        hidden_gates = self.hidden(state[:, : self.hidden_dim])
        # Under autocast gates come in half precision; the state is a long sum and stays whole.
        return self.advance(projected.to(state.dtype), hidden_gates.to(state.dtype), state)

    def output(self, state: Float[Tensor, "B Y"]) -> Float[Tensor, "B h"]:
        """Output of a state."""
        return state[:, : self.hidden_dim]


def _initialise(name: str, parameter: Tensor) -> None:
    """Orthogonal recurrences (Bahdanau et al., 2015, B.1), Xavier inputs, zero biases, gate by gate."""  # noqa: E501
    if parameter.dim() < 2:
        nn.init.zeros_(parameter)
    elif "hh_" in name:
        for gate in parameter.data.chunk(len(parameter) // parameter.shape[1]):
            nn.init.orthogonal_(gate)
    else:
        nn.init.xavier_uniform_(parameter)
