"""The weights of torch's ``nn.MultiheadAttention`` under the names of ours."""

import torch
from torch import Tensor, nn

from regard.errors import SettingError
from regard.layers.heads import PROJECTIONS

_SEPARATE = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
_JOINT = ("in_proj_weight", "in_proj_bias")
_ADDED = ("bias_k", "bias_v")


def rename_torchs(layer: nn.Module, state_dict: dict[str, Tensor], prefix: str, *_: object) -> None:
    """Put torch's weights, if there are any, under our names: a hook of ``load_state_dict``.

    Args:
        layer: What is about to be loaded; has some of the layers in ``PROJECTIONS``.
        state_dict: Changed in place.
        prefix: What the names of this layer's weights begin with.

    Raises:
        SettingError: The weights hold something that our layer has no place for.
    """
    found = {
        name: state_dict.pop(prefix + name)
        for name in (*_JOINT, *_SEPARATE, *_ADDED)
        if prefix + name in state_dict
    }
    if not found:
        return
    if _ADDED[0] in found:
        raise SettingError(
            f"state_dict must hold weights of states only; got {prefix}bias_k and {prefix}bias_v. "
            "Keys and values that are added to those of the memory have no place here."
        )
    if getattr(layer, "num_key_heads", None) != getattr(layer, "num_heads", None):
        raise SettingError(
            "num_key_heads must be num_heads to take the weights of nn.MultiheadAttention; "
            f"got {layer.num_key_heads}, {layer.num_heads}."
        )
    parts = {"weight": _weights(found), "bias": _thirds(found.get("in_proj_bias"))}
    for name, which in PROJECTIONS.items():
        if getattr(layer, name, None) is None:
            continue
        for kind, tensors in parts.items():
            if tensors is not None:
                state_dict[f"{prefix}{name}.{kind}"] = _join(name, [tensors[i] for i in which])
    for kind in ("weight", "bias"):
        if (theirs := f"{prefix}out_proj.{kind}") in state_dict:
            state_dict[f"{prefix}output.{kind}"] = state_dict.pop(theirs)


def _weights(found: dict[str, Tensor]) -> list[Tensor] | None:
    if all(name in found for name in _SEPARATE):
        return [found[name] for name in _SEPARATE]
    return _thirds(found.get("in_proj_weight"))


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
