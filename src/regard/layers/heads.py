"""Projections cut into heads, packed without padding, and renamed from torch's own layer."""

from typing import Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from regard.devices.finding import multiplies_in_tiles, warn_of_slow_bfloat16
from regard.errors import SettingError
from regard.layers.inputs import real_positions

# How many heads a part of a projection has, and how wide each is.
Part = tuple[int, int]

# Which of queries, keys and values, 0, 1 and 2, the layers of these names make.
PROJECTIONS = {
    "query_key_value": (0, 1, 2),
    "query": (0,),
    "key_value": (1, 2),
    "key": (1,),
    "value": (2,),
}


def cut(
    projected: Float[Tensor, "B N W"], parts: tuple[Part, ...]
) -> tuple[Float[Tensor, "B _H N _D"], ...]:
    """Cut a projection into parts side by side, (B, heads, N, width), as attention is fastest."""
    if _is_faster_wide(projected):
        warn_of_slow_bfloat16(projected.device)
        heads: tuple[Tensor, ...] = _Widened.apply(projected, parts)  # type: ignore[no-untyped-call]
        return heads
    return tuple(_views(projected, parts))


def _is_faster_wide(projected: Tensor) -> bool:
    """Whether a CPU attends faster in float32: for a gradient, and where it has no tiles (AMX)."""
    if projected.dtype != torch.bfloat16 or projected.device.type != "cpu":
        return False
    has_gradient = projected.requires_grad or torch.compiler.is_compiling()
    return has_gradient or not multiplies_in_tiles()


class _Widened(torch.autograd.Function):
    """Cuts a projection into heads and widens it to float32, in one pass each way."""

    @staticmethod
    def forward(ctx: Any, projected: Tensor, parts: tuple[Part, ...]) -> tuple[Tensor, ...]:
        ctx.dtype = projected.dtype
        return tuple(
            torch.empty(view.shape, dtype=torch.float32).copy_(view)
            for view in _views(projected, parts)
        )

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        rows = [grad.transpose(1, 2).to(ctx.dtype).flatten(2) for grad in grads]
        return torch.cat(rows, dim=-1), None


def _views(joined: Tensor, parts: tuple[Part, ...]) -> list[Tensor]:
    B, N, _ = joined.shape
    # Split and not unbound: the gradients then come together in the projection's own order.
    widths = [heads * width for heads, width in parts]
    sides: tuple[Tensor, ...] = torch.split(joined, widths, dim=-1)
    return [side.view(B, N, *part).transpose(1, 2) for side, part in zip(sides, parts, strict=True)]


# Below this share of real positions, cutting the padding out costs less than computing it.
WORTHWHILE = 0.9


class Packing:
    """Indices of the real positions of a padded batch."""

    # Projections, norms, dropout and feed-forward layers see each position by itself, so they can
    # run on the real ones alone, (R, C) instead of (B, N, C); only attention needs the rectangle.

    def __init__(self, lengths: Int[Tensor, " B"], width: int) -> None:
        self.positions = real_positions(lengths, width).flatten().nonzero()[:, 0]
        self.shape = (len(lengths), width)

    @classmethod
    def if_worthwhile(cls, lengths: Int[Tensor, " B"] | None, width: int) -> "Packing | None":
        """The packing of a batch, or None where there is little padding or nothing is known."""
        # To a compiler the lengths are unknown, and it makes other graphs for other shapes.
        if lengths is None or torch.compiler.is_compiling():
            return None
        if int(lengths.sum()) > WORTHWHILE * len(lengths) * width:
            return None
        return cls(lengths, width)

    def pack(self, padded: Shaped[Tensor, "B N *rest"]) -> Shaped[Tensor, "R *rest"]:
        """The real positions, row after row."""
        packed: Tensor = _Pack.apply(padded, self.positions)  # type: ignore[no-untyped-call]
        return packed

    def pad(self, packed: Shaped[Tensor, "R *rest"]) -> Shaped[Tensor, "B N *rest"]:
        """The positions where they stood, with zeros for padding."""
        padded: Tensor = _Pad.apply(packed, self.positions, self.shape)  # type: ignore[no-untyped-call]
        return padded


# Autograd's own rules for these two add rows one by one; positions come once, so copying will do.


class _Pack(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, padded: Tensor, positions: Tensor) -> Tensor:
        ctx.save_for_backward(positions)
        ctx.shape = (padded.shape[0], padded.shape[1])
        return padded.flatten(0, 1).index_select(0, positions)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (positions,) = ctx.saved_tensors
        return _spread(grad, positions, ctx.shape), None


class _Pad(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, packed: Tensor, positions: Tensor, shape: tuple[int, int]) -> Tensor:
        ctx.save_for_backward(positions)
        return _spread(packed, positions, shape)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (positions,) = ctx.saved_tensors
        return grad.flatten(0, 1).index_select(0, positions), None, None


def _spread(packed: Tensor, positions: Tensor, shape: tuple[int, int]) -> Tensor:
    B, N = shape
    padded = packed.new_zeros(B * N, *packed.shape[1:])
    return padded.index_copy_(0, positions, packed).view(B, N, *packed.shape[1:])


_SEPARATE = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
_JOINT = ("in_proj_weight", "in_proj_bias")
_ADDED = ("bias_k", "bias_v")


def rename_torchs(layer: nn.Module, state_dict: dict[str, Tensor], prefix: str, *_: object) -> None:
    """Rename torch's weights, if there are any, to ours: a hook of ``load_state_dict``."""
    peers = {
        name: state_dict.pop(prefix + name)
        for name in (*_JOINT, *_SEPARATE, *_ADDED)
        if prefix + name in state_dict
    }
    if not peers:
        return
    if _ADDED[0] in peers:
        raise SettingError(
            f"state_dict must hold weights of states only; got {prefix}bias_k and {prefix}bias_v. "
            "Keys and values that are added to those of the memory have no place here."
        )
    if getattr(layer, "num_key_heads", None) != getattr(layer, "num_heads", None):
        raise SettingError(
            "num_key_heads must be num_heads to take the weights of nn.MultiheadAttention; "
            f"got {layer.num_key_heads}, {layer.num_heads}."
        )
    names = _SEPARATE if all(name in peers for name in _SEPARATE) else ()
    weights = [peers[name] for name in names] or _thirds(peers.get("in_proj_weight"))
    parts = {"weight": weights, "bias": _thirds(peers.get("in_proj_bias"))}
    for name, indices in PROJECTIONS.items():
        if getattr(layer, name, None) is None:
            continue
        for kind, tensors in parts.items():
            if tensors is not None:
                state_dict[f"{prefix}{name}.{kind}"] = _join(name, [tensors[i] for i in indices])
    for kind in ("weight", "bias"):
        if (theirs := f"{prefix}out_proj.{kind}") in state_dict:
            state_dict[f"{prefix}output.{kind}"] = state_dict.pop(theirs)


def _thirds(joint: Tensor | None) -> list[Tensor] | None:
    return None if joint is None else list(joint.chunk(3))


def _join(name: str, tensors: list[Tensor]) -> Tensor:
    if len({tensor.shape[1:] for tensor in tensors}) > 1:
        widths = [tensor.shape[1] for tensor in tensors]
        raise SettingError(
            f"{name} must get matrices of one width to join; got widths {widths}. "
            "Make the layer with key_dim= and value_dim=, or by MultiHeadAttention.from_torch."
        )
    return torch.cat(tensors) if len(tensors) > 1 else tensors[0]
