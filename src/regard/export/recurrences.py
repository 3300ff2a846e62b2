"""Recurrences as single operators of ONNX, for sequences of any length."""

from collections.abc import Sequence
from copy import deepcopy

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.layers import RecurrentEncoder

_Attribute = (
    int | float | str | bool | Sequence[int] | Sequence[float] | Sequence[str] | Sequence[bool]
)
# What ONNX calls a recurrence of torch, and the order it has the gates in.
_OPERATORS = {
    "RNN_TANH": ("RNN", (0,)),
    "GRU": ("GRU", (1, 0, 2)),
    "LSTM": ("LSTM", (0, 3, 1, 2)),
}


def with_operators(model: nn.Module) -> nn.Module:
    """A copy of a model whose recurrent encoders are operators of ONNX, which torch cannot run."""
    copied = deepcopy(model)
    found = [(name, each) for name, each in copied.named_modules() if _is_recurrent(each)]
    for name, each in found:
        assert isinstance(each, RecurrentEncoder)
        copied.set_submodule(name, _OnnxRecurrence(each))
    return copied


def _is_recurrent(module: nn.Module) -> bool:
    return isinstance(module, RecurrentEncoder)


class _OnnxRecurrence(nn.Module):
    """A ``RecurrentEncoder`` in ``RNN``, ``GRU`` or ``LSTM``: https://onnx.ai/onnx/operators."""

    def __init__(self, encoder: RecurrentEncoder) -> None:
        super().__init__()
        self.hidden_dim, self.num_layers = encoder.hidden_dim, encoder.recurrence.num_layers
        self.operator, order = _OPERATORS[encoder.recurrence.mode]

        def both(kind: str, layer: int) -> Tensor:
            weights = [
                encoder.recurrence.get_parameter(f"{kind}_l{layer}{end}").detach()
                for end in ("", "_reverse")
            ]
            gates = [weight.chunk(len(order)) for weight in weights]
            return torch.stack([torch.cat([each[place] for place in order]) for each in gates])

        for layer in range(self.num_layers):
            biases = [both(kind, layer) for kind in ("bias_ih", "bias_hh")]
            self.register_buffer(f"inputs{layer}", both("weight_ih", layer))
            self.register_buffer(f"states{layer}", both("weight_hh", layer))
            self.register_buffer(f"biases{layer}", torch.cat(biases, dim=1))

    def forward(
        self, inputs: Float[Tensor, "B S X"], lengths: Int[Tensor, " B"]
    ) -> tuple[Float[Tensor, "B S Y"], Float[Tensor, "B Y"]]:
        """All outputs (zero on padding), and the two directions' last states side by side."""
        B, S, _ = inputs.shape
        attributes: dict[str, _Attribute] = {
            "hidden_size": self.hidden_dim,
            "direction": "bidirectional",
        }
        if self.operator == "GRU":
            attributes["linear_before_reset"] = 1
        out = inputs
        for layer in range(self.num_layers):
            weights = [self.get_buffer(f"{name}{layer}") for name in ("inputs", "states", "biases")]
            read = torch.onnx.ops.symbolic(
                self.operator,
                [out.transpose(0, 1), *weights, lengths.int()],
                attributes,
                dtype=inputs.dtype,
                shape=(S, 2, B, self.hidden_dim),
            )
            out = read.permute(2, 0, 1, 3).flatten(2)
        real = torch.arange(S, device=inputs.device) < lengths[:, None]
        out = out.masked_fill(~real[..., None], 0)
        ahead = out[torch.arange(B, device=inputs.device), lengths - 1, : self.hidden_dim]
        return out, torch.cat([ahead, out[:, 0, self.hidden_dim :]], dim=-1)
