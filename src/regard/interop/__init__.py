"""The engine inside models that others wrote, and whole models looked into."""

from regard.interop.attribute import Attribution, attribute
from regard.interop.checkpoints.folder import CheckpointTokenizer, load_folder
from regard.interop.checkpoints.models import PretrainedModel, load_checkpoint, save_checkpoint
from regard.interop.edit import Edits, edit
from regard.interop.faithfulness import Faithfulness, faithfulness, rank_correlation
from regard.interop.looking import look
from regard.interop.patching import Activations, PatchEffects, activations, patch
from regard.interop.torch_functions import mark_weights
from regard.interop.torch_modules import EngineAttention, use
from regard.interop.watch import Watch, Watched, watch

__all__ = [
    "Activations",
    "Attribution",
    "CheckpointTokenizer",
    "Edits",
    "EngineAttention",
    "Faithfulness",
    "PatchEffects",
    "PretrainedModel",
    "Watch",
    "Watched",
    "activations",
    "attribute",
    "edit",
    "faithfulness",
    "load_checkpoint",
    "load_folder",
    "look",
    "mark_weights",
    "patch",
    "rank_correlation",
    "save_checkpoint",
    "use",
    "watch",
]
