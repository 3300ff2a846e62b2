"""Registry of the architectures that recipes can name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import regard.models as models
from regard.errors import SettingError
from regard.models.configs.generation import (
    ConvSeq2SeqConfig,
    DecoderConfig,
    RecurrentLmConfig,
    RnnSeq2SeqConfig,
    TransformerConfig,
)
from regard.models.configs.readers import (
    BagReaderConfig,
    ConvReaderConfig,
    EncoderConfig,
    EsimConfig,
    MatchReaderConfig,
    RecurrentReaderConfig,
)

if TYPE_CHECKING:
    from torch import nn

    from regard.models.interfaces import LanguageModel, PairClassifier, Reader, Seq2Seq, TextReader

ModelT = TypeVar("ModelT", covariant=True)


@dataclass(frozen=True, slots=True)
class Architecture(Generic[ModelT]):
    """Architecture behind a name in a recipe.

    Attributes:
        config: Its settings.
        load: Gives its class, which needs torch; settings are described and checked without.

    Example:
        >>> entry = LANGUAGE_MODELS["recurrent"]
        >>> model = entry.load()(entry.config(embed_dim=8, hidden_dim=6), vocab_size=11)
        >>> type(model).__name__, model.output_dim
        ('RecurrentLm', 8)
    """

    config: type[object]
    load: Callable[[], type[ModelT]]


# Tables of a recipe's ``type``, the default first. Translation:
MODELS: "dict[str, Architecture[Seq2Seq]]" = {
    "transformer": Architecture(TransformerConfig, lambda: models.Transformer),
    "conv_seq2seq": Architecture(ConvSeq2SeqConfig, lambda: models.ConvSeq2Seq),
    "rnn_seq2seq": Architecture(RnnSeq2SeqConfig, lambda: models.RnnSeq2Seq),
}

# Language models:
LANGUAGE_MODELS: "dict[str, Architecture[LanguageModel]]" = {
    "decoder": Architecture(DecoderConfig, lambda: models.Decoder),
    "recurrent": Architecture(RecurrentLmConfig, lambda: models.RecurrentLm),
}

# Readers of one text, for a head:
READERS: "dict[str, Architecture[TextReader]]" = {
    "bag": Architecture(BagReaderConfig, lambda: models.BagReader),
    "convolutional": Architecture(ConvReaderConfig, lambda: models.ConvReader),
    "recurrent": Architecture(RecurrentReaderConfig, lambda: models.RecurrentReader),
    "transformer": Architecture(EncoderConfig, lambda: models.Encoder),
}

# Readers of two texts, for a head; all but the first read both in one row:
PAIR_READERS: "dict[str, Architecture[Reader]]" = {
    "match": Architecture(MatchReaderConfig, lambda: models.MatchReader),
    **READERS,
}

# Pair classifiers, a reader with a head on it; all but the first:
PAIR_MODELS: "dict[str, Architecture[Reader | PairClassifier]]" = {
    "esim": Architecture(EsimConfig, lambda: models.Esim),
    **PAIR_READERS,
}

# Which of the tables a model of each kind stands in.
_TABLES: dict[str, tuple[dict[str, Architecture[Any]], ...]] = {
    "Seq2Seq": (MODELS,),
    "LanguageModel": (LANGUAGE_MODELS,),
    "TextReader": (READERS, PAIR_READERS, PAIR_MODELS),
    "PairReader": (PAIR_READERS, PAIR_MODELS),
    "PairClassifier": (PAIR_MODELS,),
}


def register_model(name: str, config: type[object], model: "type[nn.Module]") -> None:
    """Let recipes name an architecture from outside, as ``model.type``.

    It is then trained, used and looked into as the package's own are; each process that opens a run
    of it registers it first.

    Args:
        name: The value of ``model.type``.
        config: Its settings: a dataclass, whose fields are the keys of ``[model]``.
        model: Its class, whose base class decides where it can be used: ``Seq2Seq``,
            ``LanguageModel``, ``TextReader``, ``PairReader`` or ``PairClassifier``.

    Raises:
        SettingError: The name is taken, the class derives from none of these, or lacks something
            that they must have.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> class Calm(models.RecurrentLm):
        ...     pass
        >>> register_model("calm", RecurrentLmConfig, Calm)
        >>> table = {"task": "language_modelling", "model": {"type": "calm", "cell": "gru"}}
        >>> recipe_from_table(table).model.cell
        'gru'
        >>> register_model("calm", RecurrentLmConfig, models.RecurrentLm)
        Traceback (most recent call last):
        regard.errors.SettingError: name must be of no other model; got 'calm'. Choose another.
        >>> LANGUAGE_MODELS.pop("calm").load() is Calm
        True
    """
    bases = [kind for kind in _TABLES if issubclass(model, getattr(models, kind))]
    if not bases:
        kinds = ", ".join(sorted(_TABLES))
        raise SettingError(f"model must derive from one of {kinds}; got {model.__name__}.")
    if missing := sorted(getattr(model, "__abstractmethods__", ())):
        raise SettingError(f"{model.__name__} must have {', '.join(missing)}; it has not.")
    for table in _TABLES[bases[0]]:
        registered = table.get(name)
        if registered and (registered.config, registered.load()) != (config, model):
            raise SettingError(f"name must be of no other model; got {name!r}. Choose another.")
        table[name] = registered or Architecture(config, lambda: model)
