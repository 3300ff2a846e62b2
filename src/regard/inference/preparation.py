"""A model made ready for use once, and again when it has learned more."""

from typing import TypeVar, cast

import torch
from torch import nn

from regard.attention.observing import current_editor, current_observer
from regard.devices import device_of
from regard.runtime.preparing import prepared

ModelT = TypeVar("ModelT", bound=nn.Module)


class Preparation:
    """Cached runtime of a model, valid as long as its weights are the same."""

    def __init__(self) -> None:
        self._kept: tuple[nn.Module, list[object]] | None = None

    def of(self, model: ModelT) -> ModelT:
        """The model ready for use, in evaluation mode; see :func:`regard.runtime.prepared`."""
        if current_editor() is not None or current_observer() is not None:
            return prepared(model.eval())
        kept = self._kept
        if kept is None or kept[1] != _seen(model):
            made = prepared(model.eval())
            self._kept = kept = made, _seen(model)
        return cast(ModelT, kept[0])


def batch_tokens(model: nn.Module, most: int) -> int:
    """How many tokens a batch may have: one, or one text, of a model in bfloat16 on a CPU."""
    # Products in bfloat16 round a row by how many rows there are, and by enough to change words.
    first = next(model.parameters(), None)
    is_half = first is not None and first.dtype in (torch.bfloat16, torch.float16)
    return 1 if is_half and device_of(model).type == "cpu" else most


def _seen(model: nn.Module) -> list[object]:
    """Fingerprint of a model's weights and mode."""
    # ``model.parameters()`` would take as long as a step of a small model.
    seen: list[object] = []
    modules = [model]
    while modules:
        module = modules.pop()
        seen += (id(module), module.training)
        for tensors in (module._parameters, module._buffers):
            for tensor in tensors.values():
                if tensor is not None:
                    # What was made in inference mode counts no versions: it cannot learn.
                    version = 0 if tensor.is_inference() else tensor._version
                    seen += (tensor.data_ptr(), version)
        modules += [each for each in module._modules.values() if each is not None]
    return seen
