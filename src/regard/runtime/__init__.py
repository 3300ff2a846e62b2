"""Inference runtime: models packed for fast use on a CPU; they give the same answers.

``preparing`` makes one, ``base`` forwards to the model what the runtime does not do itself,
``transformer`` and ``recurrent`` run steps and encoders, ``products`` has linear layers in float32
and int8, ``precision`` rounds weights, ``state`` is carried from token to token.
The loops themselves are in ``regard.kernels``. Its modules import them at the top: ``prepared`` and
``in_precision`` are the gate, which imports none where nothing can be compiled.
"""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.runtime.base import PreparedSeq2Seq
    from regard.runtime.precision import in_precision
    from regard.runtime.preparing import prepared
    from regard.runtime.products.int8 import Int8Embedding, Int8Linear
    from regard.runtime.recurrent.language_model import PreparedRecurrentLm
    from regard.runtime.recurrent.translator import PreparedRnnSeq2Seq
    from regard.runtime.transformer.language_model import PreparedDecoder
    from regard.runtime.transformer.reader import PreparedReader
    from regard.runtime.transformer.translator import PreparedTransformer

__all__ = [
    "Int8Embedding",
    "Int8Linear",
    "PreparedDecoder",
    "PreparedReader",
    "PreparedRecurrentLm",
    "PreparedRnnSeq2Seq",
    "PreparedSeq2Seq",
    "PreparedTransformer",
    "in_precision",
    "prepared",
]

__getattr__ = _names(__name__, __file__)
