"""A model made ready for use once, and again when it has learned more."""

from typing import TypeVar, cast

from torch import nn

from regard.attention.observing import current_editor, current_observer
from regard.devices import device_of
from regard.models.prepared import prepared

ModelT = TypeVar("ModelT", bound=nn.Module)


class Preparation:
    """What was made of a model the last time, for as long as its weights are the same."""

    def __init__(self) -> None:
        self._kept: tuple[nn.Module, list[object]] | None = None

    def of(self, model: ModelT) -> ModelT:
        """The model ready for use, in evaluation mode; see :func:`regard.models.prepared.prepared`.

        Args:
            model: May have learned more since the last call.
        """
        if current_editor() is not None or current_observer() is not None:
            return prepared(model.eval())
        kept = self._kept
        if kept is None or kept[1] != _seen(model):
            made = prepared(model.eval())
            self._kept = kept = made, _seen(model)
        return cast(ModelT, kept[0])


def batch_tokens(model: nn.Module, prepared_model: nn.Module, most: int) -> int:
    """How many tokens a batch may have for answers that do not depend on the others of the batch.

    On a CPU torch's products round a row by how many rows there are, so that a model of which
    nothing is prepared answers each text by itself, unless its attention is edited or observed.

    Args:
        model: The model.
        prepared_model: ``Preparation.of`` it.
        most: How many a batch may have otherwise.
    """
    is_watched = current_editor() is not None or current_observer() is not None
    is_alone = prepared_model is model and device_of(model).type == "cpu" and not is_watched
    return 1 if is_alone else most


def _seen(model: nn.Module) -> list[object]:
    """What is another when a model has learned, was given other weights, or changes its mode.

    ``model.parameters()`` would take as long as a step of a small model.
    """
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
