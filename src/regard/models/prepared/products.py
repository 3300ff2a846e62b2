"""Matrix products in int8: what is multiplied is rounded, and the result is not.

Weights are rounded once, by row; states as they come, by row too, so that an answer does not depend
on its neighbours. A row is brought to a largest absolute value of one first, and so the range that
it is rounded in never changes: seven bits, whose products never overflow the sixteen bits that
processors without VNNI add them up in.
"""

import warnings
from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from jaxtyping import Float, Int
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
        _multiply(torch.ones(1, 4), _packed(*_rounded(torch.ones(1, 4))))
    except (AttributeError, RuntimeError, NotImplementedError) as error:
        return f"torch {torch.__version__} cannot multiply int8 here ({str(error).splitlines()[0]})"
    return None


def _rounded(weight: Float[Tensor, "O I"]) -> tuple[Int[Tensor, "O I"], Float[Tensor, " O"]]:
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


def _product(
    states: Float[Tensor, "*batch I"], packed: torch.ScriptObject, bias: Float[Tensor, " O"] | None
) -> Float[Tensor, "*batch O"]:
    """``states @ weightᵀ + bias``."""
    if why_not() is not None:
        largest = states.abs().amax(dim=-1, keepdim=True)
        shares = largest.clamp_min(torch.finfo(torch.float32).tiny)
        products = _multiply((states / shares).contiguous(), packed).mul_(largest)
        return products if bias is None else products.add_(bias)
    from regard.models.prepared import rows

    flat = states.reshape(-1, states.shape[-1]).contiguous()
    unit, given = torch.empty_like(flat), flat.numpy()
    sizes, out = np.empty(len(flat), np.float32), unit.numpy()
    by_rows(len(flat), flat.shape[1], lambda *part: rows.to_unit_rows(*part, given, out, sizes))
    products = _multiply(unit, packed)
    added = np.zeros(0, np.float32) if bias is None else bias.numpy()
    found = products.numpy()
    by_rows(
        len(flat), found.shape[1], lambda *part: rows.from_unit_rows(*part, found, sizes, added)
    )
    return products.view(*states.shape[:-1], -1)


class Int8Linear(nn.Module):
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
        self.packed = _packed(*_rounded(linear.weight.detach().float()))

    @torch.no_grad()
    def forward(self, states: Float[Tensor, "*batch I"]) -> Float[Tensor, "*batch O"]:
        """The states mapped."""
        return _product(states.float(), self.packed, self.bias)

    def rounded(self) -> tuple[Int[Tensor, "O I"], Float[Tensor, " O"]]:
        """The weights, and what gives back those of each output."""
        weight, _ = torch.ops.quantized.linear_unpack(self.packed)
        return weight.int_repr(), weight.q_per_channel_scales().float()

    def dequantised(self) -> nn.Linear:
        """The same map with products in float32; its weights stay as they were rounded."""
        linear = nn.Linear(self.in_features, self.out_features, bias=self.bias is not None)
        weight, _ = torch.ops.quantized.linear_unpack(self.packed)
        linear.weight.data = weight.dequantize()
        if self.bias is not None:
            linear.bias.data = self.bias
        return linear.requires_grad_(False)

    def extra_repr(self) -> str:
        """Sizes, for ``print(model)``."""
        return f"{self.in_features}, {self.out_features}, bias={self.bias is not None}"


class Int8Embedding(nn.Module):
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

    values: Tensor
    scales: Tensor

    def __init__(self, table: Float[Tensor, "V C"], scale: float, *, is_output: bool) -> None:
        super().__init__()
        values, scales = _rounded(table.detach())
        self.register_buffer("values", values, persistent=False)
        self.register_buffer("scales", scales, persistent=False)
        self.scale = scale
        self.packed = _packed(values, scales) if is_output else None

    def logits_of(
        self, ids: Int[Tensor, " U"], bias: Float[Tensor, " U"] | None
    ) -> Callable[[Tensor], Tensor]:
        """What makes the logits of these tokens alone: ``logits`` has the same."""
        packed = _packed(self.values[ids], self.scales[ids])
        return lambda states: _product(states.float(), packed, bias)

    @torch.no_grad()
    def forward(self, ids: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch C"]:
        """The vectors of ``ids``."""
        rows = F.embedding(ids, self.values).float()
        return rows * (self.scales[ids] * self.scale)[..., None]

    def dequantised(self) -> Float[Tensor, "V C"]:
        """All vectors as they were rounded, in float32, before they are multiplied by ``scale``."""
        return self.values * self.scales[:, None]

    @torch.no_grad()
    def logits(
        self, states: Float[Tensor, "*batch C"], bias: Float[Tensor, " V"] | None = None
    ) -> Float[Tensor, "*batch V"]:
        """How well each state matches each token."""
        assert self.packed is not None
        return _product(states.float(), self.packed, bias)
