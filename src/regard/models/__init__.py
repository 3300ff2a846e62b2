"""Architectures, one a file: token ids in, tensors out."""

from typing import Any, Protocol, TypeVar

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.models.classifier import Classifier, ClassifierConfig, MultipleChoice
from regard.models.conv_seq2seq import ConvSeq2Seq, ConvSeq2SeqConfig, ConvState
from regard.models.decoder import Decoder, DecoderConfig, DecoderState
from regard.models.encoder import Encoder, EncoderConfig, MaskedLanguageModel
from regard.models.esim import Esim, EsimConfig
from regard.models.kernel_regression import KernelRegression, KernelRegressionConfig
from regard.models.match_reader import MatchReader, MatchReaderConfig
from regard.models.memory_network import MemoryNetwork, MemoryNetworkConfig
from regard.models.readers import (
    BagReader,
    BagReaderConfig,
    ConvReader,
    ConvReaderConfig,
    RecurrentReader,
    RecurrentReaderConfig,
)
from regard.models.recurrent_lm import RecurrentLm, RecurrentLmConfig, RecurrentLmState
from regard.models.rnn_seq2seq import RnnSeq2Seq, RnnSeq2SeqConfig, RnnState
from regard.models.span_finder import SpanFinder, SpanFinderConfig, Spans, best_spans
from regard.models.tagger import Tagger, TaggerConfig
from regard.models.transformer import Transformer, TransformerConfig, TransformerState
from regard.models.vision_transformer import VisionTransformer, VisionTransformerConfig

__all__ = [
    "LANGUAGE_MODELS",
    "MODELS",
    "PAIR_READERS",
    "READERS",
    "BagReader",
    "BagReaderConfig",
    "Classifier",
    "ClassifierConfig",
    "ConvReader",
    "ConvReaderConfig",
    "ConvSeq2Seq",
    "ConvSeq2SeqConfig",
    "ConvState",
    "Decoder",
    "DecoderConfig",
    "DecoderState",
    "Encoder",
    "EncoderConfig",
    "Esim",
    "EsimConfig",
    "KernelRegression",
    "KernelRegressionConfig",
    "LanguageModel",
    "MaskedLanguageModel",
    "MatchReader",
    "MatchReaderConfig",
    "MemoryNetwork",
    "MemoryNetworkConfig",
    "MultipleChoice",
    "RecurrentLm",
    "RecurrentLmConfig",
    "RecurrentLmState",
    "RecurrentReader",
    "RecurrentReaderConfig",
    "RnnSeq2Seq",
    "RnnSeq2SeqConfig",
    "RnnState",
    "Seq2Seq",
    "SpanFinder",
    "SpanFinderConfig",
    "Spans",
    "Tagger",
    "TaggerConfig",
    "Transformer",
    "TransformerConfig",
    "TransformerState",
    "VisionTransformer",
    "VisionTransformerConfig",
    "best_spans",
]

StateT = TypeVar("StateT")


class Seq2Seq(Protocol[StateT]):
    """What a sequence-to-sequence model offers to training and to every search.

    Attributes:
        max_length: Longest sequence it can take, in tokens; None sets no limit.
    """

    max_length: int | None

    def forward(
        self,
        source: Int[Tensor, "B S"],
        source_lengths: Int[Tensor, " B"],
        target: Int[Tensor, "B T"],
    ) -> tuple[Float[Tensor, "B T C"], Float[Tensor, ""] | None]:
        """States for a whole target, and an auxiliary loss (summed over tokens) or None."""

    def project(self, states: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch V"]:
        """Logits from states."""

    def start(self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, " B"]) -> StateT:
        """The decoder's state before the first token."""

    def step(self, token: Int[Tensor, " B"], state: StateT) -> tuple[Float[Tensor, "B V"], StateT]:
        """Log-probabilities of the next token, and the state after ``token``."""


class LanguageModel(Protocol[StateT]):
    """What a language model offers to training and to every search.

    Attributes:
        max_length: Longest text it can take, in tokens; None sets no limit.
    """

    max_length: int | None

    def forward(
        self, ids: Int[Tensor, "B N"], lengths: Int[Tensor, " B"] | None = None
    ) -> Float[Tensor, "B N C"]:
        """States for a whole text."""

    def project(self, states: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch V"]:
        """Logits of the next token from states."""

    def start(self, prompt: Int[Tensor, "B S"], prompt_lengths: Int[Tensor, " B"]) -> StateT:
        """The state before a continuation of each prompt, whose last token comes first."""

    def step(self, token: Int[Tensor, " B"], state: StateT) -> tuple[Float[Tensor, "B V"], StateT]:
        """Log-probabilities of the next token, and the state after ``token``."""


# Tables of a recipe's ``type``: name -> (its settings, its class). What translates:
MODELS: dict[str, tuple[type[Any], type[nn.Module]]] = {
    "conv_seq2seq": (ConvSeq2SeqConfig, ConvSeq2Seq),
    "rnn_seq2seq": (RnnSeq2SeqConfig, RnnSeq2Seq),
    "transformer": (TransformerConfig, Transformer),
}

# What continues a text:
LANGUAGE_MODELS: dict[str, tuple[type[Any], type[nn.Module]]] = {
    "decoder": (DecoderConfig, Decoder),
    "recurrent": (RecurrentLmConfig, RecurrentLm),
}

# What reads a text for a head:
READERS: dict[str, tuple[type[Any], type[nn.Module]]] = {
    "bag": (BagReaderConfig, BagReader),
    "convolutional": (ConvReaderConfig, ConvReader),
    "recurrent": (RecurrentReaderConfig, RecurrentReader),
    "transformer": (EncoderConfig, Encoder),
}

# What reads a text beside another for a head; all but the first read both in one row:
PAIR_READERS: dict[str, tuple[type[Any], type[nn.Module]]] = {
    "match": (MatchReaderConfig, MatchReader),
    **READERS,
}
