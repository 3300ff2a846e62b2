"""Updates of fine-tuning, ours and those of transformers, timed on the very same batches.

Each side runs in a process of its own, and gives seconds of an update and peak memory; ours is that
of a whole training, with validations and checkpoints, which the others do without. All multiply
in bfloat16 where the processor does, with AdamW, a linear schedule and clipped gradients.
"""

import json
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from benchmarks.measuring import sized
from regard.devices import CPU
from regard.devices.finding import multiplies_bfloat16
from regard.tasks import TASKS, Recipe, read_parts
from regard.text import Batches
from regard.training.callbacks import Callback, Update
from regard.training.pretrained import begin_with
from regard.training.session import fit

OURS, TRAINER = "regard", "Trainer"
# Updates of one round, and how many of them are not timed.
UPDATES, WARMUP = sized((30, 10), (3, 1))
IN_BFLOAT16 = multiplies_bfloat16(CPU)


def write_batches(recipe: Recipe, path: Path) -> None:
    """Write the texts and labels of the first batches of a recipe, as our training has them."""
    recipe, _ = begin_with(recipe, None)
    examples = read_parts(recipe).train
    task = TASKS[recipe.task].task.learn(recipe, examples)
    lengths = task.lengths(task.encode(examples))
    tokens = int(recipe.training["batch_tokens"])
    plans = Batches(lengths, lengths, max_tokens=tokens, seed=1).epoch(0)
    rows = [[examples[index] for index in plan.indices] for plan in islice(plans, UPDATES)]
    batches = [
        {"texts": [each.text for each in row], "labels": [int(each.label) for each in row]}
        for row in rows
    ]
    most = recipe.data.max_length
    path.write_text(json.dumps({"most": most, "batches": batches}), "utf-8")


class Stopwatch(Callback):
    """Notes when each update ended."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def note(self) -> None:
        self.ends.append(time.perf_counter())

    def on_update(self, update: Update) -> None:
        self.note()

    def found(self) -> dict[str, float]:
        """Seconds of the updates that are timed, in the mean, and the peak memory so far in MB."""
        seconds = (self.ends[-1] - self.ends[WARMUP - 1]) / (len(self.ends) - WARMUP)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return {"seconds": seconds, "megabytes": peak / 1024}


def our_updates(recipe: Recipe, folder: Path, batches: Path) -> dict[str, float]:
    """Our training, which plans the same batches."""
    ends = {"updates": UPDATES, "epochs": None, "validate_every": UPDATES, "least_updates": 0}
    watch = Stopwatch()
    with tempfile.TemporaryDirectory() as run:
        fit(replace(recipe, training={**recipe.training, **ends}), run, reporter=watch)
    return watch.found()


def _theirs(folder: Path, batches: Path) -> tuple[Any, list[Any]]:
    """A classifier of transformers, and the batches as it takes them."""
    import transformers

    transformers.utils.logging.set_verbosity_error()
    tokenize = transformers.AutoTokenizer.from_pretrained(str(folder))
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        str(folder), num_labels=2
    )
    rows, written = [], json.loads(batches.read_text("utf-8"))
    cut = {"padding": True, "truncation": True, "max_length": written["most"]}
    for batch in written["batches"]:
        row = tokenize(batch["texts"], **cut, return_tensors="pt")
        rows.append({**row, "labels": torch.tensor(batch["labels"])})
    return model, rows


def plain_updates(recipe: Recipe, folder: Path, batches: Path) -> dict[str, float]:
    """A plain loop over transformers' model: AdamW, fused; clipped gradients; a linear schedule."""
    model, rows = _theirs(folder, batches)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=len(rows))
    watch = Stopwatch()
    for row in rows:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=IN_BFLOAT16):
            loss = model.train()(**row).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        watch.note()
    return watch.found()


def trainer_updates(recipe: Recipe, folder: Path, batches: Path) -> dict[str, float]:
    """The Trainer of transformers on these batches."""
    import transformers

    model, rows = _theirs(folder, batches)
    watch = Stopwatch()

    class Given(transformers.Trainer):  # type: ignore[misc, name-defined]
        def get_train_dataloader(self) -> Any:
            return rows

    class Noting(transformers.TrainerCallback):  # type: ignore[misc, name-defined]
        def on_step_end(self, *args: Any, **kwargs: Any) -> None:
            watch.note()

    with tempfile.TemporaryDirectory() as output:
        arguments = transformers.TrainingArguments(
            output,
            max_steps=len(rows),
            learning_rate=1e-4,
            weight_decay=0.01,
            bf16=IN_BFLOAT16,
            use_cpu=True,
            report_to=[],
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
        )
        Given(model, arguments, callbacks=[Noting()]).train()
    return watch.found()


SIDES: dict[str, Callable[[Recipe, Path, Path], dict[str, float]]] = {
    OURS: our_updates,
    "plain loop": plain_updates,
    TRAINER: trainer_updates,
}
