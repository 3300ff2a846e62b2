"""The engine inside models that others wrote, and whole models looked into."""

from regard.interop.checkpoint_tokenizer import CheckpointTokenizer
from regard.interop.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from regard.interop.edit import Edits, edit
from regard.interop.folder import load_folder
from regard.interop.looking import look
from regard.interop.models import use
from regard.interop.torch_modules import EngineAttention
from regard.interop.trust import Trust, rank_correlation, trust
from regard.interop.watch import Watch, Watched, watch

__all__ = [
    "Checkpoint",
    "CheckpointTokenizer",
    "Edits",
    "EngineAttention",
    "Trust",
    "Watch",
    "Watched",
    "edit",
    "load_checkpoint",
    "load_folder",
    "look",
    "rank_correlation",
    "save_checkpoint",
    "trust",
    "use",
    "watch",
]
