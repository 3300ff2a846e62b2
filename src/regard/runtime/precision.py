"""In what numbers a model's weights are kept while it is used."""

from typing import TypeVar

import torch
from torch import nn

from regard.choices import check_choice
from regard.errors import SettingError
from regard.kernels import why_not
from regard.layers.choices import Precision
from regard.layers.precision import multiplies_bfloat16
from regard.runtime.memory import hand_back

ModelT = TypeVar("ModelT", bound=nn.Module)


def in_precision(model: ModelT, precision: Precision) -> ModelT:
    """Convert a model's weights to another precision, in place.

    Of ``int8`` those of the layers of Transformers, of their embeddings and of their last layer;
    norms, biases and what is no Transformer stay as they are. ``auto`` rounds nothing: it is
    float32.

    Args:
        model: In use, and not in training: what is rounded learns no more.
        precision: See there.

    Raises:
        SettingError: There is no such precision, or the processor or the model cannot do it.

    Example:
        >>> from regard.models import Decoder, DecoderConfig
        >>> model = Decoder(DecoderConfig(num_layers=1), vocab_size=11).eval()
        >>> in_precision(model, "int8").layers[0].feed.inner
        Int8Linear(256, 1024, bias=True)
        >>> in_precision(nn.Linear(2, 3), "int8")
        Traceback (most recent call last):
        regard.errors.SettingError: precision must be one for this model; got int8, but it has no
        layers of a Transformer. Use float32.
    """
    check_choice("precision", precision, Precision)
    if precision == "bfloat16":
        device = next(model.parameters()).device
        if not multiplies_bfloat16(device):
            raise SettingError(
                "precision must be one that the processor multiplies; got bfloat16, which takes "
                "this one six to eight times as long as float32. Use int8."
            )
        return model.to(torch.bfloat16)
    if precision == "int8":
        if (reason := why_not()) is not None:
            raise SettingError(f"precision must be one that can be had; got int8, but {reason}.")
        # Only here: what cannot be compiled cannot be imported.
        from regard.runtime.products.int8 import round_weights

        round_weights(model)
        hand_back()
    return model
