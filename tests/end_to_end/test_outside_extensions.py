"""A task in one pass, a task that writes and a model, entered from outside, by every command."""

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from tests.end_to_end.conftest import Command
from torch import Tensor, nn

from regard.config import write_toml
from regard.errors import DataError, SettingError
from regard.inference import Predictor
from regard.metrics import exact_match
from regard.models import MODELS, Architecture, Seq2Seq, register_model
from regard.tasks import (
    TASKS,
    DataConfig,
    DecodingConfig,
    OnePassTask,
    Parts,
    Recipe,
    SequenceTask,
    Table,
    TaskEntry,
    register_task,
)
from regard.tasks.checking import CheckedExample, ExamplesReport, check_examples
from regard.tasks.labels import (
    LabelPrediction,
    certain,
    label_loss,
    label_predictions,
    learn_labels,
    most_frequent,
)
from regard.text import Pair, read_lines
from regard.text.files import read_table, write_plain
from regard.text.lines import readable

LETTERS = "abc"


# A task in one pass: which letter a text has most of.


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

    def __init__(self, config: CounterConfig, *, num_classes: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(len(LETTERS), config.hidden_dim),
            nn.ReLU(),
            nn.Linear(config.hidden_dim, num_classes),
        )

    def forward(self, counts: Tensor) -> Tensor:
        found: Tensor = self.layers(counts)
        return found


@dataclass(frozen=True)
class Letters:
    """A text and the letter that it has most of."""

    text: str
    label: str | None
    where: str


class MostFrequentLetter(OnePassTask[Letters, Any, Any, LabelPrediction]):
    """Texts to letters."""

    unit: ClassVar[str] = "texts"
    counted = "texts"
    metrics: ClassVar[Mapping[str, int]] = {"accuracy": 1}

    def __init__(self, recipe: Recipe, labels: list[str]) -> None:
        self.recipe, self.labels = recipe, labels

    @classmethod
    def read(cls, recipe: Recipe, split: str, *, bad_lines: Any = None) -> list[Letters]:
        lines = [line for file in recipe.files(split) for line in read_lines(file)]
        return [Letters(*readable(line).split("\t"), line.where) for line in lines]

    @staticmethod
    def subject(example: Letters) -> str:
        return example.text

    @staticmethod
    def checked(example: Letters) -> CheckedExample:
        return CheckedExample((example.text,), (example.label or "",), example.where)

    @classmethod
    def learn(cls, recipe: Recipe, examples: Any) -> "MostFrequentLetter":
        return cls(recipe, learn_labels(example.label for example in examples))

    @classmethod
    def load(cls, recipe: Recipe, folder: Path) -> "MostFrequentLetter":
        return cls(recipe, read_table(folder, "labels.json")["labels"])

    def save(self, folder: Path) -> None:
        write_plain(folder, {"labels": self.labels}, "labels.json")

    def build_model(self) -> nn.Module:
        return Counter(self.recipe.model, num_classes=len(self.labels))

    def facts(self) -> list[str]:
        return [f"{len(self.labels)} letters"]

    def request(self, record: Any, where: str) -> Letters:
        text = record if isinstance(record, str) else record.get("text")
        if not text:
            raise DataError(f"{where}: text must hold letters; got {text!r}.")
        return Letters(text, None, where)

    def encode(self, examples: Any, *, training: bool = False, too_long: Any = None) -> list[Any]:
        return [
            (
                [float(example.text.count(letter)) for letter in LETTERS],
                -1 if example.label is None else self.labels.index(example.label),
            )
            for example in examples
        ]

    def lengths(self, encoded: Any) -> Any:
        return np.ones(len(encoded), dtype=np.int64)

    def collate(self, encoded: Any, *, generator: torch.Generator | None = None) -> Any:
        counts, labels = zip(*encoded, strict=True)
        return SimpleNamespace(counts=torch.tensor(counts), labels=torch.tensor(labels))

    def loss(self, model: nn.Module, batch: Any, *, smoothing: float = 0.0) -> tuple[Tensor, int]:
        return label_loss(model(batch.counts), batch.labels, smoothing=smoothing)

    def predict(self, model: nn.Module, batch: Any) -> list[LabelPrediction]:
        return label_predictions(model(batch.counts), self.labels)

    def score(self, answers: Any, examples: Any) -> dict[str, float]:
        hits = [a.label == e.label for a, e in zip(answers, examples, strict=True)]
        return {"accuracy": 100 * sum(hits) / len(hits)}

    def example_score(self, answer: LabelPrediction, example: Letters) -> float:
        return answer.probabilities[example.label or ""]

    def baselines(self, train: Any, examples: Any) -> dict[str, list[LabelPrediction]]:
        most = most_frequent(example.label for example in train)
        return {f"always {most}": [certain(most)] * len(examples)}

    def tables(self, answers: Any, examples: Any) -> list[Table]:
        return []

    def show(self, example: Letters, answer: LabelPrediction) -> str:
        return f"{example.text} → {answer.label}"


# A task that writes: each word turned around.


class Reversal(SequenceTask):
    """A line of letters, and the same from its end."""

    metrics: ClassVar[Mapping[str, int]] = {"exact match": 1}

    @classmethod
    def read(cls, recipe: Recipe, split: str, *, bad_lines: Any = None) -> list[Pair]:
        lines = [line for file in recipe.files(split) for line in read_lines(file)]
        texts = [(readable(line), line.where) for line in lines]
        return [Pair(text, text[::-1], (text[::-1],), where) for text, where in texts]

    @classmethod
    def read_parts(cls, recipe: Recipe, *, bad_lines: Any = None) -> Parts[Pair]:
        return Parts(cls.read(recipe, "train"), cls.read(recipe, "valid"))

    @classmethod
    def check(
        cls, recipe: Recipe, *, examples: int = 3, tokenizer: Any = None, progress: Any = None
    ) -> ExamplesReport:
        def read(split: str, bad_lines: Any) -> list[CheckedExample]:
            pairs = cls.read(recipe, split)
            return [CheckedExample((pair.source,), (), pair.where) for pair in pairs]

        return check_examples(read, unit="lines", examples=examples)

    @classmethod
    def baselines(cls, recipe: Recipe, split: str) -> None:
        """The source itself."""

    def request(self, record: Any, where: str) -> Pair:
        return Pair(record if isinstance(record, str) else record["source"], "", (), where)

    def asked(self, line: Any, ending: str) -> Pair:
        return self.request(readable(line), line.where)

    def asked_pair(self, line: Any, ending: str) -> Pair:
        source, _, target = readable(line).partition("\t")
        return Pair(source, target, (target,), line.where)

    def parts(self, text: str) -> list[str]:
        return [text]

    def told_reading(self) -> list[str]:
        return ["lines are read whole"]

    def shortened(self, pair: Pair, too_long: Any) -> Pair:
        return pair

    def score(self, answers: Any, examples: Any) -> dict[str, float]:
        outputs, right = [one.best.text for one in answers], [one.references for one in examples]
        return {"exact match": exact_match(outputs, right).value}


# A sequence-to-sequence model: a recurrent decoder on the mean of the source.


@dataclass(frozen=True, kw_only=True, slots=True)
class MeanConfig:
    """Settings of a decoder on a mean."""

    hidden_dim: int = 8


@dataclass(frozen=True)
class Hidden:
    """The decoder's state."""

    hidden: Tensor

    def select(self, rows: Tensor) -> "Hidden":
        return Hidden(self.hidden[rows])


class MeanSeq2Seq(Seq2Seq[Hidden]):
    """A GRU that begins with the mean of the source's embeddings."""

    max_length = None

    def __init__(
        self, config: MeanConfig, *, source_vocab: int, target_vocab: int, shared_vocab: bool
    ) -> None:
        super().__init__()
        self.config = config
        self.source = nn.Embedding(source_vocab, config.hidden_dim)
        self.target = nn.Embedding(target_vocab, config.hidden_dim)
        self.cell = nn.GRUCell(config.hidden_dim, config.hidden_dim)
        self.output = nn.Linear(config.hidden_dim, target_vocab)

    def forward(
        self,
        source: Tensor,
        source_lengths: Tensor,
        target: Tensor,
        target_lengths: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        hidden, states = self.start(source, source_lengths).hidden, []
        for column in target.T:
            hidden = self.cell(self.target(column), hidden)
            states.append(hidden)
        return torch.stack(states, dim=1), None

    def project(self, states: Tensor) -> Tensor:
        found: Tensor = self.output(states)
        return found

    def start(self, source: Tensor, source_lengths: Tensor) -> Hidden:
        is_real = torch.arange(source.shape[1]) < source_lengths[:, None]
        summed = (self.source(source) * is_real[..., None]).sum(1)
        return Hidden(summed / source_lengths[:, None])

    def step(self, token: Tensor, state: Hidden) -> tuple[Tensor, Hidden]:
        hidden = self.cell(self.target(token), state.hidden)
        return self.project(hidden).log_softmax(-1), Hidden(hidden)


TRAINING = {
    "updates": 40,
    "batch_tokens": 200,
    "learning_rate": 0.05,
    "warmup": 2,
    "label_smoothing": 0.0,
    "validate_every": 40,
    "precision": "float32",
}
COUNTER = Architecture(CounterConfig, lambda: Counter)
ENTRIES = {
    "most_frequent_letter": TaskEntry(
        data=LettersData,
        tokenizer=None,
        models={"counter": COUNTER},
        load=lambda: MostFrequentLetter,
    ),
    "reversal": TaskEntry(
        data=DataConfig, models=MODELS, decoding=DecodingConfig, load=lambda: Reversal
    ),
}


@pytest.fixture(autouse=True)
def entered() -> Iterator[None]:
    """The tasks and the model in their tables, for one test."""
    for name, entry in ENTRIES.items():
        register_task(name, entry)
    register_model("mean", MeanConfig, MeanSeq2Seq)
    yield
    for name in ENTRIES:
        del TASKS[name]
    del MODELS["mean"]


def write_lines(folder: Path, *, labelled: bool) -> None:
    dice = random.Random(3)
    for split, count in (("train", 120), ("valid", 20), ("test", 20)):
        rows = []
        for _ in range(count):
            most = dice.choice(LETTERS)
            text = "".join(dice.sample(LETTERS + 3 * most, 6))
            rows.append(f"{text}\t{most}\n" if labelled else f"{text}\n")
        (folder / f"{split}.txt").write_text("".join(rows), "utf-8")


def trained(regard: Command, folder: Path, task: str, **sections: dict[str, Any]) -> Path:
    write_lines(folder, labelled=task == "most_frequent_letter")
    files = {split: f"{split}.txt" for split in ("train", "valid", "test")}
    if task == "translation":
        for split in files:
            lines = (folder / f"{split}.txt").read_text("utf-8").split()
            pairs = "".join(f"{line}\t{line[::-1]}\n" for line in lines)
            (folder / f"{split}.tsv").write_text(pairs, "utf-8")
        files = {split: f"{split}.tsv" for split in files}
    table = {"task": task, "data": files, **sections, "training": TRAINING}
    (folder / "recipe.toml").write_text(write_toml(table), "utf-8")
    done = regard("train", folder / "recipe.toml", "--run", folder / "run")
    assert done.code == 0, done
    return folder / "run"


def test_a_task_in_one_pass(regard: Command, tmp_path: Path) -> None:
    run = trained(regard, tmp_path, "most_frequent_letter")
    asked = regard("predict", run, stdin=b"aab\n\nccc\n")
    assert [line.partition("\t")[0] for line in asked.out.split("\n")] == ["a", "", "c", ""]
    report = json.loads(regard("evaluate", run, "--json").out)
    assert report["count"] == 20
    assert report["figures"][0]["value"] > 90
    assert next(iter(report["baselines"])).startswith("always ")
    looked = regard("look", run, "aab", "--out", tmp_path / "page.html")
    assert looked.code == 0, looked
    assert (tmp_path / "page.html").stat().st_size
    checked = regard("data", "check", tmp_path / "recipe.toml")
    assert "texts: train: 120; valid: 20; test: 20" in checked.out
    assert Predictor.load(run).predict(["bbb"])[0].label == "b"


def test_a_task_that_writes(regard: Command, tmp_path: Path) -> None:
    small = {"type": "rnn_seq2seq", "embed_dim": 8, "hidden_dim": 8, "attention_dim": 8}
    run = trained(regard, tmp_path, "reversal", tokenizer={"type": "characters"}, model=small)
    asked = regard("predict", run, "--beam-size", 2, stdin=b"aab\n\n")
    assert asked.code == 0, asked
    assert asked.out.count("\n") == 2
    scored = regard("predict", run, "--score", stdin=b"ab\tba\n")
    assert scored.out.endswith("\tba\n"), scored
    report = json.loads(regard("evaluate", run, "--method", "greedy", "--json").out)
    assert report["count"] == 20
    assert report["baselines"][0]["name"] == "the source itself"
    looked = regard("look", run, "aab", "--out", tmp_path / "page.html")
    assert looked.code == 0, looked
    assert "aab → " in looked.out
    checked = regard("data", "check", tmp_path / "recipe.toml")
    assert "lines: train: 120; valid: 20; test: 20" in checked.out


def test_a_sequence_to_sequence_model(regard: Command, tmp_path: Path) -> None:
    tokenizer = {"type": "characters"}
    run = trained(regard, tmp_path, "translation", tokenizer=tokenizer, model={"type": "mean"})
    asked = regard("predict", run, stdin=b"aab\n")
    assert (asked.code, asked.out.count("\n")) == (0, 1), asked
    assert json.loads(regard("evaluate", run, "--json").out)["count"] > 10
    looked = regard("look", run, "aab", "--out", tmp_path / "page.html")
    assert looked.code == 0, looked


def test_what_cannot_be_a_task_is_refused() -> None:

    class Missing(SequenceTask):
        metrics: ClassVar[Mapping[str, int]] = {}

    with pytest.raises(SettingError, match="name must be of no other task; got 'tagging'"):
        register_task("tagging", ENTRIES["reversal"])
    entry = TaskEntry(data=DataConfig, models=MODELS, decoding=DecodingConfig, load=lambda: Missing)
    with pytest.raises(SettingError, match="Missing must have asked, asked_pair, baselines, che"):
        register_task("missing", entry)
