"""Architectures: token ids in, tensors out."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.models.configs.generation import ConvSeq2SeqConfig as ConvSeq2SeqConfig
    from regard.models.configs.generation import DecoderConfig as DecoderConfig
    from regard.models.configs.generation import RecurrentLmConfig as RecurrentLmConfig
    from regard.models.configs.generation import RnnSeq2SeqConfig as RnnSeq2SeqConfig
    from regard.models.configs.generation import TransformerConfig as TransformerConfig
    from regard.models.configs.readers import BagReaderConfig as BagReaderConfig
    from regard.models.configs.readers import ClassifierConfig as ClassifierConfig
    from regard.models.configs.readers import ConvReaderConfig as ConvReaderConfig
    from regard.models.configs.readers import EncoderConfig as EncoderConfig
    from regard.models.configs.readers import EsimConfig as EsimConfig
    from regard.models.configs.readers import KernelRegressionConfig as KernelRegressionConfig
    from regard.models.configs.readers import MatchReaderConfig as MatchReaderConfig
    from regard.models.configs.readers import MemoryNetworkConfig as MemoryNetworkConfig
    from regard.models.configs.readers import RecurrentReaderConfig as RecurrentReaderConfig
    from regard.models.configs.readers import SpanFinderConfig as SpanFinderConfig
    from regard.models.configs.readers import TaggerConfig as TaggerConfig
    from regard.models.configs.readers import VisionTransformerConfig as VisionTransformerConfig
    from regard.models.conv_seq2seq import ConvSeq2Seq as ConvSeq2Seq
    from regard.models.decoder import Decoder as Decoder
    from regard.models.heads import Classifier as Classifier
    from regard.models.heads import MultipleChoice as MultipleChoice
    from regard.models.heads import SpanFinder as SpanFinder
    from regard.models.heads import Tagger as Tagger
    from regard.models.interfaces import LanguageModel as LanguageModel
    from regard.models.interfaces import PairClassifier as PairClassifier
    from regard.models.interfaces import PairReader as PairReader
    from regard.models.interfaces import Reader as Reader
    from regard.models.interfaces import Seq2Seq as Seq2Seq
    from regard.models.interfaces import TextReader as TextReader
    from regard.models.kernel_regression import KernelRegression as KernelRegression
    from regard.models.matching import Esim as Esim
    from regard.models.matching import MatchReader as MatchReader
    from regard.models.matching import MemoryNetwork as MemoryNetwork
    from regard.models.readers import BagReader as BagReader
    from regard.models.readers import ConvReader as ConvReader
    from regard.models.readers import Encoder as Encoder
    from regard.models.readers import MaskedLanguageModel as MaskedLanguageModel
    from regard.models.readers import RecurrentReader as RecurrentReader
    from regard.models.recurrent_lm import RecurrentLm as RecurrentLm
    from regard.models.registry import LANGUAGE_MODELS as LANGUAGE_MODELS
    from regard.models.registry import MODELS as MODELS
    from regard.models.registry import PAIR_MODELS as PAIR_MODELS
    from regard.models.registry import PAIR_READERS as PAIR_READERS
    from regard.models.registry import READERS as READERS
    from regard.models.registry import Architecture as Architecture
    from regard.models.registry import register_model as register_model
    from regard.models.rnn_seq2seq import RnnSeq2Seq as RnnSeq2Seq
    from regard.models.transformer import Transformer as Transformer
    from regard.models.vision_transformer import VisionTransformer as VisionTransformer

__getattr__ = _names(__name__, __file__)
