"""Options of ``attend``: types, defaults, and the names that other libraries have for them."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from inspect import signature
from typing import Any, NamedTuple, TypedDict

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.biases import PositionBias
from regard.attention.masks.base import Mask
from regard.attention.scores import ScaledDot, Score
from regard.attention.weighting import Softmax, Weighting
from regard.checks import nearest
from regard.errors import SettingError
from regard.fields import described


class CallOptions(NamedTuple):
    """Options of one call of ``attend``, with their defaults; its docstring describes them."""

    score: Score = ScaledDot()
    mask: Mask | Tensor | None = None
    bias: Tensor | PositionBias | None = None
    weighting: Weighting = Softmax()
    dropout: float = 0.0
    generator: torch.Generator | None = None
    backend: str | None = None
    return_lse: bool = False


class WeightsOptions(TypedDict, total=False):
    """Options of calls that give weights alone; ``attend`` describes them."""

    score: Score
    mask: Mask | Bool[Tensor, "..."] | None
    bias: Float[Tensor, "..."] | PositionBias | None
    weighting: Weighting


class AttendOptions(WeightsOptions, total=False):
    """Options of ``attend``, which describes them, but for ``return_lse``."""

    dropout: float
    generator: torch.Generator | None
    backend: str | None


# Decorates a function of ``**options``.
takes = partial(described, defaults=CallOptions._field_defaults)


def options_of(function: Callable[..., object], options: Mapping[str, Any]) -> CallOptions:
    """The options that a function is given; refuses those that it has not."""
    parameters = signature(function).parameters
    refuse_options(function, [name for name in options if name not in parameters])
    return CallOptions(**options)


_CAUSAL = "mask=regard.causal()"
_WEIGHTS = "regard.weights(query, key), or regard.summarize(query, key) where it would be large"
_CURES = {
    "attention_mask": "mask=attention_mask[:, None, None, :].bool(), True where a query may look",
    "attn_bias": "bias=attn_bias",
    "attn_mask": "mask=attn_mask, True where a query may look (nn.MultiheadAttention's is True "
    "where it may not: mask=~attn_mask), or bias=attn_mask of numbers to add to the scores",
    "average_attn_weights": _WEIGHTS,
    "batch_first": "states of shape (B, N, C), which every layer takes",
    "block_mask": "mask=regard.where(rule)",
    "causal": _CAUSAL,
    "dropout_p": "dropout=dropout_p",
    "enable_gqa": "keys of fewer heads than queries as they are: the heads are shared",
    "is_causal": _CAUSAL,
    "kdim": "key_dim=kdim",
    "key_padding_mask": "mask=regard.lengths(lengths), or mask=~key_padding_mask[:, None, None], "
    "True where a query may look",
    "need_weights": _WEIGHTS,
    "output_attentions": _WEIGHTS,
    "return_attention_scores": _WEIGHTS,
    "scale": "score=regard.ScaledDot(scale=scale)",
    "score_mod": "score=regard.Custom(formula)",
    "softcap": "score=regard.ScaledDot(softcap=softcap)",
    "softmax_scale": "score=regard.ScaledDot(scale=softmax_scale)",
    "use_causal_mask": _CAUSAL,
    "vdim": "value_dim=vdim",
    "window_size": "mask=regard.window(before=256)",
}


def refuse_options(function: Callable[..., object], names: Iterable[str]) -> None:
    """Raise SettingError for options that a function has not, naming those it has."""
    for name in names:
        cure = f" Use {_CURES[name]}." if name in _CURES else ""
        if not cure and (close := nearest(name, signature(function).parameters)):
            cure = f" Did you mean {close}?"
        owner = function.__qualname__.removesuffix(".__init__").removesuffix(".forward")
        raise SettingError(f"{name} is not an option of {owner}.{cure}")
