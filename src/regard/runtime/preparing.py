"""The gate of the runtime, which imports no compiled loop where nothing can be compiled."""

from typing import Any, TypeVar, cast

import torch
from torch import nn

from regard.attention.observing import current_editor, current_observer
from regard.checks import check_choice
from regard.devices.finding import multiplies_bfloat16
from regard.devices.kinds import Precision
from regard.errors import SettingError, excerpt
from regard.kernels import why_not
from regard.models.decoder import Decoder
from regard.models.interfaces import LanguageModel, Seq2Seq
from regard.models.recurrent_lm import RecurrentLm
from regard.models.rnn_seq2seq import RnnSeq2Seq
from regard.models.transformer import Transformer

ModelT = TypeVar("ModelT", bound=nn.Module)


def prepared(model: ModelT) -> ModelT:
    """The model with steps and reading that cost little, or itself where it cannot be prepared.

    The result of a text does not depend on the others of its batch.

    It is itself, too, while somebody edits or observes its attention: compiled steps ask no editor,
    and tell of their attention to a source alone.

    Args:
        model: A sequence model, or one whose encoder reads for a head, in evaluation mode; one of a
            class of one's own, whose steps may be others, is left as it is. The prepared model may
            hold copies of its weights: prepare it again when it has learned more.

    Raises:
        SettingError: It is no module. Later, where its steps are asked for while its attention is
            edited, or with a state of another model.

    Example:
        >>> import torch
        >>> from regard.models import TransformerConfig
        >>> config = TransformerConfig(model_dim=8, num_heads=2, ffn_dim=16)
        >>> model = Transformer(config, source_vocab=11, target_vocab=11).eval()
        >>> ready, ids, lengths = prepared(model), torch.ones(2, 5).long(), torch.tensor([5, 3])
        >>> torch.equal(ready(ids, lengths, ids)[0], model(ids, lengths, ids)[0])
        True
        >>> config = TransformerConfig(model_dim=8, num_heads=2, ffn_dim=16, positions="t5")
        >>> relative = Transformer(config, source_vocab=11, target_vocab=11).eval()
        >>> prepared(relative) is relative
        True
    """
    if not isinstance(model, nn.Module):
        raise SettingError(f"model must be a module of torch; got {excerpt(model)}.")
    is_watched = current_editor() is not None or current_observer() is not None
    if is_watched or why_not() is not None:
        return model
    # Imported here, since kernels cannot be compiled everywhere.
    from regard.runtime.modules import with_packed_modules
    from regard.runtime.recurrent.models import PreparedRecurrentLm, PreparedRnnSeq2Seq
    from regard.runtime.transformer.models import PreparedDecoder, PreparedTransformer

    ways: dict[type[nn.Module], Any] = {
        Transformer: PreparedTransformer,
        Decoder: PreparedDecoder,
        RnnSeq2Seq: PreparedRnnSeq2Seq,
        RecurrentLm: PreparedRecurrentLm,
    }
    way = ways.get(type(model))
    if way is not None and way.refuse(model) is None:
        return cast(ModelT, way(model).eval())
    is_sequence_model = isinstance(model, Seq2Seq | LanguageModel)
    return model if is_sequence_model else with_packed_modules(model)


def warm_up(model: nn.Module) -> None:
    """Load the compiled loops of the encoders in a prepared model."""
    if why_not() is not None:
        return
    from regard.runtime.transformer.reader import PreparedReader

    for module in model.modules():
        if isinstance(module, PreparedReader):
            module(torch.zeros(1, 1, dtype=torch.long))


def in_precision(model: ModelT, precision: Precision) -> ModelT:
    """Convert a model's weights to another precision, in place.

    Of ``int8`` those of the layers of Transformers, of their embeddings and of their last layer;
    norms, biases and other models stay as they are. ``auto`` rounds nothing: it is
    float32.

    Args:
        model: In use, and not in training: rounded weights learn no more.
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
        # Imported here, since kernels cannot be compiled everywhere.
        from regard.runtime.products import round_weights
        from regard.runtime.state import trim_memory

        round_weights(model)
        trim_memory()
    return model
