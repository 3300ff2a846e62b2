"""Architectures: token ids in, tensors out."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.models.configs.generation import (
        ConvSeq2SeqConfig,
        DecoderConfig,
        RecurrentLmConfig,
        RnnSeq2SeqConfig,
        TransformerConfig,
    )
    from regard.models.configs.heads import (
        ClassifierConfig,
        KernelRegressionConfig,
        SpanFinderConfig,
        TaggerConfig,
    )
    from regard.models.configs.readers import (
        BagReaderConfig,
        ConvReaderConfig,
        EncoderConfig,
        EsimConfig,
        MatchReaderConfig,
        MemoryNetworkConfig,
        RecurrentReaderConfig,
        VisionTransformerConfig,
    )
    from regard.models.conv_seq2seq import ConvSeq2Seq, ConvState
    from regard.models.decoder import Decoder, DecoderState
    from regard.models.heads import (
        AnswerSpans,
        Classifier,
        MultipleChoice,
        SpanFinder,
        Tagger,
        best_spans,
    )
    from regard.models.interfaces import (
        LanguageModel,
        PairClassifier,
        PairReader,
        Reader,
        Seq2Seq,
        TextReader,
    )
    from regard.models.kernel_regression import KernelRegression
    from regard.models.kernel_regressor import KernelRegressor
    from regard.models.matching import Esim, MatchReader, MemoryNetwork
    from regard.models.readers import (
        BagReader,
        ConvReader,
        Encoder,
        MaskedLanguageModel,
        RecurrentReader,
    )
    from regard.models.recurrent_lm import RecurrentLm, RecurrentLmState
    from regard.models.registry import (
        LANGUAGE_MODELS,
        MODELS,
        PAIR_MODELS,
        PAIR_READERS,
        READERS,
        Architecture,
        register_model,
    )
    from regard.models.rnn_seq2seq import RnnSeq2Seq, RnnState
    from regard.models.transformer import Transformer, TransformerState
    from regard.models.vision_transformer import VisionTransformer

__all__ = [
    "LANGUAGE_MODELS",
    "MODELS",
    "PAIR_MODELS",
    "PAIR_READERS",
    "READERS",
    "AnswerSpans",
    "Architecture",
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
    "KernelRegressor",
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

__getattr__ = _names(__name__, __file__)
