"""A task small enough to train in milliseconds: each token has one right answer."""

import json
import os
import signal
from contextlib import nullcontext
from types import MappingProxyType, SimpleNamespace

import pytest
import torch
from tests.pretended_device import pretended
from torch import nn
from torch.nn import functional as F

from regard.layers import Dropout
from regard.runs import Run, is_run
from regard.tasks import recipe_from_table
from regard.tasks.sequences.chunked_loss import backward_in_chunks
from regard.training import Callback, OngoingTraining, TrainingConfig
from regard.training.task_training import TaskTraining
from regard.training.trainer import Trainer

V, C, SAMPLES = 11, 5, 13


class Toy(nn.Module):
    """A table and a last layer, with dropout between them."""

    def __init__(self, *, dropout=0.3, is_tied=False):
        super().__init__()
        self.table = nn.Embedding(V, C)
        self.dropout = Dropout(dropout)
        self.last = nn.Linear(C, V)
        if is_tied:
            self.last.weight = self.table.weight

    def forward(self, ids):
        return self.dropout(self.table(ids))

    def project(self, states):
        return self.last(states)


class ToyTask(TaskTraining):
    """Sentences of 1 to 5 tokens; the answer to token i is 3 i + 1.

    Args:
        batch_size: Sentences in a batch.
        figures: What validations give, in turn; None measures.
        poisoned: The update whose states are NaN.
    """

    def __init__(self, *, batch_size=2, figures=None, poisoned=None):
        generator = torch.Generator().manual_seed(7)
        self.batch_size, self.figures = batch_size, None if figures is None else iter(figures)
        self.poisoned, self.calls = poisoned, 0
        self.texts = [
            torch.randint(V, (1 + sample % 5,), generator=generator) for sample in range(SAMPLES)
        ]
        self.begun = []

    model_dim = C
    num_samples = SAMPLES
    valid_size = None
    metrics = MappingProxyType({"loss": -1, "bleu": 1})

    def begin_epoch(self, epoch):
        self.begun.append(epoch)

    def batches(self, epoch, cursor, shard=None):
        generator = torch.Generator().manual_seed(epoch)
        order = torch.randperm(SAMPLES, generator=generator).tolist()
        for start in range(cursor, SAMPLES, self.batch_size):
            chosen = order[start : start + self.batch_size]
            yield torch.cat([self.texts[i] for i in chosen]), start + len(chosen)

    def backward(self, model, batch, *, smoothing, scale):
        self.calls += 1
        states = model(batch)
        if self.calls == self.poisoned:
            states = states * torch.nan
        labels = (3 * batch + 1) % V
        loss = backward_in_chunks(states, labels, model.project, smoothing=smoothing, scale=scale)
        return loss, len(labels)

    @torch.no_grad()
    def validate(self, model, *, by_sample=False):
        if self.figures is not None:
            figure = next(self.figures)
            return figure if isinstance(figure, dict) else {"loss": figure, "bleu": 0.0}
        ids = torch.arange(V, device=model.table.weight.device)
        loss = F.cross_entropy(model.project(model(ids)), (3 * ids + 1) % V)
        return {"loss": float(loss), "bleu": -float(loss)}

    def samples(self, model):
        return ["one → two"]

    def calibrate(self, model):
        return None

    def beside_baselines(self, figures):
        return None


class Recorder(Callback):
    """Records its calls, and may do something after an update."""

    def __init__(self, after_update=None):
        self.events, self.figures, self.facts = [], [], []
        self.after_update = after_update

    def on_start(self, facts, *, loss_unit, valid):
        self.facts, self.loss_unit = list(facts), loss_unit
        self.events.append("started")

    def training(self, share):
        self.share = share
        return nullcontext()

    def on_update(self, update):
        counts = {"update": update.number, "epoch": update.epoch, "tokens": update.tokens}
        self.figures.append({**counts, **update.figures})
        if self.after_update is not None:
            self.after_update(update.number)

    def on_validation(self, validation):
        self.events.append(("validated", validation.update, validation.is_best))

    def on_resume(self, update):
        self.events.append(("resumed", update))

    def on_interrupt(self, path, update):
        self.events.append(("interrupted", update))

    def on_finish(self, path, summary, seconds):
        self.events.append("finished")


def fit(path, *, task=None, model=None, reporter=None, **settings):
    """Train into ``path``, or go on there; the trainer, for a look inside, and its summary."""
    defaults = {"updates": 12, "validate_every": 4, "warmup": 2, "learning_rate": 0.05}
    config = TrainingConfig(**defaults | {"precision": "float32", "metric": "loss"} | settings)
    torch.manual_seed(config.seed)
    opened = Run.open_for_training(path) if is_run(path) else Run.create(path, {}, "toy")
    with opened as run:
        model, ongoing = model or Toy(), OngoingTraining(path, None)
        trainer = Trainer(run, model, task or ToyTask(), config, reporter or Recorder(), ongoing)
        return trainer, trainer.fit()


def stopping(update, number=signal.SIGTERM):
    """A recorder that is sent a signal after an update."""

    def act(completed):
        if completed == update:
            os.kill(os.getpid(), number)

    return Recorder(act)


class PowerCut(Exception):  # noqa: N818
    """Not one of ours."""


def cutting(update):
    """A recorder that fails after an update, as when the power goes."""

    def act(completed):
        if completed == update:
            raise PowerCut

    return Recorder(act)


def losses(path):
    """The losses of all lines of figures."""
    lines = (path / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line)["loss"] for line in lines]


def contents(path):
    """The bytes that two equal trainings must share."""
    names = ["model.safetensors", "metrics.jsonl", "run.json"]
    return {name: (path / name).read_bytes() for name in names}


@pytest.fixture
def device():
    with pretended() as device:
        yield device


@pytest.fixture
def toy():
    """Everything to train on the toy task with."""
    return SimpleNamespace(
        Model=Toy,
        Task=ToyTask,
        Recorder=Recorder,
        PowerCut=PowerCut,
        cutting=cutting,
        losses=losses,
        stopping=stopping,
        fit=fit,
        contents=contents,
        V=V,
    )


@pytest.fixture
def small_recipe(tmp_path):
    """A recipe of six updates of a small translator."""
    rows = "".join(f"{a} {b}\t{b} {a}\n" for a in "abcd" for b in "efghi")
    (tmp_path / "train.tsv").write_text(rows, encoding="utf-8")
    sizes = {"embed_dim": 4, "hidden_dim": 4, "attention_dim": 4, "dropout": 0.3}
    training = {"updates": 6, "batch_tokens": 60, "validate_every": 3, "validation_pairs": 0}
    return recipe_from_table(
        {
            "data": {"train": str(tmp_path / "train.tsv")},
            "tokenizer": {"type": "words"},
            "model": {"type": "rnn_seq2seq", **sizes},
            "training": training,
        }
    )
