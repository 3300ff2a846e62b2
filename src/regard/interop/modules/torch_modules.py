"""The engine inside models that others wrote, and as torch's ``nn.MultiheadAttention``."""

from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import Mask, attend, causal, dense, weights
from regard.attention.graph.formula import is_exporting
from regard.errors import SettingError, ShapeError
from regard.interop.modules.hugging_face import is_hugging_face, split, switch
from regard.interop.modules.locations import locate_modules
from regard.interop.modules.torch_functions import serve_functions

ModuleT = TypeVar("ModuleT", bound=nn.Module)


def use(model: ModuleT) -> ModuleT:
    """Switch a model's attention to ``attend``: to run, to train, to watch.

    Every ``nn.MultiheadAttention`` in it, also those inside ``nn.TransformerEncoder`` and its kin,
    whose fused shortcut is then left out; every Hugging Face model in it, whose
    ``attn_implementation`` becomes "regard"; and every module of one's own that calls
    ``F.scaled_dot_product_attention``, which gets two forward hooks. Weights and ``state_dict``
    are unchanged.

    Differences: a query with nothing to see gets zeros, where torch gives NaN and transformers the
    mean of all values; NaN in padding is not seen; ``observe`` sees every call. Under
    ``torch.compile``, plain attention that nobody watches is torch's own.

    Args:
        model: Changed in place. ``set_attn_implementation`` undoes it for Hugging Face's.

    Returns:
        ``model`` itself.

    Raises:
        SettingError: There is none of these in it, or its attention cannot be reached.

    Example:
        >>> layer = use(nn.TransformerEncoderLayer(8, 2, batch_first=True))
        >>> type(layer.self_attn).__name__
        'EngineAttention'
    """
    is_theirs = is_hugging_face(model)
    if not (_serve_modules(model) + serve_functions(model)) and not is_theirs:
        raise SettingError(
            "model must hold an nn.MultiheadAttention, a Hugging Face model or a module that calls "
            f"F.scaled_dot_product_attention; got {type(model).__name__} without any."
        )
    locate_modules(model)
    if is_theirs:
        switch(model)
    return model


class EngineAttention(nn.MultiheadAttention):
    """``nn.MultiheadAttention`` computed by the engine; ``use`` makes a module one.

    Example:
        >>> from regard.interop import use
        >>> layer = use(nn.MultiheadAttention(8, 2, batch_first=True))
        >>> type(layer).__name__
        'EngineAttention'
        >>> states = torch.zeros(1, 4, 8)
        >>> _, weights = layer(states, states, states, is_causal=True)
        >>> weights[0, 1].tolist()
        [0.5, 0.5, 0.0, 0.0]
    """

    @property
    def _qkv_same_embed_dim(self) -> bool:
        # Torch's Transformer layers read it before they go around this module.
        return False

    @_qkv_same_embed_dim.setter
    def _qkv_same_embed_dim(self, value: bool) -> None:
        pass

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Forward of torch's module; its masks are True where a query may *not* look.

        Weights are returned as they are before dropout.

        Args:
            query: (N, C), (N, B, C), or (B, N, C) with ``batch_first``.
            key: The same with M positions.
            value: The same with M positions.
            key_padding_mask: (M,) or (B, M): boolean, or a float that is added.
            need_weights: Whether the weights are returned too; the N×M matrix is made for it.
            attn_mask: (N, M) or (B · H, N, M): boolean, or a float that is added.
            average_attn_weights: Whether the weights are averaged over heads.
            is_causal: Without ``attn_mask``: query i sees keys up to i.

        Returns:
            The answer in the shape of ``query``; the weights, (B, N, M) or (B, H, N, M), or None.

        Raises:
            ShapeError: Shapes do not fit together, or a mask is neither boolean nor of floats.
        """
        self._check(query, key, value, key_padding_mask, attn_mask)
        is_batched = query.dim() == 3
        if not is_batched:
            query, key, value = (t.unsqueeze(0) for t in (query, key, value))
            if key_padding_mask is not None:
                key_padding_mask = key_padding_mask.unsqueeze(0)
        elif not self.batch_first:
            query, key, value = (t.transpose(0, 1) for t in (query, key, value))
        q, k, v, added = self._heads(query, key, value)
        mask, bias = self._mask_and_bias(q, k, added, key_padding_mask, attn_mask, is_causal)
        dropped = self.dropout if self.training else 0.0
        mixed = attend(q, k, v, mask=mask, bias=bias, dropout=dropped)
        out = self.out_proj(mixed.transpose(1, 2).flatten(2))
        rows = _weights(q, k, mask, bias) if need_weights else None
        if rows is not None and average_attn_weights:
            rows = rows.mean(dim=1)
        if not is_batched:
            return out.squeeze(0), None if rows is None else rows.squeeze(0)
        return out if self.batch_first else out.transpose(0, 1), rows

    def _check(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None,
        attn_mask: Tensor | None,
    ) -> None:
        """Torch's shapes and no others: a mask that merely broadcasts may be one transposed."""
        states = {"query": query, "key": key, "value": value}
        for (name, tensor), width in zip(
            states.items(), (self.embed_dim, self.kdim, self.vdim), strict=True
        ):
            if tensor.is_nested:
                raise ShapeError(
                    f"{name} must be padded; got a nested tensor. "
                    "Pass its to_padded_tensor(0) and a key_padding_mask."
                )
            if tensor.dim() not in (2, 3) or tensor.shape[-1] != width:
                shape = "(B, N, {0})" if self.batch_first else "(N, B, {0})"
                raise ShapeError(
                    f"{name} must have shape {shape.format(width)} or (N, {width}); "
                    f"got {tuple(tensor.shape)}."
                )
        batch_axis = 0 if self.batch_first else 1
        # A list, as sizes that an exporter leaves open cannot be in a set.
        batches = [t.shape[batch_axis] if t.dim() == 3 else None for t in states.values()]
        N, M = (t.shape[0 if t.dim() == 2 else 1 - batch_axis] for t in (query, key))
        if batches != batches[:1] * 3 or value.shape[:-1] != key.shape[:-1]:
            raise ShapeError(
                "query, key and value must have one batch, and key and value as many positions; "
                f"got {tuple(query.shape)}, {tuple(key.shape)} and {tuple(value.shape)}."
            )
        B = batches[0]
        rows = self.num_heads * (1 if B is None else B)
        _check_mask("key_padding_mask", key_padding_mask, [(M,) if B is None else (B, M)])
        _check_mask("attn_mask", attn_mask, [(N, M), (rows, N, M)])

    def _heads(
        self, query: Tensor, key: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, int]:
        """Projected queries, keys and values (B, H, N, D), and how many keys were added."""
        bias = self.in_proj_bias
        biases = (None, None, None) if bias is None else bias.chunk(3)
        matrices = (
            (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
            if self.in_proj_weight is None
            else self.in_proj_weight.chunk(3)
        )
        q, k, v = (
            F.linear(states, matrix, added)
            for states, matrix, added in zip((query, key, value), matrices, biases, strict=True)
        )
        more = 0
        if self.bias_k is not None and self.bias_v is not None:
            k = torch.cat([k, self.bias_k.expand(len(k), -1, -1)], dim=1)
            v = torch.cat([v, self.bias_v.expand(len(v), -1, -1)], dim=1)
            more += 1
        if self.add_zero_attn:
            k, v = F.pad(k, (0, 0, 0, 1)), F.pad(v, (0, 0, 0, 1))
            more += 1
        q, k, v = (
            t.reshape(*t.shape[:2], self.num_heads, self.head_dim).transpose(1, 2)
            for t in (q, k, v)
        )
        return q, k, v, more

    def _mask_and_bias(
        self,
        query: Tensor,
        key: Tensor,
        added: int,
        key_padding_mask: Tensor | None,
        attn_mask: Tensor | None,
        is_causal: bool,
    ) -> tuple[Mask | None, Tensor | None]:
        """Torch's masks as a mask and a bias of ours; keys that were added are always visible."""
        B, H, N, _ = query.shape
        M = key.shape[2]
        mask: Mask | None = None
        bias: Tensor | None = None
        if attn_mask is None and is_causal:
            mask = causal(first=0)
            if added:
                mask |= dense(torch.arange(M, device=key.device) >= M - added)
        masks: list[Tensor] = []
        if attn_mask is not None:
            per_head = attn_mask.dim() == 3
            masks.append(attn_mask.reshape(B, H, N, M - added) if per_head else attn_mask)
        if key_padding_mask is not None:
            masks.append(key_padding_mask.reshape(B, 1, 1, M - added))
        for tensor in (F.pad(tensor, (0, added)) for tensor in masks):
            visible: Mask | None = None
            mask_bias: Tensor | None = None
            if tensor.dtype == torch.bool:
                visible = dense(~tensor)
            else:
                floats = tensor.to(query.dtype)
                visible, mask_bias = split(floats, floats == float("-inf"))
            if visible is not None:
                mask = visible if mask is None else mask & visible
            if mask_bias is not None:
                bias = mask_bias if bias is None else bias + mask_bias
        return mask, bias


def _weights(query: Tensor, key: Tensor, mask: Mask | None, bias: Tensor | None) -> Tensor:
    """Return the weights (B, H, N, M); in an exported graph, by mixing the rows of the identity."""
    if not is_exporting():
        return weights(query, key, mask=mask, bias=bias)
    same = torch.eye(key.shape[2], dtype=key.dtype, device=key.device)
    return attend(query, key, same.expand(*key.shape[:2], -1, -1), mask=mask, bias=bias)


def _check_mask(name: str, mask: Tensor | None, shapes: list[tuple[int, ...]]) -> None:
    if mask is None:
        return
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise ShapeError(
            f"{name} must be boolean, or floats to add; got {mask.dtype}. Pass {name}.bool()."
        )
    if tuple(mask.shape) not in shapes:
        raise ShapeError(
            f"{name} must have shape {' or '.join(map(str, shapes))}; got {tuple(mask.shape)}."
        )


def _serve_modules(model: nn.Module) -> int:
    """Compute every ``nn.MultiheadAttention`` in a model by ``attend``; returns their number."""
    # Exactly torch's: a subclass has a way of its own, which is not ours to replace.
    torchs = (nn.MultiheadAttention, EngineAttention)
    modules = [module for module in model.modules() if type(module) in torchs]
    for module in modules:
        module.__class__ = EngineAttention
    for encoder in model.modules() if modules else ():
        if isinstance(encoder, nn.TransformerEncoder):
            encoder.use_nested_tensor = False  # decided when it was made, before we came
    return len(modules)
