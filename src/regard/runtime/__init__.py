"""Inference runtime: models packed for fast use on a CPU; they give the same answers.

``preparing`` packs a model and rounds its weights: the gate, which imports nothing else of the
runtime where nothing can be compiled. ``base`` forwards to the model what the runtime does not
compute itself and drives the steps of a decoder; ``transformer`` and ``recurrent`` run steps and
encoders, ``products`` has linear layers in float32 and int8, ``state`` is carried from token to
token. The loops themselves are in ``regard.kernels``.
"""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.runtime.base import PreparedSeq2Seq as PreparedSeq2Seq
    from regard.runtime.preparing import in_precision as in_precision
    from regard.runtime.preparing import prepared as prepared
    from regard.runtime.products import Int8Embedding as Int8Embedding
    from regard.runtime.products import Int8Linear as Int8Linear
    from regard.runtime.recurrent.models import PreparedRecurrentLm as PreparedRecurrentLm
    from regard.runtime.recurrent.models import PreparedRnnSeq2Seq as PreparedRnnSeq2Seq
    from regard.runtime.transformer.encoder import PreparedReader as PreparedReader
    from regard.runtime.transformer.models import PreparedDecoder as PreparedDecoder
    from regard.runtime.transformer.models import PreparedTransformer as PreparedTransformer

__getattr__ = _names(__name__, __file__)
