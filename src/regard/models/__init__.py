"""Architectures, one a file: token ids in, tensors out."""

from regard.models.classifier import Classifier, ClassifierConfig, MultipleChoice
from regard.models.conv_seq2seq import ConvSeq2Seq, ConvSeq2SeqConfig, ConvState
from regard.models.decoder import Decoder, DecoderConfig, DecoderState
from regard.models.encoder import Encoder, EncoderConfig, MaskedLanguageModel
from regard.models.esim import Esim, EsimConfig
from regard.models.interfaces import (
    LanguageModel,
    PairClassifier,
    PairReader,
    Reader,
    Seq2Seq,
    TextReader,
)
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
from regard.models.registry import (
    LANGUAGE_MODELS,
    MODELS,
    PAIR_MODELS,
    PAIR_READERS,
    READERS,
    register_model,
)
from regard.models.rnn_seq2seq import RnnSeq2Seq, RnnSeq2SeqConfig, RnnState
from regard.models.span_finder import AnswerSpans, SpanFinder, SpanFinderConfig, best_spans
from regard.models.tagger import Tagger, TaggerConfig
from regard.models.transformer import Transformer, TransformerConfig, TransformerState
from regard.models.vision_transformer import VisionTransformer, VisionTransformerConfig

__all__ = [
    "LANGUAGE_MODELS",
    "MODELS",
    "PAIR_MODELS",
    "PAIR_READERS",
    "READERS",
    "AnswerSpans",
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
    "PairClassifier",
    "PairReader",
    "Reader",
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
    "Tagger",
    "TaggerConfig",
    "TextReader",
    "Transformer",
    "TransformerConfig",
    "TransformerState",
    "VisionTransformer",
    "VisionTransformerConfig",
    "best_spans",
    "register_model",
]
