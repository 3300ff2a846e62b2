"""Matrix products in int8: what is multiplied is rounded, and the result is not.

Weights are rounded once, by row; states as they come, by row too, so that an answer does not depend
on its neighbours. A row is brought to a largest absolute value of one first, and so the range that
it is rounded in never changes: seven bits, whose products never overflow the sixteen bits that
processors without VNNI add them up in. Those with it are given eight, by loops of our own.
"""

import warnings
from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from jaxtyping import Float, Float32, Int, Int8
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.engine.kernels import why_not
from regard.models.prepared.sharing import by_rows

# Values from −1 to 1 as 0 to 127, with 0 in the middle.
_SCALE, _ZERO = 2 / 127, 64


@cache
def why_no_int8() -> str | None:
    """What stands against products in int8 here, or None."""
    try:
        _multiply(torch.ones(1, 4), _packed(*rounded_rows(torch.ones(1, 4))))
    except (AttributeError, RuntimeError, NotImplementedError) as error:
        return f"torch {torch.__version__} cannot multiply int8 here ({str(error).splitlines()[0]})"
    return None


def rounded_rows(weight: Float[Tensor, "O I"]) -> tuple[Int[Tensor, "O I"], Float[Tensor, " O"]]:
    """Each row in int8, and what it is multiplied by to have it back."""
    scales = weight.abs().amax(dim=1).clamp_min(torch.finfo(torch.float32).tiny) / 127
    return (weight / scales[:, None]).round().to(torch.int8), scales


def _packed(values: Int[Tensor, "O I"], scales: Float[Tensor, " O"]) -> torch.ScriptObject:
    """Rounded weights as the product wants them."""
    with warnings.catch_warnings():
        # torch announces the end of its quantised tensors; ``why_no_int8`` notices it.
        warnings.simplefilter("ignore", UserWarning)
        quantised = torch._make_per_channel_quantized_tensor(
            values.contiguous(), scales.double(), torch.zeros(len(values), dtype=torch.long), 0
        )
        packed: torch.ScriptObject = torch.ops.quantized.linear_prepack(quantised, None)
    return packed


def _multiply(states: Float[Tensor, "*batch I"], packed: torch.ScriptObject) -> Tensor:
    """The product with states between −1 and 1."""
    product: Tensor = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
        states, _SCALE, _ZERO, packed
    )
    return product


class _ByTorch:
    """A rounded matrix as torch multiplies it."""

    def __init__(self, values: Int[Tensor, "O I"], scales: Float[Tensor, " O"]) -> None:
        self._packed = _packed(values, scales)

    def rounded(self) -> tuple[Int[Tensor, "O I"], Float[Tensor, " O"]]:
        """The weights, and what gives back those of each output."""
        weight, _ = torch.ops.quantized.linear_unpack(self._packed)
        return weight.int_repr(), weight.q_per_channel_scales().float()

    def product(
        self, states: Float[Tensor, "*batch I"], bias: Float[Tensor, " O"] | None
    ) -> Float[Tensor, "*batch O"]:
        """``states @ weightᵀ + bias``."""
        if why_not() is not None:
            largest = states.abs().amax(dim=-1, keepdim=True)
            shares = largest.clamp_min(torch.finfo(torch.float32).tiny)
            products = _multiply((states / shares).contiguous(), self._packed).mul_(largest)
            return products if bias is None else products.add_(bias)
        from regard.models.prepared import rows

        flat = states.reshape(-1, states.shape[-1]).contiguous()
        unit, given = torch.empty_like(flat), flat.numpy()
        sizes, out = np.empty(len(flat), np.float32), unit.numpy()
        by_rows(len(flat), flat.shape[1], lambda *part: rows.to_unit_rows(*part, given, out, sizes))
        products = _multiply(unit, self._packed)
        added = np.zeros(0, np.float32) if bias is None else bias.numpy()
        found = products.numpy()
        by_rows(
            len(flat), found.shape[1], lambda *part: rows.from_unit_rows(*part, found, sizes, added)
        )
        return products.view(*states.shape[:-1], -1)


class _InBytes:
    """The same as our loops multiply it, where the processor adds up products of bytes.

    Attributes:
        panels: The weights; others may share them.
    """

    def __init__(self, values: Int[Tensor, "O I"], scales: Float[Tensor, " O"]) -> None:
        # Only here: what cannot be compiled cannot be imported.
        from regard.models.prepared import bytewise, panels

        self._bytewise, self._in_lanes = bytewise, panels.in_lanes
        self._outputs, self._inputs = values.shape
        self.panels = bytewise.in_bytes(values.numpy())
        self._scales = self._lanes(scales)
        self._nothing = np.zeros_like(self._scales)

    def _lanes(self, numbers: Float[Tensor, " O"]) -> Float32[np.ndarray, " o16"]:
        lanes: np.ndarray = self._in_lanes(numbers.numpy(), self._bytewise.OUTPUTS)
        return lanes

    def some(self, ids: Int[np.ndarray, " N"]) -> Int8[np.ndarray, "N I"]:
        """The weights of some outputs."""
        return self._bytewise.from_bytes(self.panels, ids, self._inputs)

    def rounded(self) -> tuple[Int[Tensor, "O I"], Float[Tensor, " O"]]:
        """The weights, and what gives back those of each output."""
        values = torch.from_numpy(self.some(np.arange(self._outputs)))
        return values, torch.from_numpy(self._scales[: self._outputs])

    def product(
        self, states: Float[Tensor, "*batch I"], bias: Float[Tensor, " O"] | None
    ) -> Float[Tensor, "*batch O"]:
        """``states @ weightᵀ + bias``."""
        flat = states.reshape(-1, self._inputs).contiguous().numpy()
        added = self._nothing if bias is None else self._lanes(bias)
        found = self._bytewise.product(flat, self.panels, self._scales, added, by_rows)
        made = torch.from_numpy(found)[:, : self._outputs]
        return made.reshape(*states.shape[:-1], self._outputs)


def _matrix(values: Int[Tensor, "O I"], scales: Float[Tensor, " O"]) -> _ByTorch | _InBytes:
    """A rounded matrix as it is multiplied here."""
    return (_InBytes if has_bytes() else _ByTorch)(values, scales)


@cache
def has_bytes() -> bool:
    """Whether products are those of our loops, which can be compiled and multiply bytes."""
    if why_not() is not None:
        return False
    from regard.models.prepared import bytewise

    return bytewise.has_bytes()


class _Rounded(nn.Module):
    """A layer whose weights are rounded."""

    matrix: _ByTorch | _InBytes | None

    @property
    def panels(self) -> Int8[np.ndarray, "o i 64"] | None:
        """The weights as loops take them, if they lie like that."""
        return self.matrix.panels if isinstance(self.matrix, _InBytes) else None

    def share(self, panels: Int8[np.ndarray, "o i p"]) -> None:
        """Let go of its weights for the same elsewhere, if they lie like that."""
        if isinstance(self.matrix, _InBytes):
            self.matrix.panels = panels


class Int8Linear(_Rounded):
    """A linear map whose products are in int8, for use and not for training.

    Args:
        linear: What it stands in for; it is not kept.

    Example:
        >>> linear = nn.Linear(64, 8)
        >>> states = torch.randn(5, 64)
        >>> bool((Int8Linear(linear)(states) - linear(states)).abs().max() < 0.1)
        True
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.bias: Tensor
        self.register_buffer("bias", None if linear.bias is None else linear.bias.detach())
        self.matrix = self._known = _matrix(*rounded_rows(linear.weight.detach().float()))

    @torch.no_grad()
    def forward(self, states: Float[Tensor, "*batch I"]) -> Float[Tensor, "*batch O"]:
        """The states mapped."""
        return self._known.product(states.float(), self.bias)

    def rounded(self) -> tuple[Int[Tensor, "O I"], Float[Tensor, " O"]]:
        """The weights, and what gives back those of each output."""
        return self._known.rounded()

    def dequantised(self) -> nn.Linear:
        """The same map with products in float32; its weights stay as they were rounded."""
        linear = nn.Linear(self.in_features, self.out_features, bias=self.bias is not None)
        values, scales = self.rounded()
        linear.weight.data = values * scales[:, None]
        if self.bias is not None:
            linear.bias.data = self.bias
        return linear.requires_grad_(False)

    def extra_repr(self) -> str:
        """Sizes, for ``print(model)``."""
        return f"{self.in_features}, {self.out_features}, bias={self.bias is not None}"


class Int8Embedding(_Rounded):
    """A table of embeddings in int8, which may be the last layer as well.

    Args:
        table: The vectors.
        scale: What vectors are multiplied by when they are looked up.
        is_output: Whether logits are asked of it.

    Example:
        >>> table = torch.tensor([[1.0, -0.5], [0.0, 2.0]])
        >>> embedding = Int8Embedding(table, scale=10.0, is_output=False)
        >>> embedding(torch.tensor([1, 0]))
        tensor([[ 0.0000, 20.0000],
                [10.0000, -5.0394]])
        >>> embedding.dequantised()
        tensor([[ 1.0000, -0.5039],
                [ 0.0000,  2.0000]])
    """

    scales: Tensor

    def __init__(self, table: Float[Tensor, "V C"], scale: float, *, is_output: bool) -> None:
        super().__init__()
        values, scales = rounded_rows(table.detach())
        self.register_buffer("scales", scales, persistent=False)
        self.scale, self.shape = scale, tuple(values.shape)
        self.matrix = _matrix(values, scales) if is_output or has_bytes() else None
        # What gives back single vectors is enough.
        self._values = None if isinstance(self.matrix, _InBytes) else values

    def some(self, ids: Int[Tensor, " N"]) -> Int[Tensor, "N C"]:
        """The rounded vectors of some tokens."""
        if self._values is not None:
            return F.embedding(ids, self._values)
        assert isinstance(self.matrix, _InBytes)
        return torch.from_numpy(self.matrix.some(ids.numpy()))

    @property
    def values(self) -> Int[Tensor, "V C"]:
        """All rounded vectors."""
        return self.some(torch.arange(self.shape[0])) if self._values is None else self._values

    def logits_of(
        self, ids: Int[Tensor, " U"], bias: Float[Tensor, " U"] | None
    ) -> Callable[[Tensor], Tensor]:
        """What makes the logits of these tokens alone: ``logits`` has the same."""
        matrix = _matrix(self.some(ids), self.scales[ids])
        return lambda states: matrix.product(states.float(), bias)

    @torch.no_grad()
    def forward(self, ids: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch C"]:
        """The vectors of ``ids``."""
        rows = self.some(ids.flatten()).float().view(*ids.shape, -1)
        return rows * (self.scales[ids] * self.scale)[..., None]

    def dequantised(self) -> Float[Tensor, "V C"]:
        """All vectors as they were rounded, in float32, before they are multiplied by ``scale``."""
        return self.values * self.scales[:, None]

    @torch.no_grad()
    def logits(
        self, states: Float[Tensor, "*batch C"], bias: Float[Tensor, " V"] | None = None
    ) -> Float[Tensor, "*batch V"]:
        """How well each state matches each token."""
        assert self.matrix is not None
        return self.matrix.product(states.float(), bias)
