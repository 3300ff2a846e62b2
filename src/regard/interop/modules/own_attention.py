"""Attention that a Hugging Face model computes past the registry: read from its outputs.

``output_attentions`` has such a model give its weights, of every layer at once. Observers get them
as a call whose scores are the weights themselves, so that nothing is rounded.
"""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention import AttentionCall, Dot, at
from regard.attention.observing import current_location, current_observer
from regard.attention.weighting import Weighting
from regard.errors import SettingError
from regard.interop.modules.hooks import hooked
from regard.interop.modules.lazy_mask import Frame, LazyMask
from regard.interop.modules.locations import Arguments, Location, Options, calling, location_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# Names of weights among a model's outputs, and their kind; None where that depends on the model.
_FIELDS = {
    "attentions": None,
    "encoder_attentions": "encoder",
    "decoder_attentions": "decoder",
    "cross_attentions": "cross",
}
_OPTION = "output_attentions"
_ROUNDING = 1e-2  # rows of half precision sum to one within this
# Name that Longformer and its kin have for how far a band reaches to either side.
_REACH = "one_sided_attn_window_size"


@dataclass(frozen=True, slots=True)
class AsGiven(Weighting):
    """Scores that are the weights already; −inf is a weight of zero."""

    def rows(self, scores: Tensor) -> Tensor:
        return scores.masked_fill(scores == float("-inf"), 0.0)

    def gradient(self, weights: Tensor, grad: Tensor) -> Tensor:
        return grad


class _Made(NamedTuple):
    """Weights as a module returned them."""

    module: nn.Module
    weights: Tensor
    is_global: Tensor | None  # positions that attend to all, of a module that attends in a band


@contextmanager
def read_weights(parts: Sequence["PreTrainedModel"]) -> Iterator[None]:
    """Announce the weights of models to observers inside the block; outputs stay as requested."""
    reader = _WeightsReader()
    with ExitStack() as hooks:
        for part in parts:
            hooks.enter_context(hooked([part], before=reader.enter, after=reader.leave))
            hooks.enter_context(hooked(part.modules(), after=reader.note))
        yield


class _WeightsReader:
    """Follows the forwards of models that compute their own attention."""

    def __init__(self) -> None:
        self._depth = 0
        self._is_requested = False
        # By the memory of the weights; all that is read, so that no memory is used twice.
        self._made: dict[int, _Made] = {}
        self._read: dict[int, object] = {}

    def enter(
        self, part: "PreTrainedModel", args: Arguments, options: Options
    ) -> tuple[Arguments, Options] | None:
        """Have a forward return its weights."""
        if current_observer() is None:
            return None
        self._depth += 1
        if self._depth > 1:
            return None
        self._made.clear()
        self._read.clear()
        names = list(inspect.signature(part.forward).parameters)
        index = names.index(_OPTION) if _OPTION in names else len(args)
        if index < len(args):
            self._is_requested = bool(args[index])
            return (*args[:index], True, *args[index + 1 :]), options
        requested = options.get(_OPTION)
        self._is_requested = bool(part.config.output_attentions if requested is None else requested)
        return args, {**options, _OPTION: True}

    def note(self, module: nn.Module, args: Arguments, options: Options, output: object) -> None:
        """Record tensors that may be weights in a module's output."""
        if not self._depth or not isinstance(output, tuple | Mapping):
            return
        parts = output.values() if isinstance(output, Mapping) else output
        for tensor in parts:
            if isinstance(tensor, Tensor) and tensor.dim() == 4:
                made = _Made(module, tensor, _global_positions(module, args, options))
                self._made.setdefault(tensor.data_ptr(), made)

    def leave(
        self, part: "PreTrainedModel", args: Arguments, options: Options, output: object
    ) -> object:
        """Announce the weights of a forward, and take them out unless they were requested."""
        if current_observer() is None:
            return None
        self._depth -= 1
        if isinstance(output, Mapping):
            arguments = _named(part, args, options)
            for field, kind in _FIELDS.items():
                self._announce(part, output.get(field), kind, arguments, output)
        elif self._depth == 0 and not self._read:
            raise SettingError(
                "model must give its outputs by name for its weights to be read; got a "
                f"{type(output).__name__} from {type(part).__name__}. Leave out return_dict=False."
            )
        if self._depth or self._is_requested or not isinstance(output, Mapping):
            return None
        return type(output)(
            **{name: value for name, value in output.items() if not name.endswith("attentions")}
        )

    def _announce(
        self,
        part: "PreTrainedModel",
        layers: Sequence[object] | None,
        kind: str | None,
        arguments: Mapping[str, object],
        output: Mapping[str, Sequence[Tensor] | None],
    ) -> None:
        """Announce the weights of one field, layer by layer."""
        observer = current_observer()
        assert observer is not None
        for layer, weights in enumerate(layers or ()):
            if weights is None or id(weights) in self._read:
                continue
            self._read[id(weights)] = weights
            made = self._made.get(weights.data_ptr()) if isinstance(weights, Tensor) else None
            module = part if made is None else made.module
            is_banded = made is not None and hasattr(made.module, _REACH)
            whole: object = weights
            if made is not None and is_banded and isinstance(weights, Tensor):
                global_weights = output.get("global_attentions")
                whole = _spread(
                    weights, made, None if global_weights is None else global_weights[layer]
                )
            matrix = _checked(whole, module, is_training=part.training)
            attention_kind = kind or _kind(part, matrix, output)
            name = "decoder_attention_mask" if kind == "decoder" else "attention_mask"
            location = Location(
                "" if made is None else location_of(module).name, layer, attention_kind == "cross"
            )
            with (
                calling(module, location, _padding(matrix, arguments.get(name))),
                at(attention_kind, layer),
            ):
                observer(call_of_weights(matrix))


def call_of_weights(weights: Float[Tensor, "*b N M"]) -> AttentionCall:
    """Return weights that are at hand as a call whose scores they are, for observers."""
    *lead, N, M = weights.shape
    nothing = weights.new_zeros(()).expand(*lead, max(N, M), 1)
    bias = weights.masked_fill(weights == 0, float("-inf"))
    ends = nothing[..., :N, :], nothing[..., :M, :]
    return AttentionCall(*current_location(), *ends, Dot(), None, bias, AsGiven())


def _kind(part: "PreTrainedModel", weights: Tensor, output: Mapping[str, object]) -> str:
    """ "decoder" where nobody looks ahead; of a single location, where the model writes."""  # noqa: D210
    N, M = weights.shape[-2:]
    if bool(weights.detach().triu(M - N + 1).any()):
        return "encoder"
    writes = part.can_generate() or "cross_attentions" in output
    return "decoder" if N > 1 or M > 1 or writes else "encoder"


def _padding(weights: Tensor, mask: object) -> LazyMask | None:
    """Padding mask of the model, where it belongs to these keys."""
    B, _, N, M = weights.shape
    if not isinstance(mask, Tensor) or mask.shape != (B, M):
        return None
    frame = Frame(N, M, M - N, 0, by_vmap=False, device=weights.device)
    return LazyMask(lambda *at: torch.ones_like(at[3], dtype=torch.bool), mask.bool(), frame, B)


def _checked(weights: object, module: nn.Module, *, is_training: bool) -> Tensor:
    """The weights, or a SettingError: they must be one row over the keys for each query."""
    shape = tuple(weights.shape) if isinstance(weights, Tensor) else type(weights).__name__
    wrong = f"got {shape} from {type(module).__name__}. It cannot be watched."
    if not isinstance(weights, Tensor) or weights.dim() != 4:
        raise SettingError(
            f"output_attentions of the model must be weights of (B, H, N, M); {wrong}"
        )
    sums = weights.detach().float().sum(dim=-1)
    is_right = (sums <= 1 + _ROUNDING) & ((sums - 1).abs() <= _ROUNDING).logical_or(sums == 0)
    is_row = bool((weights >= 0).all()) and (is_training or bool(is_right.all()))
    if not is_row:
        raise SettingError(
            "output_attentions of the model must be weights, each row of which sums to one; got "
            f"rows that sum to {float(sums.min()):.3g} to {float(sums.max()):.3g} from "
            f"{type(module).__name__}. It cannot be watched."
        )
    return weights


def _named(module: nn.Module, args: Arguments, options: Mapping[str, object]) -> dict[str, object]:
    """Arguments of a model's call, by name."""
    names = inspect.signature(module.forward).parameters
    return {**dict(zip(names, args, strict=False)), **options}


def _global_positions(
    module: nn.Module, args: Arguments, options: Mapping[str, object]
) -> Bool[Tensor, "B N"] | None:
    """Global positions of a banded attention: they attend to all and are visible to all."""
    flags = _named(module, args, options).get("is_index_global_attn")
    return flags if hasattr(module, _REACH) and isinstance(flags, Tensor) else None


def _spread(
    weights: Float[Tensor, "B H N K"], made: _Made, global_weights: Float[Tensor, "B H n x"] | None
) -> Float[Tensor, "B H N N"]:
    """Spread the weights of a band over the matrix; the first x are of global positions."""
    B, H, N, K = weights.shape
    reach: int = getattr(made.module, _REACH)
    x = K - 2 * reach - 1
    steps = torch.arange(-reach, reach + 1, device=weights.device)
    keys = torch.arange(N, device=weights.device)[:, None] + steps
    is_key = (keys >= 0) & (keys < N)
    matrix = weights.new_zeros(B, H, N, N).scatter_add(
        -1, keys.clamp(0, N - 1).expand(B, H, N, -1), weights[..., x:] * is_key
    )
    for b in range(B if x and made.is_global is not None else 0):
        positions = made.is_global[b, :N].nonzero().flatten()  # type: ignore[index]
        matrix[b, :, :, positions] += weights[b, :, :, : len(positions)]
        if global_weights is not None:
            matrix[b, :, positions] = global_weights[b, :, :N, : len(positions)].transpose(-1, -2)
    return matrix
