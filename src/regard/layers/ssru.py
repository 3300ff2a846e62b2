"""The simpler simple recurrent unit: what came before, in one state of the layer's width."""

from dataclasses import dataclass
from math import sqrt

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.layers.function_context import FunctionContext
from regard.layers.packing import Packing


@dataclass(frozen=True, slots=True, eq=False)
class RecurrentCache:
    """State of a recurrent layer, batch first; its size does not grow with the position.

    Attributes:
        state: The state after the last of them.
        length: How many there were.

    Example:
        >>> cache = RecurrentCache(torch.zeros(2, 8), 3)
        >>> cache.select(torch.tensor([1, 1, 0])).state.shape
        torch.Size([3, 8])
    """

    state: Float[Tensor, "B C"]
    length: int

    def select(self, rows: Int[Tensor, " K"]) -> "RecurrentCache":
        """The cache of these batch rows; a row may be taken more than once, or not at all."""
        return RecurrentCache(self.state.index_select(0, rows), self.length)


class SSRU(nn.Module):
    """Stands in for the self-attention of a decoder, at a cost that does not grow with the text.

    ``f = σ(W_f x + b_f)``, ``c_t = f_t ⊙ c_{t−1} + (1 − f_t) ⊙ W x_t``, ``h = ReLU(c)``: Kim et al.
    (2019), https://aclanthology.org/D19-5632, section 3.1; c before the first position is zero.

    The products are those of all positions at once; only the elementwise recurrence goes from one
    to the next. A state is in float32 at least.

    Args:
        model_dim: Width of the states, C.

    Example:
        >>> layer = SSRU(8)
        >>> states = torch.randn(2, 3, 8)
        >>> whole, _ = layer(states)
        >>> _, cache = layer(states[:, :2], cache=layer.empty_cache(2))
        >>> last, cache = layer(states[:, 2:], cache=cache)
        >>> bool((last - whole[:, 2:]).abs().max() < 1e-6), cache.length
        (True, 3)
    """

    def __init__(self, model_dim: int) -> None:
        super().__init__()
        self.model_dim = model_dim
        # W_f and W in one product; only the gate has a bias.
        self.gate_value = nn.Linear(model_dim, 2 * model_dim, bias=False)
        self.gate_bias = nn.Parameter(torch.zeros(model_dim))
        bound = sqrt(3 / model_dim)  # Xavier's of each by itself
        nn.init.uniform_(self.gate_value.weight, -bound, bound)

    def forward(
        self,
        states: Float[Tensor, "*positions C"],
        *,
        cache: RecurrentCache | None = None,
        packing: Packing | None = None,
    ) -> tuple[Float[Tensor, "*positions C"], RecurrentCache | None]:
        """Recurrent outputs of each position, and the cache after the last.

        Args:
            states: (B, N, C), or (R, C) with a packing.
            cache: What was kept of earlier positions.
            packing: Where the positions of packed states stand.
        """
        projected: Tensor = self.gate_value(states)
        if packing is not None:
            projected = packing.pad(projected)
        wide = projected.to(torch.promote_types(projected.dtype, torch.float32))
        gate, value = wide.chunk(2, dim=-1)
        gate = torch.sigmoid(gate + self.gate_bias)
        before = wide.new_zeros(len(wide), self.model_dim) if cache is None else cache.state
        kept = recurrence(gate, torch.addcmul(value, gate, value, value=-1), before)
        if cache is not None:
            cache = RecurrentCache(kept[:, -1], cache.length + kept.shape[1])
        out = torch.relu(kept).to(projected.dtype)
        return out if packing is None else packing.pack(out), cache

    def empty_cache(self, batch: int) -> RecurrentCache:
        """A cache of no positions yet, for ``batch`` rows."""
        dtype = torch.promote_types(self.gate_bias.dtype, torch.float32)
        return RecurrentCache(self.gate_bias.new_zeros(batch, self.model_dim, dtype=dtype), 0)

    def extra_repr(self) -> str:
        """Its width, for ``print(model)``."""
        return f"{self.model_dim}"


def recurrence(
    gates: Float[Tensor, "B N C"], inputs: Float[Tensor, "B N C"], first: Float[Tensor, "B C"]
) -> Float[Tensor, "B N C"]:
    """``c_t = gates_t ⊙ c_{t−1} + inputs_t`` for all t, with ``first`` before the first.

    One operation a position, into its place: nothing is divided and no logarithm taken, so gates
    may be 0 and 1. To a compiler it is one operator; it has gradients of any order.

    Example:
        >>> halves, ones = torch.full((1, 3, 1), 0.5), torch.ones(1, 3, 1)
        >>> recurrence(halves, ones, torch.zeros(1, 1)).flatten().tolist()
        [1.0, 1.5, 1.75]
    """
    if gates.shape[1] == 1:
        return torch.addcmul(inputs, gates, first[:, None])
    states: Tensor = _recurrence(gates, inputs, first, False)
    return states


@torch.library.custom_op("regard::recurrence", mutates_args=())
def _recurrence(gates: Tensor, inputs: Tensor, first: Tensor, backwards: bool) -> Tensor:
    """See ``recurrence``; backwards, from the last position to the first."""
    states = torch.empty_like(inputs, memory_format=torch.contiguous_format)
    steps = list(zip(states.unbind(1), inputs.unbind(1), gates.unbind(1), strict=True))
    before = first
    for state, given, gate in reversed(steps) if backwards else steps:
        before = torch.addcmul(given, gate, before, out=state)
    return states


@_recurrence.register_fake
def _fake(gates: Tensor, inputs: Tensor, first: Tensor, backwards: bool) -> Tensor:
    return torch.empty_like(inputs, memory_format=torch.contiguous_format)


def _save(
    ctx: FunctionContext, inputs: tuple[Tensor, Tensor, Tensor, bool], output: Tensor
) -> None:
    gates, _, first, ctx.backwards = inputs
    ctx.save_for_backward(gates, first, output)


def _gradients(ctx: FunctionContext, d_states: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
    """A state's gradient is its own and its gated share of the next one's: the way back."""
    gates, first, states = ctx.saved_tensors
    nothing, edge = torch.zeros_like(gates[:, :1]), first[:, None]
    if ctx.backwards:
        later = torch.cat([nothing, gates[:, :-1]], dim=1)
        before, outer = torch.cat([states[:, 1:], edge], dim=1), -1
    else:
        later = torch.cat([gates[:, 1:], nothing], dim=1)
        before, outer = torch.cat([edge, states[:, :-1]], dim=1), 0
    d_inputs = _recurrence(later, d_states, torch.zeros_like(first), not ctx.backwards)
    return d_inputs * before, d_inputs, d_inputs[:, outer] * gates[:, outer], None


_recurrence.register_autograd(_gradients, setup_context=_save)
