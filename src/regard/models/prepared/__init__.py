"""Models ready for use: what was learned laid out for answers, and not for learning.

``preparing`` makes one, ``base`` is what all have in common, ``decoder`` runs a stack of decoder
layers, ``recurrent`` and ``conv_translator`` others, ``reader`` is an encoder under a head,
``kernels`` and whatever ends so is compiled, ``listed`` is a last layer over few tokens,
``precision`` says in what numbers weights are, ``products`` multiplies in int8, by ``bytewise``
where the processor adds up bytes and else by ``pairwise``, ``state`` is carried from token to
token.
"""

from regard.models.prepared.base import PreparedSeq2Seq
from regard.models.prepared.conv_translator import PreparedConvSeq2Seq
from regard.models.prepared.language_model import PreparedDecoder
from regard.models.prepared.precision import in_precision
from regard.models.prepared.preparing import check_shortlist, prepared
from regard.models.prepared.products import Int8Embedding, Int8Linear
from regard.models.prepared.reader import PreparedReader
from regard.models.prepared.recurrent_language_model import PreparedRecurrentLm
from regard.models.prepared.rnn_translator import PreparedRnnSeq2Seq
from regard.models.prepared.translator import PreparedTransformer

__all__ = [
    "Int8Embedding",
    "Int8Linear",
    "PreparedConvSeq2Seq",
    "PreparedDecoder",
    "PreparedReader",
    "PreparedRecurrentLm",
    "PreparedRnnSeq2Seq",
    "PreparedSeq2Seq",
    "PreparedTransformer",
    "check_shortlist",
    "in_precision",
    "prepared",
]
