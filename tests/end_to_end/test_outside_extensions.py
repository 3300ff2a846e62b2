"""A task in one pass, a task that writes, and models, entered from outside, by every command."""

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
import torch
from jaxtyping import Float, Int
from tests.end_to_end.conftest import Command
from torch import Tensor, nn

from regard.attention import Dot, at, attend, lengths
from regard.config import write_toml
from regard.errors import DataError, SettingError
from regard.fields import Count, check_fields
from regard.inference import Predictor
from regard.metrics import exact_match
from regard.models import MODELS, Architecture, Seq2Seq, TextReader, register_model, registry
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


# A sequence-to-sequence model and a reader of texts.


@dataclass(frozen=True, kw_only=True, slots=True)
class ToyConfig:
    """Sizes: the width of every vector."""

    model_dim: Count = 8

    def __post_init__(self) -> None:
        check_fields(self)


class ToyState(NamedTuple):
    """What decoding carries: the source, how much of each row is real, and the place."""

    source: Int[Tensor, "B S"]
    lengths: Int[Tensor, " B"]
    place: Int[Tensor, " B"]

    def select(self, rows: Int[Tensor, " K"]) -> "ToyState":
        """The state of these rows."""
        return ToyState(*(each[rows] for each in self))


class ToySeq2Seq(Seq2Seq[ToyState]):
    """The place asks, the places of the source answer, and what stands there is said."""

    def __init__(
        self, config: ToyConfig, *, source_vocab: int, target_vocab: int, shared_vocab: bool = False
    ) -> None:
        super().__init__()
        self.max_length = 32
        self.places = nn.Embedding(self.max_length, config.model_dim)
        self.embedding = nn.Embedding(source_vocab, config.model_dim)
        self.output = nn.Linear(config.model_dim, target_vocab)

    def forward(
        self,
        source: Int[Tensor, "B S"],
        source_lengths: Int[Tensor, " B"],
        target: Int[Tensor, "B T"],
        target_lengths: Int[Tensor, " B"] | None = None,
    ) -> tuple[Float[Tensor, "B T C"], None]:
        """What stands where each place looks."""
        asked = torch.arange(target.shape[1]).expand_as(target)
        return self._look(asked, source, source_lengths), None

    def project(self, states: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch V"]:
        """Logits."""
        logits: Tensor = self.output(states)
        return logits

    def start(self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, " B"]) -> ToyState:
        """The first place."""
        return ToyState(source, source_lengths, torch.zeros_like(source_lengths))

    def step(
        self, token: Int[Tensor, " B"], state: ToyState
    ) -> tuple[Float[Tensor, "B V"], ToyState]:
        """The next place."""
        states = self._look(state.place[:, None].clamp(max=31), state.source, state.lengths)
        log_probs = self.project(states[:, 0]).log_softmax(-1)
        return log_probs, state._replace(place=state.place + 1)

    def _look(self, asked: Tensor, source: Tensor, source_lengths: Tensor) -> Tensor:
        keys = self.places(torch.arange(source.shape[1])).expand(len(source), -1, -1)
        with at("cross", 0):
            return attend(
                self.places(asked),
                keys,
                self.embedding(source),
                score=Dot(),
                mask=lengths(source_lengths),
            )


class ToyReader(TextReader):
    """Embeddings alone."""

    def __init__(self, config: ToyConfig, *, vocab_size: int, parts_vocab: int = 0) -> None:
        super().__init__()
        self.max_length, self.output_dim = None, config.model_dim
        self.embedding = nn.Embedding(vocab_size, config.model_dim)

    def forward(
        self, ids: Int[Tensor, "B N"], lengths: Int[Tensor, " B"] | None = None
    ) -> Float[Tensor, "B N C"]:
        """The embeddings."""
        states: Tensor = self.embedding(ids)
        return states


RECIPE = """
task = "{task}"
[data]
{data}
max_length = 8
[tokenizer]
type = "words"
[model]
type = "{model}"
model_dim = 16
[training]
updates = 120
batch_tokens = 512
learning_rate = 0.02
warmup = 10
validate_every = 60
precision = "float32"
"""
WORDS = ("one", "two", "three", "four", "five", "six")
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


@pytest.fixture(scope="module", autouse=True)
def entered() -> Iterator[None]:
    """The tasks and the models in their tables, for these tests."""
    tables = [table for tables in registry._TABLES.values() for table in tables]
    for name, entry in ENTRIES.items():
        register_task(name, entry)
    register_model("toy", ToyConfig, ToySeq2Seq)
    register_model("toy", ToyConfig, ToyReader)
    yield
    for name in ENTRIES:
        del TASKS[name]
    for table in tables:
        table.pop("toy", None)


@pytest.fixture(scope="module")
def translator(regard: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("toy")
    pairs = [(a, b, c) for a in WORDS for b in WORDS for c in WORDS]
    lines = [f"{a} {b} {c}\t{a.upper()} {b.upper()} {c.upper()}" for a, b, c in pairs]
    (folder / "pairs.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    recipe = RECIPE.format(task="translation", data='train = "pairs.tsv"', model="toy")
    (folder / "toy.toml").write_text(recipe, "utf-8")
    trained = regard("train", folder / "toy.toml", "--run", folder / "run")
    assert trained.code == 0, trained
    return folder / "run"


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


def test_a_sequence_model_is_trained_and_translates(regard: Command, translator: Path) -> None:
    assert regard("predict", translator, stdin=b"two six one\n").out == "TWO SIX ONE\n"
    (found,) = Predictor.load(translator).translate(["four four five"])
    assert found[0].text == "FOUR FOUR FIVE"


def test_a_sequence_model_is_evaluated_and_looked_into(regard: Command, translator: Path) -> None:
    done = regard("evaluate", translator, "--split", "valid")
    assert done.code == 0, done
    assert "exact match" in done.out
    page = translator.parent / "page.html"
    looked = regard("look", translator, "one two six", "--output", page)
    assert looked.code == 0, looked
    assert "SIX" in page.read_text("utf-8")


def test_a_reader_is_trained_and_classifies(regard: Command, tmp_path: Path) -> None:
    lines = [f"{word} {other}\t{word}" for word in WORDS[:2] for other in WORDS for _ in range(4)]
    (tmp_path / "texts.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    recipe = RECIPE.format(task="classification", data='train = "texts.tsv"', model="toy")
    (tmp_path / "toy.toml").write_text(recipe, "utf-8")
    trained = regard("train", tmp_path / "toy.toml", "--run", tmp_path / "run")
    assert trained.code == 0, trained
    assert regard("predict", tmp_path / "run", stdin=b"two\n").out.startswith("two")


def test_an_unknown_name_is_told_with_the_known_ones(regard: Command, translator: Path) -> None:
    message = regard.refused("train", translator.parent / "toy.toml", "--set", "model.type=tox")
    assert "model.type must be one of conv_seq2seq, rnn_seq2seq, toy, transformer" in message


def test_what_cannot_be_a_task_is_refused() -> None:

    class Missing(SequenceTask):
        metrics: ClassVar[Mapping[str, int]] = {}

    with pytest.raises(SettingError, match="name must be of no other task; got 'tagging'"):
        register_task("tagging", ENTRIES["reversal"])
    entry = TaskEntry(data=DataConfig, models=MODELS, decoding=DecodingConfig, load=lambda: Missing)
    with pytest.raises(SettingError, match="Missing must have asked, asked_pair, baselines, che"):
        register_task("missing", entry)
