"""Attention on PyTorch: use it, train it, look inside it.

Names are looked up when they are first used, so that ``import regard`` alone is quick.
"""

from typing import TYPE_CHECKING
from typing import cast as _cast

from regard.lazy import names as _names
from regard.version import __version__ as __version__

if TYPE_CHECKING:
    from regard.attention import Additive as Additive
    from regard.attention import Bilinear as Bilinear
    from regard.attention import Box as Box
    from regard.attention import Cosine as Cosine
    from regard.attention import Custom as Custom
    from regard.attention import Dot as Dot
    from regard.attention import Entmax15 as Entmax15
    from regard.attention import Epanechnikov as Epanechnikov
    from regard.attention import Gaussian as Gaussian
    from regard.attention import Hard as Hard
    from regard.attention import HeadScores as HeadScores
    from regard.attention import KeyValueCache as KeyValueCache
    from regard.attention import Laplace as Laplace
    from regard.attention import Plan as Plan
    from regard.attention import SampledKey as SampledKey
    from regard.attention import ScaledDot as ScaledDot
    from regard.attention import Softmax as Softmax
    from regard.attention import Sparsemax as Sparsemax
    from regard.attention import StudentT as StudentT
    from regard.attention import Summary as Summary
    from regard.attention import alibi as alibi
    from regard.attention import at as at
    from regard.attention import attend as attend
    from regard.attention import causal as causal
    from regard.attention import columns as columns
    from regard.attention import dense as dense
    from regard.attention import documents as documents
    from regard.attention import explain as explain
    from regard.attention import head_scores as head_scores
    from regard.attention import lengths as lengths
    from regard.attention import masked_softmax as masked_softmax
    from regard.attention import observe as observe
    from regard.attention import parse_mask as parse_mask
    from regard.attention import prefix as prefix
    from regard.attention import relative as relative
    from regard.attention import rollout as rollout
    from regard.attention import rows as rows
    from regard.attention import sample_key as sample_key
    from regard.attention import shaw as shaw
    from regard.attention import summarize as summarize
    from regard.attention import testing as testing
    from regard.attention import weights as weights
    from regard.attention import where as where
    from regard.attention import window as window
    from regard.inference.predictor import load as load
    from regard.interop import look as look
    from regard.interop import use as use
    from regard.interop.attribution.attribute import attribute as attribute
    from regard.interop.attribution.circuits import head_circuits as head_circuits
    from regard.interop.attribution.decomposition import decompose_score as decompose_score
    from regard.interop.attribution.decomposition import logit_attribution as logit_attribution
    from regard.interop.attribution.faithfulness import faithfulness as faithfulness
    from regard.interop.attribution.feed_forward import feed_forward_neurons as feed_forward_neurons
    from regard.interop.interventions.edit import edit as edit
    from regard.interop.interventions.patching import activations as activations
    from regard.interop.interventions.patching import patch as patch
    from regard.interop.modules.torch_functions import mark_weights as mark_weights
    from regard.interop.watch import watch as watch
    from regard.training.start import train as train
    from regard.viewer import show as show

__getattr__ = _names(__name__, __file__)


def __dir__() -> list[str]:
    return sorted([*globals(), *_cast("list[str]", __getattr__("__all__"))])
