"""Options of other libraries' attention, answered with the names they have here."""

from collections.abc import Callable, Iterable
from inspect import signature

from regard.choices import nearest
from regard.errors import SettingError

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


def refuse_options(function: Callable[..., object], given: Iterable[str]) -> None:
    """Raise SettingError if there are options that the function has not, with the name it has.

    Example:
        >>> from regard.attention import attend
        >>> refuse_options(attend, ["is_causal"])
        Traceback (most recent call last):
        regard.errors.SettingError: is_causal is not an option of attend. Use mask=regard.causal().
    """
    for name in given:
        cure = f" Use {_CURES[name]}." if name in _CURES else ""
        if not cure and (close := nearest(name, signature(function).parameters)):
            cure = f" Did you mean {close}?"
        owner = function.__qualname__.removesuffix(".__init__").removesuffix(".forward")
        raise SettingError(f"{name} is not an option of {owner}.{cure}")
