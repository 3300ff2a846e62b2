"""The layers that are compared: each maps n vectors of width d to n vectors of width d.

The closed forms beside each are what Vaswani et al. (2017), table 1, say of it, with their
constants; they are compared with what is counted and never used instead of it. A *hop* is what a
layer does to all positions at once: one layer of a stack, or one step of a recurrence.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import attend, causal, explain, window
from regard.comparison.dispatch import is_counting
from regard.fields import Count, Natural, at_least, check_fields
from regard.layers import RecurrentCell

States = Float[Tensor, "N C"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerSizes:
    """What a layer is made for.

    Attributes:
        length: Positions, n.
        width: Width of a position's vector, d.
        kernel: Positions that a convolution reads at once, k: its own and those before.
        window: Keys that restricted self-attention sees, r: its own and those before.
        projections: Whether self-attention has its four projections, which table 1 leaves out.
        depth: Number of the layer in its stack, from 0; dilations grow with it.
    """

    length: Annotated[int, at_least(2)]
    width: Count = 64
    kernel: Annotated[int, at_least(2, cure="One position alone sees no other.")] = 3
    window: Annotated[int, at_least(2, cure="One key alone is the query's own.")] = 32
    projections: bool = False
    depth: Natural = 0

    def __post_init__(self) -> None:
        check_fields(self)


class Candidate(nn.Module):
    """A layer with what the literature says of it.

    Attributes:
        title: What it is called.
        operations: Order of its multiply-adds.
        steps: Order of its dependent steps.
        path: Order of its longest path.
        powers: The powers of the length in operations, steps and bytes, as the exponents to expect.
    """

    title: ClassVar[str]
    operations: ClassVar[str]
    steps: ClassVar[str]
    path: ClassVar[str]
    powers: ClassVar[tuple[int, int, int]]

    def __init__(self, sizes: LayerSizes) -> None:
        super().__init__()
        self.sizes = sizes

    def start(self, inputs: States) -> States:
        """The states before the first hop."""
        return inputs

    def hop(self, inputs: States, states: States) -> States:
        """All positions moved on at once, by what states know so far."""
        moved: Tensor = self(states)
        return moved

    @classmethod
    def multiply_adds(cls, sizes: LayerSizes) -> int:
        """The closed form of the multiply-adds of a layer."""
        raise NotImplementedError

    @classmethod
    def longest_path(cls, sizes: LayerSizes) -> int:
        """The closed form of the hops from the first input to the last output."""
        return 1

    @classmethod
    def floats(cls, sizes: LayerSizes) -> int:
        """About how many numbers a training step holds: too many are not tried."""
        return 16 * sizes.length * sizes.width


class FullyConnected(Candidate):
    """Every number of the output from every number of the input: no other length will do."""

    title = "fully connected"
    operations, steps, path, powers = "n²·d²", "1", "1", (2, 0, 2)

    def __init__(self, sizes: LayerSizes) -> None:
        super().__init__(sizes)
        self.map = nn.Linear(sizes.length * sizes.width, sizes.length * sizes.width)

    def forward(self, states: States) -> States:
        """The states mixed."""
        mixed: Tensor = self.map(states.reshape(1, -1))
        return mixed.reshape_as(states)

    @classmethod
    def multiply_adds(cls, sizes: LayerSizes) -> int:
        """``n² d²``."""
        return (sizes.length * sizes.width) ** 2

    @classmethod
    def floats(cls, sizes: LayerSizes) -> int:
        """The weights and their gradient."""
        return 2 * (sizes.length * sizes.width) ** 2


class Convolution(Candidate):
    """A position's vector from its own and those of the k − 1 before it."""

    title = "convolution"
    operations, steps, path, powers = "k·n·d²", "1", "n/k", (1, 0, 1)

    def __init__(self, sizes: LayerSizes) -> None:
        super().__init__(sizes)
        dilation = self._dilation()
        self.map = nn.Conv1d(sizes.width, sizes.width, sizes.kernel, dilation=dilation)
        self.before = (sizes.kernel - 1) * dilation

    def forward(self, states: States) -> States:
        """The states mixed."""
        mixed: Tensor = self.map(F.pad(states.mT, (self.before, 0))[None])
        return mixed[0].mT

    def _dilation(self) -> int:
        return 1

    @classmethod
    def multiply_adds(cls, sizes: LayerSizes) -> int:
        """``k n d²``."""
        return sizes.kernel * sizes.length * sizes.width * sizes.width

    @classmethod
    def longest_path(cls, sizes: LayerSizes) -> int:
        """``⌈(n − 1) / (k − 1)⌉``: each layer sees k − 1 places further."""
        return -(-(sizes.length - 1) // (sizes.kernel - 1))


class DilatedConvolution(Convolution):
    """The same with gaps of k^l in layer l, as in Kalchbrenner et al. (2016), arXiv:1610.10099."""

    title = "convolution, dilated"
    path = "log_k n"

    def _dilation(self) -> int:
        return int(self.sizes.kernel**self.sizes.depth)

    @classmethod
    def longest_path(cls, sizes: LayerSizes) -> int:
        """``⌈log_k n⌉``, counted in whole numbers."""
        layers, seen = 0, 1
        while seen < sizes.length:
            layers, seen = layers + 1, seen * sizes.kernel
        return layers


class Recurrence(Candidate):
    """``h_t = tanh(W x_t + U h_{t−1} + b)``: each position waits for the one before."""

    title = "recurrence"
    operations, steps, path, powers = "n·d²", "n", "n", (1, 1, 1)

    def __init__(self, sizes: LayerSizes) -> None:
        super().__init__(sizes)
        self.cell = RecurrentCell("rnn", sizes.width, sizes.width)

    def forward(self, states: States) -> States:
        """The state after each position."""
        state = states.new_zeros(1, states.shape[1])
        reached = []
        projections: Tensor = self.cell.project(states)
        for projected in projections.unsqueeze(1).unbind():
            state = self.cell(projected, state)
            reached.append(state)
        return torch.cat(reached)

    def start(self, inputs: States) -> States:
        """Nothing has been read."""
        return torch.zeros_like(inputs)

    def hop(self, inputs: States, states: States) -> States:
        """One step from every place: a state from the one before it, as far as that has got."""
        before = F.pad(states[:-1], (0, 0, 1, 0))
        moved: Tensor = self.cell(self.cell.project(inputs), before)
        return moved

    @classmethod
    def multiply_adds(cls, sizes: LayerSizes) -> int:
        """``2 n d²``: W x and U h."""
        return 2 * sizes.length * sizes.width**2

    @classmethod
    def longest_path(cls, sizes: LayerSizes) -> int:
        """``n``: the first input enters, and its trace is handed on n − 1 times."""
        return sizes.length


class _SelfAttention(Candidate):
    """Queries, keys and values from the same states."""

    def __init__(self, sizes: LayerSizes) -> None:
        super().__init__(sizes)
        maps = 4 if sizes.projections else 0
        self.maps = nn.ModuleList(
            nn.Linear(sizes.width, sizes.width, bias=False) for _ in range(maps)
        )

    def forward(self, states: States) -> States:
        """The states mixed."""
        if not self.maps:
            return self._mix(states, states, states)
        query, key, value, out = self.maps
        mixed: Tensor = out(self._mix(query(states), key(states), value(states)))
        return mixed

    def _mix(self, query: States, key: States, value: States) -> States:
        """Attention without its projections."""
        raise NotImplementedError

    @classmethod
    def multiply_adds(cls, sizes: LayerSizes) -> int:
        """``2 n · keys · d`` for scores and mixing, ``4 n d²`` for projections where there are."""
        own = 2 * sizes.length * cls._keys(sizes) * sizes.width
        return own + (4 * sizes.length * sizes.width**2 if sizes.projections else 0)

    @classmethod
    def _keys(cls, sizes: LayerSizes) -> int:
        return sizes.length


class SelfAttentionLayer(_SelfAttention):
    """``softmax(Q Kᵀ / √d) V`` with its n × n weights, as it stands in the textbook."""

    title = "self-attention, as written"
    operations, steps, path, powers = "n²·d", "1", "1", (2, 0, 2)

    def _mix(self, query: States, key: States, value: States) -> States:
        weights = (query @ key.mT / sqrt(query.shape[1])).softmax(dim=-1)  # (N, N)
        return weights @ value

    @classmethod
    def floats(cls, sizes: LayerSizes) -> int:
        """Scores, weights, and the gradients of both."""
        return 4 * sizes.length * sizes.length


class AttendedSelfAttention(_SelfAttention):
    """The same by ``regard.attend``, which never holds the weights."""

    title = "self-attention, attend"
    operations, steps, path, powers = "n²·d", "1", "1", (2, 0, 1)

    def _mix(self, query: States, key: States, value: States) -> States:
        return attend(query[None, None], key[None, None], value[None, None])[0, 0]


class RestrictedSelfAttention(_SelfAttention):
    """Each query over its r nearest keys, its own and those before, cut out one by one."""

    title = "restricted, as written"
    operations, steps, path, powers = "r·n·d", "1", "n/r", (1, 0, 1)

    def _mix(self, query: States, key: States, value: States) -> States:
        N, r = len(query), self.sizes.window
        near_keys, near_values = (
            F.pad(tensor, (0, 0, r - 1, 0)).unfold(0, r, 1)  # (N, C, r)
            for tensor in (key, value)
        )
        places = torch.arange(N, device=query.device)[:, None, None]
        is_there = places + torch.arange(1 - r, 1, device=query.device) >= 0  # (N, 1, r)
        scores = query[:, None] @ near_keys / sqrt(query.shape[1])
        weights = scores.masked_fill(~is_there, -torch.inf).softmax(dim=-1)
        return (weights @ near_values.mT)[:, 0]

    @classmethod
    def longest_path(cls, sizes: LayerSizes) -> int:
        """``⌈(n − 1) / (r − 1)⌉``: each layer sees r − 1 places further."""
        return -(-(sizes.length - 1) // (sizes.window - 1))

    @classmethod
    def floats(cls, sizes: LayerSizes) -> int:
        """The keys and the values cut out, and their gradients."""
        return 4 * sizes.length * sizes.window * sizes.width

    @classmethod
    def _keys(cls, sizes: LayerSizes) -> int:
        return sizes.window


class AttendedRestrictedSelfAttention(RestrictedSelfAttention):
    """The same by ``attend(mask=causal() & window(before=r − 1))``, in blocks of queries."""

    title = "restricted, attend"

    def _mix(self, query: States, key: States, value: States) -> States:
        mask = causal() & window(before=self.sizes.window - 1)
        given = (query[None, None], key[None, None], value[None, None])
        # Compiled loops start no kernels that could be counted: tiles do the same with kernels.
        is_unseen = is_counting() and explain(*given, mask=mask).backend == "dot_cpu"
        return attend(*given, mask=mask, backend="tiled" if is_unseen else None)[0, 0]

    @classmethod
    def floats(cls, sizes: LayerSizes) -> int:
        """Nothing but what goes in and comes out."""
        return Candidate.floats(sizes)


CANDIDATES: dict[str, type[Candidate]] = {
    "fully-connected": FullyConnected,
    "convolution": Convolution,
    "dilated": DilatedConvolution,
    "recurrence": Recurrence,
    "attention-written": SelfAttentionLayer,
    "attention": AttendedSelfAttention,
    "restricted-written": RestrictedSelfAttention,
    "restricted": AttendedRestrictedSelfAttention,
}
