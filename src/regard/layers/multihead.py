"""Multi-head attention of Vaswani et al. (2017), section 3.2.2."""

from math import sqrt
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.attend import attend
from regard.attention.biases import PositionBias
from regard.attention.cache import KeyValueCache
from regard.attention.mask import Mask
from regard.attention.scores import ScaledDot, Score
from regard.checks import check_divides, check_fraction
from regard.errors import SettingError
from regard.layers.dropout import dropout as drop
from regard.layers.packing import Packing

_SCALED_DOT = ScaledDot()


class MultiHeadAttention(nn.Module):
    """Attention in several heads, each on its own projection of the states.

    ``concat(head_1, ..., head_H) W^O`` with ``head_i = attend(x W_i^Q, m W_i^K, m W_i^V)``. Over
    its own states queries, keys and values come out of one matrix product; over a memory, keys
    and values do.

    Args:
        model_dim: Width of the states and of the answer, C.
        num_heads: Attention heads, H; divides model_dim.
        bias: Whether the projections have biases.
        key_value_dim: Width of the memory. None is for attention over the states themselves.
        dropout: The fraction of attention weights set to zero in training.
        score: How queries and keys of a head match; per head by parameters such as (H, 1).
        head_dropout: The fraction of heads left out for a query in training, Zhou et al. (2020),
            https://arxiv.org/abs/2004.13342: no head may rely on another to find the right key.

    Raises:
        SettingError: ``num_heads`` does not divide ``model_dim``, or a dropout is not below 1.
    """

    def __init__(
        self,
        model_dim: int,
        num_heads: int,
        *,
        bias: bool = True,
        key_value_dim: int | None = None,
        dropout: float = 0.0,
        head_dropout: float = 0.0,
        score: Score = _SCALED_DOT,
    ) -> None:
        super().__init__()
        check_divides("num_heads", num_heads, "model_dim", model_dim)
        check_fraction("dropout", dropout)
        check_fraction("head_dropout", head_dropout)
        self.num_heads = num_heads
        self.dropout = dropout
        self.head_dropout = head_dropout
        self.score = score
        self.query_key_value: nn.Linear | None = None
        if key_value_dim is None:
            self.query_key_value = nn.Linear(model_dim, 3 * model_dim, bias=bias)
        else:
            self.query = nn.Linear(model_dim, model_dim, bias=bias)
            self.key_value = nn.Linear(key_value_dim, 2 * model_dim, bias=bias)
        self.output = nn.Linear(model_dim, model_dim, bias=bias)
        self._initialise()

    def forward(
        self,
        states: Float[Tensor, "*positions C"],
        memory: Float[Tensor, "B M K"] | KeyValueCache | None = None,
        *,
        mask: Mask | Bool[Tensor, "..."] | None = None,
        bias: Float[Tensor, "..."] | PositionBias | None = None,
        cache: KeyValueCache | None = None,
        packing: Packing | None = None,
    ) -> tuple[Float[Tensor, "*positions C"], KeyValueCache | None]:
        """What each state gathers from the others, or from the memory.

        Args:
            states: What asks, (B, N, C); (R, C) with a packing.
            memory: What is looked at, or its keys and values from ``project_memory``. None looks
                at the states themselves.
            mask: Which keys a state may look at. With a cache, keys count from its beginning.
            bias: Added to the scores, such as ``alibi()``; broadcasts to (B, H, N, M).
            cache: Keys and values of earlier positions, put before those of ``states``.
            packing: Where the positions of packed states stand. None: they are not packed.

        Returns:
            The gathered states, and the cache with these positions added, or None if there was
            no cache.

        Raises:
            SettingError: A cache was given together with a memory, or a memory to a layer made
                without ``key_value_dim``.
        """
        if memory is not None:
            query, kept = self._over_memory(states, memory, cache, packing)
        elif self.query_key_value is None:
            raise SettingError("memory must be given to a layer made with key_value_dim; got None.")
        else:
            query, key, value = self._split(self.query_key_value(states), 3, packing)
            kept = KeyValueCache(key, value)
            if cache is not None:
                kept = cache = cache.append(key, value)
        mixed = attend(
            query,
            kept.key,
            kept.value,
            score=self.score,
            mask=mask,
            bias=bias,
            dropout=self.dropout if self.training else 0.0,
        )
        if self.training and self.head_dropout:
            mixed = mixed * drop(mixed.new_ones(*mixed.shape[:3], 1), self.head_dropout)
        joined = mixed.transpose(1, 2).flatten(2)
        return self.output(joined if packing is None else packing.pack(joined)), cache

    def project_memory(
        self,
        memory: Float[Tensor, "*positions K"],
        values: Float[Tensor, "*positions K"] | None = None,
        *,
        packing: Packing | None = None,
    ) -> KeyValueCache:
        """The keys and values of a memory: compute them once, look at them in every step.

        Args:
            memory: What keys are made of, and values too unless they are given.
            values: What values are made of instead, position for position.
            packing: Where the positions of a packed memory stand. None: it is not packed.
        """
        if self.query_key_value is not None:
            raise SettingError(
                "memory must go to a layer made for one; got a layer without key_value_dim. "
                "Pass key_value_dim= the memory's width."
            )
        if values is None:
            key, value = self._split(self.key_value(memory), 2, packing)
            return KeyValueCache(key, value)
        layer = self.key_value
        to_key, to_value = layer.weight.chunk(2)
        key_bias, value_bias = (None, None) if layer.bias is None else layer.bias.chunk(2)
        (key,) = self._split(F.linear(memory, to_key, key_bias), 1, packing)
        (value,) = self._split(F.linear(values, to_value, value_bias), 1, packing)
        return KeyValueCache(key, value)

    @classmethod
    def from_torch(cls, peer: nn.MultiheadAttention) -> "MultiHeadAttention":
        """A layer that gives the same numbers as torch's, with a copy of its weights.

        Self-attention where torch's keys and values are as wide as its queries, as in
        ``nn.TransformerEncoderLayer``. Torch's masks are True where a query may *not* look.

        Args:
            peer: With one matrix for queries, keys and values, and nothing added to the keys.

        Raises:
            SettingError: It has separate matrices, ``bias_k`` or ``add_zero_attn``.
        """
        if peer.in_proj_weight is None or peer.bias_k is not None or peer.add_zero_attn:
            raise SettingError(
                "peer must have one matrix for queries, keys and values, and neither bias_k nor "
                "add_zero_attn; got another nn.MultiheadAttention."
            )
        layer = cls(
            peer.embed_dim,
            peer.num_heads,
            bias=peer.in_proj_bias is not None,
            dropout=peer.dropout,
        ).to(peer.in_proj_weight)
        assert layer.query_key_value is not None
        with torch.no_grad():
            layer.query_key_value.weight.copy_(peer.in_proj_weight)
            layer.output.weight.copy_(peer.out_proj.weight)
            if peer.in_proj_bias is not None:
                layer.query_key_value.bias.copy_(peer.in_proj_bias)
                layer.output.bias.copy_(peer.out_proj.bias)
        return layer.train(peer.training)

    def empty_cache(self, batch: int) -> KeyValueCache:
        """A cache of no positions yet, for ``batch`` rows."""
        weight = self.output.weight
        nothing = weight.new_empty(batch, self.num_heads, 0, weight.shape[0] // self.num_heads)
        return KeyValueCache(nothing, nothing)

    def _over_memory(
        self,
        states: Tensor,
        memory: Tensor | KeyValueCache,
        cache: KeyValueCache | None,
        packing: Packing | None,
    ) -> tuple[Tensor, KeyValueCache]:
        if cache is not None:
            raise SettingError(
                "cache must be left out where there is a memory; got both. "
                "Pass project_memory(memory) as the memory to keep its keys and values."
            )
        kept = memory if isinstance(memory, KeyValueCache) else self.project_memory(memory)
        (query,) = self._split(self.query(states), 1, packing)
        return query, kept

    def _split(self, projected: Tensor, parts: int, packing: Packing | None) -> tuple[Tensor, ...]:
        """(B, N, parts · C) as ``parts`` tensors (B, H, N, D)."""
        if packing is not None:
            projected = packing.pad(projected)
        if projected.dtype == torch.bfloat16 and projected.device.type == "cpu":
            result: tuple[Tensor, ...] = _Float32Heads.apply(  # type: ignore[no-untyped-call]
                projected, parts, self.num_heads
            )
            return result
        B, N, _ = projected.shape
        heads = projected.view(B, N, parts, self.num_heads, -1)
        return heads.permute(2, 0, 3, 1, 4).unbind(0)

    def _initialise(self) -> None:
        """Xavier as if queries, keys and values were one matrix; biases zero."""
        for name, layer in self.named_children():
            assert isinstance(layer, nn.Linear)
            C = self.output.weight.shape[0]
            # fan_in + fan_out of the joint matrix is 4 C whichever way it is cut.
            joint = sum(layer.weight.shape) if name == "output" else layer.in_features + 3 * C
            nn.init.uniform_(layer.weight, -sqrt(6 / joint), sqrt(6 / joint))
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


class _Float32Heads(torch.autograd.Function):
    """Cuts a projection into heads and widens it, in one pass each way.

    A CPU attends in float32 whatever the projection came in (half-precision attention is several
    times slower there), and cutting, widening and stacking the gradients one after the other
    would read and write every number three times.
    """

    @staticmethod
    def forward(ctx: Any, projected: Tensor, parts: int, num_heads: int) -> tuple[Tensor, ...]:
        B, N, width = projected.shape
        ctx.sizes = (B, N, parts, num_heads, width // (parts * num_heads))
        ctx.dtype = projected.dtype
        heads = projected.view(ctx.sizes).permute(2, 0, 3, 1, 4)
        wide = torch.empty(heads.shape, dtype=torch.float32).copy_(heads)
        return wide.unbind(0)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        B, N, *_ = ctx.sizes
        joined = torch.empty(ctx.sizes, dtype=ctx.dtype)
        for part, grad in enumerate(grads):
            joined[:, :, part].copy_(grad.transpose(1, 2))
        return joined.view(B, N, -1), None, None
