"""The run folder: the files of one training, whole at every moment, and their readers.

::

    run/recipe.toml          the resolved settings that it was begun with
    run/run.json             format, version of regard, task, summary, checksums of the rest,
                             and the changes since, with their updates
    run/tokenizer/           whatever the tokenizer saved, and checksums.json
    run/checkpoints/         000001000/ and so on, see ``checkpoints``
    run/model.safetensors    the weights to use, once training has finished
    run/metrics.jsonl        one line a record
    run/tensorboard/         the same figures for TensorBoard, where that is installed
    run/lock                 held by the process that trains, as is the folder itself
"""

from regard.runs.bundle import is_bundle
from regard.runs.card import SUFFIX, is_run
from regard.runs.checkpoints import Checkpoint, average
from regard.runs.files import DamageError, RunWarning
from regard.runs.run import Run

__all__ = [
    "SUFFIX",
    "Checkpoint",
    "DamageError",
    "Run",
    "RunWarning",
    "average",
    "is_bundle",
    "is_run",
]
