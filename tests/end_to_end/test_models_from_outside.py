"""Models that the package does not know, let in by name and then used by every command."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention import Dot, at, attend, lengths
from regard.fields import Count, check_fields
from regard.inference import Predictor
from regard.models import Seq2Seq, TextReader, register_model, registry

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


@pytest.fixture(scope="module", autouse=True)
def registered():
    tables = [table for tables in registry._TABLES.values() for table in tables]
    register_model("toy", ToyConfig, ToySeq2Seq)
    register_model("toy", ToyConfig, ToyReader)
    yield
    for table in tables:
        table.pop("toy", None)


@pytest.fixture(scope="module")
def translator(regard, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("toy")
    pairs = [(a, b, c) for a in WORDS for b in WORDS for c in WORDS]
    lines = [f"{a} {b} {c}\t{a.upper()} {b.upper()} {c.upper()}" for a, b, c in pairs]
    (folder / "pairs.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    recipe = RECIPE.format(task="translation", data='train = "pairs.tsv"', model="toy")
    (folder / "toy.toml").write_text(recipe, "utf-8")
    trained = regard("train", folder / "toy.toml", "--run", folder / "run")
    assert trained.code == 0, trained
    return folder / "run"


def test_a_sequence_model_is_trained_and_translates(regard, translator: Path) -> None:
    assert regard("predict", translator, stdin=b"two six one\n").out == "TWO SIX ONE\n"
    (found,) = Predictor.load(translator).translate(["four four five"])
    assert found[0].text == "FOUR FOUR FIVE"


def test_a_sequence_model_is_evaluated_and_looked_into(regard, translator: Path) -> None:
    done = regard("evaluate", translator, "--split", "valid")
    assert done.code == 0, done
    assert "exact match" in done.out
    page = translator.parent / "page.html"
    looked = regard("look", translator, "one two six", "--output", page)
    assert looked.code == 0, looked
    assert "SIX" in page.read_text("utf-8")


def test_a_reader_is_trained_and_classifies(regard, tmp_path: Path) -> None:
    lines = [f"{word} {other}\t{word}" for word in WORDS[:2] for other in WORDS for _ in range(4)]
    (tmp_path / "texts.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    recipe = RECIPE.format(task="classification", data='train = "texts.tsv"', model="toy")
    (tmp_path / "toy.toml").write_text(recipe, "utf-8")
    trained = regard("train", tmp_path / "toy.toml", "--run", tmp_path / "run")
    assert trained.code == 0, trained
    assert regard("predict", tmp_path / "run", stdin=b"two\n").out.startswith("two")


def test_an_unknown_name_is_told_with_the_known_ones(regard, translator: Path) -> None:
    message = regard.refused("train", translator.parent / "toy.toml", "--set", "model.type=tox")
    assert "model.type must be one of conv_seq2seq, rnn_seq2seq, toy, transformer" in message
