"""The engine as the attention of Hugging Face models, through the registry of transformers.

An attention function is registered together with a mask function, since transformers gives no mask
at all, neither padding nor causal, to a name that has none of its own.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from regard.attention import Mask, ScaledDot, Softmax, at, attend, causal, dense, weights
from regard.attention.observing import is_edited, is_watched
from regard.devices import CPU
from regard.errors import SettingError, ShapeError
from regard.interop.modules.formulas import formula_of
from regard.interop.modules.lazy_mask import Frame, LazyMask, MaskFunction
from regard.interop.modules.locations import Location, calling, location_of

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

# Names that hold "sdpa", "flash_attention_", "flex_attention", "paged|" or "/" mean other things.
NAME = "regard"

# Masks and biases of tensors that models were given, kept for their other layers.
_of_tensors: MutableMapping[Tensor, tuple[int, int, Mask | None, Tensor | None]] = (
    WeakIdKeyDictionary()
)


@dataclass(slots=True)
class _Switched:
    """A config that blocks have switched, and the name that it had before."""

    config: "PreTrainedConfig"  # which lives as long as its id is in use
    name: str | None
    blocks: int = 0


_switched: dict[int, _Switched] = {}
_switching = Lock()


def is_hugging_face(model: nn.Module) -> bool:
    """Whether some part of a model is one of transformers; loads nothing."""
    return bool(pretrained(model))


@contextmanager
def switched(model: nn.Module, *, but: Sequence["PreTrainedModel"] = ()) -> Iterator[None]:
    """Switch a model's Hugging Face parts to the engine inside the block; ``but`` stay eager."""
    configs = list(_configs(pretrained(model)))
    with _switching:
        for config in configs:
            before = _Switched(config, config._attn_implementation_internal)
            _switched.setdefault(id(config), before).blocks += 1
    try:
        switch(model, but=but)
        yield
    finally:
        with _switching:
            for config in configs:
                switched = _switched[id(config)]
                switched.blocks -= 1
                if not switched.blocks:  # in whatever thread
                    config._attn_implementation_internal = switched.name
                    del _switched[id(config)]


def switch(model: nn.Module, *, but: Sequence["PreTrainedModel"] = ()) -> None:
    """Switch a model's Hugging Face parts to the engine; ``but`` compute their own attention."""
    _register()
    excluded = {id(part) for part in but}
    for part in eager_parts(model):
        if id(part) not in excluded:
            raise SettingError(
                "model must take its attention from transformers' AttentionInterface; got "
                f"{type(part).__name__}, which computes its own. It can be watched, and neither "
                "served nor edited."
            )
    for module in model.modules():
        formula_of(module)  # now, since a compiler cannot read functions
    for config in _configs(pretrained(model)):
        config._attn_implementation_internal = NAME
    for config in _configs(but):
        config._attn_implementation_internal = "eager"


def eager_parts(model: nn.Module) -> "list[PreTrainedModel]":
    """The Hugging Face models in a model that compute their own attention."""
    return [part for part in pretrained(model) if not part._can_set_attn_implementation()]


def attention(
    module: nn.Module,
    query: Float[Tensor, "B H N D"],
    key: Float[Tensor, "b G M D"],
    value: Float[Tensor, "b G M E"],
    attention_mask: object = None,
    dropout: float = 0.0,
    scaling: float | Tensor | None = None,
    **options: Any,
) -> tuple[Float[Tensor, "B N H E"], Float[Tensor, "B H N M"] | None]:
    """Attention function for transformers, by ``attend``; SettingError where it would differ."""
    formula = formula_of(module)
    formula.check(type(module).__name__, options)
    is_causal, softcap = options.get("is_causal"), options.get("softcap")
    position_bias, s_aux = options.get("position_bias"), options.get("s_aux")
    if s_aux is None and formula.has_sinks:
        sinks = options.get("sinks", getattr(module, "sinks", None))
        s_aux = sinks if isinstance(sinks, Tensor) else None
    if isinstance(scaling, Tensor):
        query, scaling = query * scaling, 1.0
    query, key, value = as_autocast(query, key, value)
    dropout = dropout if module.training else 0.0
    is_plain = not softcap and position_bias is None and s_aux is None
    if is_plain and _is_left_to_compiler(attention_mask) and not _wants_weights(options):
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        if is_causal is None:
            is_causal = bool(getattr(module, "is_causal", False))
        boolean = cast("Tensor | None", attention_mask)
        out, _ = sdpa_attention_forward(
            *(module, query, key, value, boolean, dropout, scaling, is_causal)
        )
        return out, None
    lazy = attention_mask if isinstance(attention_mask, LazyMask) else None
    mask, bias, keys = _visible(module, query, key, attention_mask, is_causal)
    if keys < key.shape[2]:
        key, value = key[:, :, :keys], value[:, :, :keys]
    if position_bias is not None:
        added = position_bias[..., :keys].to(query.dtype)
        bias = added if bias is None else bias + added
    location = location_of(module)
    kind = _kind(location, lazy, mask, module)
    score = ScaledDot(None if scaling is None else float(scaling), softcap or None)
    weighting = Softmax(_sink(s_aux, query))
    # In a graph only where somebody watches or edits, since it ends the graph.
    call = nullcontext() if _is_left_to_compiler() else calling(module, location, lazy)
    with call, at(kind, location.layer):
        out = attend(
            *(query, key, value),
            score=score,
            mask=mask,
            bias=bias,
            weighting=weighting,
            dropout=dropout,
        )
    rows = None
    if _wants_weights(options):
        rows = weights(query, key, score=score, mask=mask, bias=bias, weighting=weighting)
    return out.transpose(1, 2).contiguous(), rows


def _is_left_to_compiler(mask: object = None) -> bool:
    """Whether a graph is traced that nobody watches: torch's kernel fuses in it."""
    if not torch.compiler.is_compiling() or is_watched() or is_edited():
        return False
    return mask is None or (isinstance(mask, Tensor) and mask.dtype == torch.bool)


def as_autocast(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Cast to the dtype of autocast: many models apply rotary positions in float32."""
    kind = query.device.type
    if query.dtype == key.dtype == value.dtype or not torch.is_autocast_enabled(kind):
        return query, key, value
    dtype = torch.get_autocast_dtype(kind)
    return query.to(dtype), key.to(dtype), value.to(dtype)


def lazy_mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int | Tensor = 0,
    kv_offset: int | Tensor = 0,
    mask_function: MaskFunction | None = None,
    attention_mask: Tensor | LazyMask | None = None,
    **options: Any,
) -> LazyMask | Tensor | None:
    """Mask function for transformers: the mask as a rule, or in a graph as a tensor."""
    from transformers.masking_utils import causal_mask_function, sdpa_mask

    if isinstance(attention_mask, LazyMask):
        return attention_mask
    if _is_left_to_compiler():
        make = cast("Callable[..., Tensor | None]", sdpa_mask)
        return make(
            *(batch_size, q_length, kv_length, q_offset, kv_offset),
            mask_function=mask_function or causal_mask_function,
            attention_mask=attention_mask,
            **options,
        )
    # Reading a number of a tensor would end a graph.
    start = cast(int, q_offset) if torch.compiler.is_compiling() else int(q_offset)
    use_vmap, device = bool(options.get("use_vmap")), torch.device(options.get("device", CPU))
    frame = Frame(q_length, kv_length, start, int(kv_offset), use_vmap, device)
    padding = None if attention_mask is None else attention_mask.bool()
    function = mask_function or cast(MaskFunction, causal_mask_function)
    return LazyMask(function, padding, frame, batch_size)


def _visible(
    module: nn.Module, query: Tensor, key: Tensor, mask: object, is_causal: bool | None
) -> tuple[Mask | None, Tensor | None, int]:
    """The mask, the bias, and how many keys are attended, from the first."""
    N, M = query.shape[2], key.shape[2]
    if isinstance(mask, LazyMask):
        if mask.frame.queries != N or mask.frame.keys < M:
            raise ShapeError(
                f"model must attend where its mask is for, (N, M) = {mask.shape[2:]}; got {(N, M)}."
            )
        keys = M if torch.compiler.is_compiling() else _attended(mask, N, M)
        return mask.mask(query.device, keys), None, keys
    if isinstance(mask, Tensor):
        return (*_of_tensor(mask, N, M), M)
    if mask is not None:
        raise SettingError(
            f"attention_mask must be a tensor or None; got {type(mask).__name__}. "
            "Give the model a padding mask (B, M), or one of (B, 1, N, M)."
        )
    if is_causal is None:
        is_causal = bool(getattr(module, "is_causal", False))
    if is_causal and N > 1:
        return causal(first=0), None, min(N, M)
    return None, None, M


def _attended(mask: LazyMask, N: int, M: int) -> int:
    """Number of attended keys: beyond the last query, a static cache holds nothing yet."""
    reach = int(mask.frame.first) + N
    return reach if 0 < reach < M and _looks_back(mask) else M


def _looks_back(mask: LazyMask) -> bool:
    """Whether it is known that nothing is visible after a query's own location."""
    rule = mask.mask(mask.device)
    form = None if rule is None else rule.bind(mask.batch, 1, *mask.shape[2:], mask.device).form
    most = getattr(form, "most", None)
    return most is not None and most <= mask.frame.first


def _of_tensor(tensor: Tensor, N: int, M: int) -> tuple[Mask | None, Tensor | None]:
    """A mask tensor (…, N, M) that the model was given: true, or zero, where a query may look."""
    if tensor.dim() not in (2, 4) or tensor.shape[-1] < M or tensor.shape[-2] not in (1, N):
        raise ShapeError(
            f"attention_mask must have shape (B, 1, N, M) = (B, 1, {N}, {M}); "
            f"got {tuple(tensor.shape)}."
        )
    if tensor.dtype != torch.bool and not tensor.is_floating_point():
        raise ShapeError(
            f"attention_mask must be boolean, or floats to add; got {tensor.dtype}. "
            "Pass attention_mask.bool()."
        )
    is_compiled = torch.compiler.is_compiling()
    cached = None if is_compiled else _of_tensors.get(tensor)
    if cached is not None and cached[:2] == (tensor._version, M):
        return cached[2], cached[3]
    cropped = tensor[..., :M]
    mask: Mask | None = dense(cropped) if tensor.dtype == torch.bool else None
    bias: Tensor | None = None
    if mask is None:
        mask, bias = split(cropped, cropped <= torch.finfo(tensor.dtype).min / 2)
    if not (is_compiled or tensor.requires_grad):
        _of_tensors[tensor] = (tensor._version, M, mask, bias)
    return mask, bias


def split(mask: Tensor, hidden: Tensor) -> tuple[Mask | None, Tensor | None]:
    """Split a mask of floats into a mask and a bias, each None where it says nothing."""
    bias = mask.masked_fill(hidden, 0.0)
    if torch.compiler.is_compiling():  # a graph has no numbers to look at
        return dense(~hidden), bias
    has_bias = bias.requires_grad or bool(bias.any())
    return dense(~hidden) if bool(hidden.any()) else None, bias if has_bias else None


def _sink(sinks: Tensor | None, query: Tensor) -> Tensor | None:
    if sinks is None:
        return None
    H = query.shape[1]
    if sinks.numel() != H:
        raise SettingError(
            f"s_aux must be one number per head, ({H},); got shape {tuple(sinks.shape)}."
        )
    return sinks.reshape(H)


def _wants_weights(options: Mapping[str, object]) -> bool:
    """Whether the model was called with ``output_attentions``; most do not tell their attention."""
    if options.get("output_attentions"):
        return True
    home = sys.modules.get("transformers.utils.output_capturing")
    collector = getattr(home, "_active_collector", None)
    collected = None if collector is None else collector.get()
    return any("attentions" in name for name in collected or ())


def _kind(location: Location, lazy: LazyMask | None, mask: Mask | None, module: nn.Module) -> str:
    if location.is_cross or getattr(module, "is_cross_attention", False):
        return "cross"
    if lazy is not None and lazy.is_causal is not None:
        return "decoder" if lazy.is_causal else "encoder"
    is_decoder = getattr(module, "is_causal", False) or getattr(module, "is_decoder", False)
    return "decoder" if is_decoder else "encoder"


def pretrained(model: nn.Module) -> "list[PreTrainedModel]":
    """The Hugging Face models in a model, the outermost first."""
    home = sys.modules.get("transformers.modeling_utils")
    if home is None:
        return []
    return [part for part in model.modules() if isinstance(part, home.PreTrainedModel)]


def _configs(parts: Sequence["PreTrainedModel"]) -> "list[PreTrainedConfig]":
    """Every configuration that the attention of Hugging Face models may be named in."""
    configs: dict[int, PreTrainedConfig] = {}

    def add(config: "PreTrainedConfig | None") -> None:
        if config is None or id(config) in configs or not hasattr(config, "sub_configs"):
            return
        configs[id(config)] = config
        for name in config.sub_configs:
            add(getattr(config, name, None))

    for part in parts:
        for module in part.modules():
            add(getattr(module, "config", None))
    return list(configs.values())


@lru_cache(maxsize=1)
def _register() -> None:
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface

    AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, lazy_mask)
