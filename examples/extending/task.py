"""A task in one pass: everything between lines of text and a model's tensors, and back.

Training, prediction, evaluation beside the baselines, looking and ``data check`` are there for
every task. ``letters.tsv`` has lines of a text, a tab and a letter.

    python examples/extending/task.py train examples/extending/task.toml letters.tsv --run runs/abc
    echo "aabac" | python examples/extending/task.py predict runs/abc
    python examples/extending/task.py evaluate runs/abc --split valid
    python examples/extending/task.py look runs/abc "aab"

In the package: ``tasks/NAME/``, a line of TASKS in ``tasks/registry.py``, and a recipe.
"""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn

from regard.cli import main
from regard.errors import DataError
from regard.models import Architecture
from regard.tasks import OnePassTask, TaskEntry, register_task
from regard.tasks.checking import CheckedExample
from regard.tasks.labels import (
    certain,
    label_loss,
    label_predictions,
    learn_labels,
    most_frequent,
)
from regard.text import read_lines
from regard.text.files import read_table, write_plain
from regard.text.lines import readable

LETTERS = "abc"


@dataclass(frozen=True, kw_only=True, slots=True)
class LettersData:
    """Where the texts are: lines of a text, a tab and a letter."""

    train: tuple[str, ...] | str = ()
    valid: tuple[str, ...] | str = ()
    test: tuple[str, ...] | str = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class CounterConfig:
    """Settings of a counter."""

    hidden_dim: int = 8


class Counter(nn.Module):
    """Counts of letters to logits."""

    def __init__(self, config, *, num_classes):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(len(LETTERS), config.hidden_dim),
            nn.ReLU(),
            nn.Linear(config.hidden_dim, num_classes),
        )

    def forward(self, counts):
        return self.layers(counts)


@dataclass(frozen=True)
class Letters:
    """A text and the letter that it has most of."""

    text: str
    label: str | None
    where: str


class MostFrequentLetter(OnePassTask):
    """Texts to letters."""

    unit = "texts"
    counted = "texts"
    metrics = {"accuracy": 1}

    def __init__(self, recipe, labels):
        self.recipe, self.labels = recipe, labels

    @classmethod
    def read(cls, recipe, split, *, bad_lines=None):
        lines = [line for file in recipe.files(split) for line in read_lines(file)]
        return [Letters(*readable(line).split("\t"), line.where) for line in lines]

    @staticmethod
    def subject(example):
        return example.text

    @staticmethod
    def checked(example):
        return CheckedExample((example.text,), (example.label or "",), example.where)

    @classmethod
    def learn(cls, recipe, examples):
        return cls(recipe, learn_labels(example.label for example in examples))

    @classmethod
    def load(cls, recipe, folder):
        return cls(recipe, read_table(folder, "labels.json")["labels"])

    def save(self, folder):
        write_plain(folder, {"labels": self.labels}, "labels.json")

    def build_model(self):
        return Counter(self.recipe.model, num_classes=len(self.labels))

    def facts(self):
        return [f"{len(self.labels)} letters"]

    def request(self, record, where):
        text = record if isinstance(record, str) else record.get("text")
        if not text:
            raise DataError(f"{where}: text must hold letters; got {text!r}.")
        return Letters(text, None, where)

    def encode(self, examples, *, training=False, too_long=None):
        return [
            (
                [float(example.text.count(letter)) for letter in LETTERS],
                -1 if example.label is None else self.labels.index(example.label),
            )
            for example in examples
        ]

    def lengths(self, encoded):
        return np.ones(len(encoded), dtype=np.int64)

    def collate(self, encoded, *, generator=None):
        counts, labels = zip(*encoded, strict=True)
        return SimpleNamespace(counts=torch.tensor(counts), labels=torch.tensor(labels))

    def loss(self, model, batch, *, smoothing=0.0):
        return label_loss(model(batch.counts), batch.labels, smoothing=smoothing)

    def predict(self, model, batch):
        return label_predictions(model(batch.counts), self.labels)

    def score(self, answers, examples):
        hits = [a.label == e.label for a, e in zip(answers, examples, strict=True)]
        return {"accuracy": 100 * sum(hits) / len(hits)}

    def example_score(self, answer, example):
        return answer.probabilities[example.label or ""]

    def baselines(self, train, examples):
        most = most_frequent(example.label for example in train)
        return {f"always {most}": [certain(most)] * len(examples)}

    def tables(self, answers, examples):
        return []

    def show(self, example, answer):
        return f"{example.text} → {answer.label}"


entry = TaskEntry(
    data=LettersData,
    tokenizer=None,
    models={"counter": Architecture(CounterConfig, lambda: Counter)},
    load=lambda: MostFrequentLetter,
)
register_task("most_frequent_letter", entry)


if __name__ == "__main__":
    main()
