"""Attention that a module of one's own writes in torch: seen, edited, or computed by the engine.

``F.scaled_dot_product_attention`` is met where it is called; weights made by hand are marked.
"""

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from regard.attention import Mask, ScaledDot, at, attend, causal, dense
from regard.attention.engine.options import CallOptions
from regard.attention.observing import announce, current_editor, current_observer
from regard.errors import SettingError, ShapeError
from regard.interop.modules.hugging_face import as_autocast, split
from regard.interop.modules.own_attention import call_of_weights

_NAME = "scaled_dot_product_attention"
# Packages whose modules are reached in other ways, or not at all.
_KNOWN = ("regard", "torch", "transformers")


class FunctionAttention(TorchFunctionMode):
    """Meets ``F.scaled_dot_product_attention`` where modules of one's own call it."""

    def __init__(self, *, serves: bool = False) -> None:
        super().__init__()
        self._serves = serves  # computes by ``attend`` even if nobody edits

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> object:
        """Announce a call of attention; of all else, nothing."""
        kwargs = kwargs or {}
        if func is not F.scaled_dot_product_attention or torch.compiler.is_compiling():
            return func(*args, **kwargs)
        caller = str(sys._getframe(1).f_globals.get("__name__", ""))
        if not caller or caller.partition(".")[0] in _KNOWN:  # a graph, or the engine itself
            return func(*args, **kwargs)
        tensors, options = _Arguments(*args, **kwargs).read()
        if self._serves or current_editor() is not None:
            return attend(*tensors, **options._asdict())
        announce(*tensors[:2], options)
        return func(*args, **kwargs)


class _Arguments(NamedTuple):
    """Arguments of ``F.scaled_dot_product_attention``."""

    query: Tensor
    key: Tensor
    value: Tensor
    attn_mask: Tensor | None = None
    dropout_p: float = 0.0
    is_causal: bool = False
    scale: float | None = None
    enable_gqa: bool = False

    def read(self) -> tuple[tuple[Tensor, Tensor, Tensor], CallOptions]:
        """Return queries, keys, values and options as ``attend`` takes them."""
        if self.query.is_nested:
            raise ShapeError(
                "query must be padded for its attention to be seen; got a nested tensor. "
                "Pass its to_padded_tensor(0) and an attn_mask."
            )
        mask: Mask | None = causal(first=0) if self.is_causal else None
        bias: Tensor | None = None
        if self.attn_mask is not None and self.attn_mask.dtype == torch.bool:
            mask = dense(self.attn_mask)
        elif self.attn_mask is not None:
            mask, bias = split(self.attn_mask, self.attn_mask == float("-inf"))
        options = CallOptions(ScaledDot(self.scale), mask, bias, dropout=float(self.dropout_p))
        return as_autocast(self.query, self.key, self.value), options


def functions_seen(model: nn.Module) -> AbstractContextManager[object]:
    """Meet torch's function inside the block, if a model has modules that may call it."""
    return FunctionAttention() if any(map(_is_custom, model.modules())) else nullcontext()


def serve_functions(model: nn.Module) -> int:
    """Have the engine compute torch's attention within a model; returns how many modules."""
    modules = [
        module for module in model.modules() if _is_custom(module) and _names_function(module)
    ]
    for module in modules:
        if _begin not in module._forward_pre_hooks.values():
            module.register_forward_pre_hook(_begin)
            module.register_forward_hook(_end, always_call=True)
    return len(modules)


_serving: ContextVar[tuple[FunctionAttention | None, ...]] = ContextVar("serving", default=())


def _begin(module: nn.Module, args: object) -> None:
    if torch.compiler.is_compiling():
        return
    outer = _serving.get()
    mode = None if outer else FunctionAttention(serves=True)
    if mode is not None:
        mode.__enter__()  # type: ignore[no-untyped-call]
    _serving.set((*outer, mode))


def _end(module: nn.Module, args: object, output: object) -> None:
    if torch.compiler.is_compiling() or not (serving := _serving.get()):
        return
    _serving.set(serving[:-1])
    if (mode := serving[-1]) is not None:
        mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]


def mark_weights(weights: Float[Tensor, "*b N M"]) -> Float[Tensor, "*b N M"]:
    """Say that a tensor holds attention weights, which ``watch`` then shows and ``edit`` changes.

    For attention that is written out in a module: ``weights = mark_weights(scores.softmax(-1))``,
    and then ``weights @ value``, before any dropout. Where nobody watches or edits, it is the
    tensor itself, at no cost; in a compiled module it always is.

    Args:
        weights: A row for each query that sums to one, or to zero: (B, H, N, M), or (B, N, M) of
            one head.

    Returns:
        The weights, with the edits if there are any.

    Raises:
        ShapeError: There are less than three axes.

    Example:
        >>> import regard as rg
        >>> class Mine(nn.Module):
        ...     def forward(self, states):
        ...         return mark_weights((states @ states.mT).softmax(-1)) @ states
        >>> model = Mine()
        >>> with rg.watch(model, top=1) as seen:
        ...     _ = model(torch.eye(3)[None])
        >>> seen.summary(0).top_keys.flatten().tolist()
        [0, 1, 2]
    """
    observer, editor = current_observer(), current_editor()
    if torch.compiler.is_compiling() or (observer is editor is None):
        return weights
    if weights.dim() < 3:
        raise ShapeError(
            f"weights must have the axes (B, H, N, M) or (B, N, M); got {tuple(weights.shape)}."
        )
    N, M = weights.shape[-2:]
    looks_ahead = N != M or N < 2 or bool(weights.detach().triu(1).any())
    with at("" if looks_ahead else "decoder", -1):
        edit = None if editor is None else editor(call_of_weights(weights))
        if edit is not None and (edit.query, edit.key, edit.value) != (None, None, None):
            raise SettingError(
                "attention must be computed by a function for its inputs to be replaced; got "
                "weights that were marked. Call F.scaled_dot_product_attention there."
            )
        if edit is not None and edit.mask is not None:
            weights = _without(weights, edit.mask)
        if observer is not None:
            observer(call_of_weights(weights))
    if edit is None or edit.finish is None:
        return weights
    # Weights mix the rows of the identity into themselves.
    same = torch.eye(M, dtype=weights.dtype, device=weights.device)
    return edit.finish(weights, same.expand(*weights.shape[:-2], M, M))


def _without(weights: Tensor, mask: Mask) -> Tensor:
    """Give the weight of keys that a mask hides to the others."""
    whole = weights if weights.dim() > 3 else weights.unsqueeze(-3)
    *batch, H, N, M = whole.shape
    bound = mask.bind(tuple(batch), H, N, M, weights.device)
    visible = whole.masked_fill(~bound.dense(), 0.0)
    sums = visible.sum(dim=-1, keepdim=True)
    total = whole.sum(dim=-1, keepdim=True)
    return (visible * (total / sums.masked_fill(sums == 0, 1.0))).reshape(weights.shape)


def _is_custom(module: nn.Module) -> bool:
    """Whether a module's class is of another package than those that are known."""
    return type(module).__module__.partition(".")[0] not in _KNOWN


def _names_function(module: nn.Module) -> bool:
    """Whether the code of a module's class, or of its file, names torch's function."""
    home = vars(sys.modules.get(type(module).__module__, object))
    classes = [
        base for base in type(module).__mro__ if base.__module__.partition(".")[0] != "torch"
    ]
    functions = [*home.values(), *(member for kind in classes for member in vars(kind).values())]
    return any(
        isinstance(function, FunctionType) and _names(function.__code__) for function in functions
    )


def _names(code: CodeType) -> bool:
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return _NAME in code.co_names or any(map(_names, inner))


def check_compiled(model: nn.Module) -> None:
    """Raise SettingError for a compiled model, of whose attention nothing was seen."""
    compiled = [module for module in model.modules() if hasattr(module, "_orig_mod")]
    called = [module for module in model.modules() if module._compiled_call_impl is not None]
    if compiled or called:
        raise SettingError(
            "model must run as it was written for attention by "
            f"F.{_NAME} or mark_weights to be seen; got {type(model).__name__}, which is compiled. "
            + ("Watch model._orig_mod." if compiled else "Watch it before model.compile().")
        )
