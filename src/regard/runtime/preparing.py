"""The gate of the runtime: a model packed for use, where loops can be compiled."""

from typing import TypeVar, cast

import torch
from torch import nn

from regard.attention.observing import current_editor, current_observer
from regard.kernels import why_not
from regard.models.decoder import Decoder
from regard.models.interfaces import LanguageModel, Seq2Seq
from regard.models.recurrent_lm import RecurrentLm
from regard.models.rnn_seq2seq import RnnSeq2Seq
from regard.models.transformer import Transformer

ModelT = TypeVar("ModelT", bound=nn.Module)


def prepared(model: ModelT) -> ModelT:
    """The model with steps and reading that cost little, or itself where it cannot be prepared.

    What a text gets of a prepared model does not depend on the others of its batch.

    It is itself, too, while somebody edits or observes its attention: compiled steps ask no editor,
    and tell of their attention to a source alone.

    Args:
        model: A sequence model, or one whose encoder reads for a head, in evaluation mode; one of a
            class of one's own, whose steps may be others, is left as it is. What is made of it may
            hold copies of its weights: prepare it again when it has learned more.

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
    is_watched = current_editor() is not None or current_observer() is not None
    if is_watched or why_not() is not None:
        return model
    # Only here: what cannot be compiled cannot be imported.
    from regard.runtime.modules import with_packed_modules
    from regard.runtime.recurrent.language_model import PreparedRecurrentLm
    from regard.runtime.recurrent.translator import PreparedRnnSeq2Seq
    from regard.runtime.transformer.language_model import PreparedDecoder
    from regard.runtime.transformer.translator import PreparedTransformer

    made: nn.Module = model
    if type(made) is Transformer and PreparedTransformer.refuse(made) is None:
        made = PreparedTransformer(made).eval()
    elif type(made) is Decoder and PreparedDecoder.refuse(made) is None:
        made = PreparedDecoder(made).eval()
    elif type(made) is RnnSeq2Seq and PreparedRnnSeq2Seq.refuse(made) is None:
        made = PreparedRnnSeq2Seq(made).eval()
    elif type(made) is RecurrentLm and PreparedRecurrentLm.refuse(made) is None:
        made = PreparedRecurrentLm(made).eval()
    elif not isinstance(model, Seq2Seq | LanguageModel):
        made = with_packed_modules(model)
    return cast(ModelT, made)


def warm_up(model: nn.Module) -> None:
    """Load the compiled loops of the encoders in a prepared model."""
    if why_not() is not None:
        return
    from regard.runtime.transformer.reader import PreparedReader

    for module in model.modules():
        if isinstance(module, PreparedReader):
            module(torch.zeros(1, 1, dtype=torch.long))
