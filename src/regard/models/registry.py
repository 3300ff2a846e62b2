"""Which architectures recipes can name, and how one from outside joins them."""

from typing import Any

from torch import nn

from regard.errors import SettingError
from regard.models.configs.language_models import DecoderConfig, RecurrentLmConfig
from regard.models.configs.readers import (
    BagReaderConfig,
    ConvReaderConfig,
    EncoderConfig,
    EsimConfig,
    MatchReaderConfig,
    RecurrentReaderConfig,
)
from regard.models.configs.seq2seq import ConvSeq2SeqConfig, RnnSeq2SeqConfig, TransformerConfig
from regard.models.conv_seq2seq import ConvSeq2Seq
from regard.models.decoder import Decoder
from regard.models.encoder import Encoder
from regard.models.esim import Esim
from regard.models.interfaces import (
    LanguageModel,
    PairClassifier,
    PairReader,
    Reader,
    Seq2Seq,
    TextReader,
)
from regard.models.match_reader import MatchReader
from regard.models.readers import (
    BagReader,
    ConvReader,
    RecurrentReader,
)
from regard.models.recurrent_lm import RecurrentLm
from regard.models.rnn_seq2seq import RnnSeq2Seq
from regard.models.transformer import Transformer

# Tables of a recipe's ``type``: name -> (its settings, its class), the default first. What
# translates:
MODELS: dict[str, tuple[type[object], type[Seq2Seq]]] = {
    "transformer": (TransformerConfig, Transformer),
    "conv_seq2seq": (ConvSeq2SeqConfig, ConvSeq2Seq),
    "rnn_seq2seq": (RnnSeq2SeqConfig, RnnSeq2Seq),
}

# What continues a text:
LANGUAGE_MODELS: dict[str, tuple[type[object], type[LanguageModel]]] = {
    "decoder": (DecoderConfig, Decoder),
    "recurrent": (RecurrentLmConfig, RecurrentLm),
}

# What reads a text for a head:
READERS: dict[str, tuple[type[object], type[TextReader]]] = {
    "bag": (BagReaderConfig, BagReader),
    "convolutional": (ConvReaderConfig, ConvReader),
    "recurrent": (RecurrentReaderConfig, RecurrentReader),
    "transformer": (EncoderConfig, Encoder),
}

# What reads a text beside another for a head; all but the first read both in one row:
PAIR_READERS: dict[str, tuple[type[object], type[Reader]]] = {
    "match": (MatchReaderConfig, MatchReader),
    **READERS,
}

# What says how two texts stand to each other, a reader with a head on it; all but the first:
PAIR_MODELS: dict[str, tuple[type[object], type[Reader | PairClassifier]]] = {
    "esim": (EsimConfig, Esim),
    **PAIR_READERS,
}

# Which of the tables a model of each kind stands in.
_TABLES: dict[type[nn.Module], tuple[dict[str, tuple[type[object], Any]], ...]] = {
    Seq2Seq: (MODELS,),
    LanguageModel: (LANGUAGE_MODELS,),
    TextReader: (READERS, PAIR_READERS, PAIR_MODELS),
    PairReader: (PAIR_READERS, PAIR_MODELS),
    PairClassifier: (PAIR_MODELS,),
}


def register_model(name: str, config: type[object], model: type[nn.Module]) -> None:
    """Let recipes name an architecture from outside, as ``model.type``.

    It is then trained, used and looked into as the package's own are; each process that opens a run
    of it registers it first.

    Args:
        name: What ``model.type`` says.
        config: Its settings: a dataclass, whose fields are the keys of ``[model]``.
        model: Its class, which says by what it derives from where it can be used: ``Seq2Seq``,
            ``LanguageModel``, ``TextReader``, ``PairReader`` or ``PairClassifier``.

    Raises:
        SettingError: The name is taken, the class derives from none of these, or lacks something
            that they must have.
    """
    found = [tables for kind, tables in _TABLES.items() if issubclass(model, kind)]
    if not found:
        kinds = ", ".join(sorted(kind.__name__ for kind in _TABLES))
        raise SettingError(f"model must derive from one of {kinds}; got {model.__name__}.")
    if missing := sorted(getattr(model, "__abstractmethods__", ())):
        raise SettingError(f"{model.__name__} must have {', '.join(missing)}; it has not.")
    for table in found[0]:
        if table.get(name, (config, model)) != (config, model):
            raise SettingError(f"name must be of no other model; got {name!r}. Choose another.")
        table[name] = (config, model)
