"""Inference runtime: models packed for fast use on a CPU; they give the same answers.

``preparing`` packs a model and rounds its weights: the gate, which imports nothing else of the
runtime where nothing can be compiled. ``base`` forwards other calls to the model and drives the
steps of a decoder; ``transformer`` and ``recurrent`` run steps and encoders, ``products`` has
linear layers in float32 and int8, ``state`` is carried from token to token. The loops themselves
are in ``regard.kernels``.
"""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.runtime.preparing import in_precision as in_precision
    from regard.runtime.preparing import prepared as prepared

__getattr__ = _names(__name__, __file__)
