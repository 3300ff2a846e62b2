"""The engine inside models that others wrote, and whole models looked into."""

from regard.interop.attribution.attribute import Attribution, attribute
from regard.interop.attribution.circuits import HeadCircuits, TopTokens, head_circuits
from regard.interop.attribution.decomposition import (
    LogitParts,
    ScoreParts,
    decompose_score,
    logit_attribution,
)
from regard.interop.attribution.faithfulness import Faithfulness, faithfulness, rank_correlation
from regard.interop.attribution.feed_forward import Neuron, Neurons, feed_forward_neurons
from regard.interop.attribution.linear_functions import StreamPart
from regard.interop.checkpoints.folder import CheckpointTokenizer, load_folder
from regard.interop.checkpoints.models import PretrainedModel, load_checkpoint, save_checkpoint
from regard.interop.interventions.edit import Edits, edit
from regard.interop.interventions.patching import Activations, PatchEffects, activations, patch
from regard.interop.modules.torch_functions import mark_weights
from regard.interop.modules.torch_modules import EngineAttention, use
from regard.interop.pages.looking import look
from regard.interop.record import Watched
from regard.interop.watch import Watch, watch

__all__ = [
    "Activations",
    "Attribution",
    "CheckpointTokenizer",
    "Edits",
    "EngineAttention",
    "Faithfulness",
    "HeadCircuits",
    "LogitParts",
    "Neuron",
    "Neurons",
    "PatchEffects",
    "PretrainedModel",
    "ScoreParts",
    "StreamPart",
    "TopTokens",
    "Watch",
    "Watched",
    "activations",
    "attribute",
    "decompose_score",
    "edit",
    "faithfulness",
    "feed_forward_neurons",
    "head_circuits",
    "load_checkpoint",
    "load_folder",
    "logit_attribution",
    "look",
    "mark_weights",
    "patch",
    "rank_correlation",
    "save_checkpoint",
    "use",
    "watch",
]
