"""Language modelling: every token of a running text, predicted from those before it."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Float, Int, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from regard.config import JsonValue
from regard.devices import device_of, moved
from regard.errors import DataError
from regard.models import LANGUAGE_MODELS, LanguageModel
from regard.tasks.baselines.kneser_ney import KneserNey
from regard.tasks.drawing import NOTHING, Drawing, check_drawn_length, pieces_text
from regard.tasks.language_modelling.running_text import (
    Passage,
    checked_passage,
    hold_out_end,
    passages_of_chunk,
    perplexity,
    read_passages,
    text_shards,
)
from regard.tasks.language_modelling.settings import TextData
from regard.tasks.one_pass_task import Loss, OnePassTask
from regard.tasks.recipe import Recipe, check_positions
from regard.tasks.streaming import Stored, StreamedTask
from regard.tasks.tables import Table
from regard.text import (
    EOS_ID,
    BadLines,
    Line,
    Sequences,
    Tokenizer,
    TokenizerConfig,
    load_tokenizer,
    normalize,
    train_tokenizer,
)
from regard.text.batches import padded
from regard.text.corpus import MappedArrays
from regard.text.reading.lines import readable
from regard.text.reading.records import object_of
from regard.viewer import Prediction


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """Ids to be predicted."""

    ids: Int[np.ndarray, " ids"]
    first: int
    length: int


@dataclass(frozen=True, slots=True, eq=False)
class WindowBatch:
    """Windows of text, batch first."""

    ids: Int[Tensor, "B N"]
    labels: Int[Tensor, "B N"]
    owners: Int[Tensor, " B"]
    count: int


@dataclass(frozen=True, slots=True)
class Surprise:
    """How unexpected a passage was."""

    nats: float
    tokens: int

    def text(self) -> str:
        """Nats a token."""
        return f"{self.nats / self.tokens:.4f}"

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        return {"nats": round(self.nats, 4), "tokens": self.tokens}


class StoredWindows(Stored[Stretch]):
    """Training windows of a text that is on disk."""

    def __init__(self, arrays: MappedArrays, context: int) -> None:
        super().__init__(arrays)
        self._text = arrays["text"].ids
        self._context = min(context, len(self._text) - 1)

    def __len__(self) -> int:
        return max(0, -(-(len(self._text) - self._context) // self._context))

    def sample(self, index: int) -> Stretch:
        """A window."""
        return Stretch(self._text, index * self._context, self._context)

    def lengths_at(self, indices: Int64[np.ndarray, " n"]) -> Int64[np.ndarray, "2 n"]:
        """Tokens predicted of each."""
        return np.full((2, len(indices)), self._context)


class LanguageModelling(OnePassTask[Passage, Surprise], StreamedTask[Passage, Stretch]):
    """Running text to predictions.

    A line's end is the end token, so that a line break is one more thing to predict.

    Args:
        recipe: Whose settings hold.
        tokenizer: Learned from the training text.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> table = {"task": "language_modelling", "tokenizer": {"type": "words"}}
        >>> passage = Passage(("we ran", "we hid"), "tale.txt:1")
        >>> task = LanguageModelling.learn(recipe_from_table(table), [passage])
        >>> batch = task.collate(task.encode([passage]))
        >>> batch.ids.shape, torch.equal(batch.ids[:, 1:], batch.labels[:, :-1])
        (torch.Size([1, 6]), True)
        >>> answer = Surprise(nats=12.0, tokens=6)
        >>> {name: round(value, 3) for name, value in task.score([answer], [passage]).items()}
        {'perplexity': 7.389, 'bits per byte': 1.237}
    """

    unit: ClassVar[str] = "passages"
    counted = "tokens"
    can_smooth: ClassVar[bool] = True
    metrics: ClassVar[Mapping[str, int]] = {"perplexity": -1, "bits per byte": -1}
    read = staticmethod(read_passages)
    hold_out = staticmethod(hold_out_end)
    subject = staticmethod(Passage.text)
    checked = staticmethod(checked_passage)
    least_for_test: ClassVar[int] = 3  # a passage is many lines, and two are left of three
    held_out: ClassVar[Literal["hash", "end"]] = "end"
    stored_as: ClassVar[tuple[str, ...]] = ("text",)
    numbered: ClassVar[tuple[str, ...]] = ()
    shards = staticmethod(text_shards)
    of_chunk = staticmethod(passages_of_chunk)

    def __init__(self, recipe: Recipe, tokenizer: Tokenizer) -> None:
        self.recipe, self.tokenizer = recipe, tokenizer
        self.data = recipe.settings(TextData)

    @classmethod
    def learn(cls, recipe: Recipe, examples: Sequence[Passage]) -> "LanguageModelling":
        """The task with a tokenizer learned from the training text."""
        lines = (line for passage in examples for line in passage.lines)
        return cls(recipe, train_tokenizer(lines, recipe.settings(TokenizerConfig)))

    @classmethod
    def load(cls, recipe: Recipe, folder: Path) -> "LanguageModelling":
        """The task with the tokenizer that ``save`` wrote."""
        return cls(recipe, load_tokenizer(folder / "text"))

    def save(self, folder: Path) -> None:
        """Write the tokenizer."""
        self.tokenizer.save(folder / "text")

    def build_model(self) -> LanguageModel:
        """The recipe's model with new weights.

        Raises:
            SettingError: It cannot take a window of ``data.context`` tokens.
        """
        architecture = LANGUAGE_MODELS[self.recipe.model_type].load()
        model = architecture(self.recipe.model, vocab_size=self.tokenizer.vocab_size)
        check_positions(model, "data.context", self.data.context)
        return model

    def facts(self) -> list[str]:
        """Describe the vocabulary learned from the text, in lines."""
        kind, size = self.recipe.settings(TokenizerConfig).type, self.tokenizer.vocab_size
        return [f"{kind} tokenizer: {size:,} pieces; windows of {self.data.context} tokens"]

    def request(self, record: str | Mapping[str, JsonValue], where: str) -> Passage:
        """The text whose surprise a line or a JSON record asks for.

        Raises:
            DataError: It holds no text.
        """
        text = record if isinstance(record, str) else record.get("text")
        if not isinstance(text, str) or not normalize(text):
            raise DataError(f"{where}: text must hold something to read; got {text!r}.")
        return Passage((normalize(text),), where)

    def prompt(self, record: str | Mapping[str, JsonValue], where: str) -> str:
        """The text to continue, as it stands, of a line or a JSON record; it may be empty.

        Raises:
            DataError: The record holds no text.
        """
        text = record if isinstance(record, str) else record.get("text")
        if not isinstance(text, str):
            got = "none" if text is None else repr(text)
            raise DataError(f'{where}: text must be a prompt to continue; got {got}. Write "text".')
        return text

    def prompt_in(self, line: Line, ending: str) -> str:
        """The prompt in a line of a file.

        Raises:
            DataError: The line cannot be read, or is an object of JSONL without a text.
        """
        text = readable(line)
        return self.prompt(object_of(text, line.where) if ending == ".jsonl" else text, line.where)

    def encode(
        self,
        examples: Iterable[Passage],
        *,
        training: bool = False,
        too_long: BadLines | None = None,
    ) -> list[Stretch]:
        """In training, windows of the whole text; else each passage, the line end before it known.

        A training window begins anywhere: ``collate`` shifts it by less than its length.
        """
        passages = [self._ids(passage) for passage in examples]
        if not training:
            return [Stretch(ids, 0, len(ids) - 1) for ids in passages]
        text = np.concatenate([passages[0][:1], *(ids[1:] for ids in passages)])
        context = min(self.data.context, len(text) - 1)
        return [Stretch(text, first, context) for first in range(0, len(text) - context, context)]

    @classmethod
    def apart(cls, examples: Sequence[Passage], held: Sequence[Passage]) -> list[Passage]:
        """All of them: what is held out is another part of the text."""
        return list(examples)

    def to_store(
        self, examples: Sequence[Passage], *, too_long: BadLines
    ) -> Mapping[str, Sequences]:
        """The tokens and line ends of each passage."""
        return {"text": Sequences.of([self._ids(passage)[1:].tolist() for passage in examples])}

    def stored(self, arrays: MappedArrays) -> StoredWindows:
        """Windows of a text on disk."""
        return StoredWindows(arrays, self.data.context)

    def lengths(self, encoded: Sequence[Stretch]) -> Int64[np.ndarray, " n"]:
        """Tokens predicted of each."""
        return np.array([each.length for each in encoded], dtype=np.int64)

    def collate(
        self, encoded: Sequence[Stretch], *, generator: torch.Generator | None = None
    ) -> WindowBatch:
        """Windows of ``data.context`` tokens; shifted at random if a generator is given."""
        data = self.data
        rows: list[tuple[Int[np.ndarray, " N"], Int[np.ndarray, " N"], int]] = []
        for owner, each in enumerate(encoded):
            first = each.first
            if generator is not None:
                last = len(each.ids) - 1 - each.length
                shift = int(torch.randint(each.length, (), generator=generator))
                first = min(last, first + shift)
            window = each.ids[first : first + each.length + 1]
            rows += [(*part, owner) for part in _windows(window, data.context, data.overlap)]
        reads, labels, owners = (list(part) for part in zip(*rows, strict=True))
        return WindowBatch(
            ids=padded(reads, EOS_ID),
            labels=padded(labels, -1),
            owners=torch.tensor(owners),
            count=len(encoded),
        )

    def collate_part(
        self, encoded: Sequence[Stretch], rows: slice, *, generator: torch.Generator
    ) -> WindowBatch:
        """Some of the windows of a batch, shifted as they are in the whole."""
        whole = self.collate(encoded, generator=generator)
        kept = (whole.owners >= rows.start) & (whole.owners < rows.stop)
        owners = whole.owners[kept] - rows.start
        return WindowBatch(whole.ids[kept], whole.labels[kept], owners, rows.stop - rows.start)

    def batch_loss(self, model: nn.Module, batch: WindowBatch, smoothing: float) -> Loss:
        """The summed cross-entropy in nats, and the tokens it is over."""
        logits = model.project(model(batch.ids))  # type: ignore[operator]
        loss = F.cross_entropy(
            logits.float().flatten(0, 1),
            batch.labels.flatten(),
            ignore_index=-1,
            reduction="sum",
            label_smoothing=smoothing,
        )
        return loss, int((batch.labels >= 0).sum())

    def predict(self, model: nn.Module, batch: WindowBatch) -> list[Surprise]:
        """How unexpected each stretch was."""
        each = self._costs(model, batch)
        none = torch.zeros(batch.count, device=each.device)
        nats = none.index_add(0, batch.owners, each.sum(1))
        tokens = none.index_add(0, batch.owners, (batch.labels >= 0).sum(1).float())
        return [Surprise(n, int(t)) for n, t in zip(nats.tolist(), tokens.tolist(), strict=True)]

    def score(self, answers: Sequence[Surprise], examples: Sequence[Passage]) -> dict[str, float]:
        """Perplexity of a token, and bits for a byte of the text."""
        nats = sum(answer.nats for answer in answers)
        tokens = sum(answer.tokens for answer in answers)
        size = sum(example.size for example in examples)
        return {
            "perplexity": perplexity(nats, tokens),
            "bits per byte": nats / math.log(2) / size,
        }

    def example_score(self, answer: Surprise, example: Passage) -> float:
        """The mean probability of a token, geometrically."""
        return math.exp(-answer.nats / answer.tokens)

    def baselines(
        self, train: Sequence[Passage], examples: Sequence[Passage]
    ) -> dict[str, list[Surprise]]:
        """Every token by its frequency in training, and after the few before it, by Kneser-Ney."""
        size = self.tokenizer.vocab_size
        known = np.concatenate([self._ids(passage)[1:] for passage in train])
        counts = 1 + np.bincount(known, minlength=size)
        cost = -np.log(counts / counts.sum())
        longer = KneserNey(known, vocab_size=size)
        every = [self._ids(example) for example in examples]
        return {
            "frequencies of single tokens": [
                Surprise(float(cost[ids[1:]].sum()), len(ids) - 1) for ids in every
            ],
            f"Kneser-Ney, {longer.order} tokens": [
                Surprise(-float(longer.log_probs(ids).sum()), len(ids) - 1) for ids in every
            ],
        }

    def tables(self, answers: Sequence[Surprise], examples: Sequence[Passage]) -> list[Table]:
        """None: the figures are means over one running text."""
        return []

    def draw(
        self, model: nn.Module, example: Passage, encoded: Stretch, answer: Surprise
    ) -> Drawing:
        """The text, every token of which was predicted, and −log p of each."""
        check_drawn_length(len(encoded.ids) - 1, self.data.context, "tokens")
        (text,) = example.lines
        batch = moved(self.collate([encoded]), device_of(model))
        (costs,) = self._costs(model, batch).tolist()
        return Drawing(
            text=NOTHING,
            output=pieces_text(text, self.tokenizer.pieces(text), ends=True),
            prediction=Prediction(values=tuple(costs), measure="the less expected it was, in nats"),
        )

    def show(self, example: Passage, answer: Surprise) -> str:
        """How a passage begins, and its perplexity."""
        return f"{example.beginning} (perplexity {math.exp(answer.nats / answer.tokens):.2f})"

    def _costs(self, model: nn.Module, batch: WindowBatch) -> Float[Tensor, "B N"]:
        """−log p of each token; 0 of those that are not scored."""
        logits = model.project(model(batch.ids)).float()  # type: ignore[operator]
        return F.cross_entropy(
            logits.flatten(0, 1), batch.labels.flatten(), ignore_index=-1, reduction="none"
        ).view_as(batch.labels)

    def _ids(self, passage: Passage) -> Int64[np.ndarray, " ids"]:
        """Its tokens and line ends, and the line end before it."""
        ids = [EOS_ID]
        for line in self.tokenizer.encode_all(list(passage.lines)):
            ids += [*line, EOS_ID]
        return np.array(ids, dtype=np.int64)


def _windows(
    ids: Int[np.ndarray, " n"], context: int, overlap: int
) -> Iterable[tuple[Int[np.ndarray, " N"], Int[np.ndarray, " N"]]]:
    """Windows of inputs and next tokens; targets that an earlier window has scored are -1."""
    step = context - overlap
    for first in range(0, max(1, len(ids) - 1 - overlap), step):
        reads, labels = ids[first : first + context], ids[first + 1 : first + context + 1]
        if first:
            labels = labels.copy()
            labels[:overlap] = -1
        yield reads[: len(labels)], labels
