"""Language modelling: every token of a running text, predicted from those before it."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from regard.config import JsonValue
from regard.devices import device_of, moved
from regard.errors import DataError
from regard.models import LANGUAGE_MODELS, LanguageModel
from regard.tasks.batches import Batch
from regard.tasks.drawing import NOTHING, Drawing, check_drawn_length, pieces_text
from regard.tasks.one_pass_task import Loss
from regard.tasks.running_text.kneser_ney import KneserNey
from regard.tasks.running_text.running_text import Passage, RunningTextTask, Stretch, perplexity
from regard.tasks.settings.data import TextData
from regard.tasks.settings.recipe import Recipe, check_positions
from regard.tasks.tables import Table
from regard.text import EOS_ID, Line, Tokenizer, TokenizerConfig, normalize, train_tokenizer
from regard.text.batches import padded
from regard.text.reading.lines import readable
from regard.text.reading.records import object_of
from regard.viewer import Prediction

__all__ = ["LanguageModelling", "Passage", "TextData"]

SURPRISE = "the less expected it was, in nats"


@dataclass(frozen=True, slots=True)
class Surprise:
    """−log p of a passage, and its tokens, line ends included."""

    nats: float
    tokens: int

    def text(self) -> str:
        """Nats a token."""
        return f"{self.nats / self.tokens:.4f}"

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        return {"nats": round(self.nats, 4), "tokens": self.tokens}


class Prompt(str):
    """A text to continue, with its tokens."""

    ids: tuple[int, ...]


class LanguageModelling(RunningTextTask[Surprise]):
    """Running text to predictions.

    A line's end is the end token, so that a line break is one more thing to predict.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> table = {"task": "language_modelling", "tokenizer": {"type": "words"}}
        >>> passage = Passage(("we ran", "we hid"), "tale.txt:1")
        >>> task = LanguageModelling.learn(recipe_from_table(table), [passage])
        >>> batch = task.collate(task.encode([passage]))
        >>> batch["ids"].shape, torch.equal(batch["ids"][:, 1:], batch["labels"][:, :-1])
        (torch.Size([1, 6]), True)
        >>> answer = Surprise(nats=12.0, tokens=6)
        >>> {name: round(value, 3) for name, value in task.score([answer], [passage]).items()}
        {'perplexity': 7.389, 'bits per byte': 1.237}
    """

    loss_unit = "tokens"
    metrics: ClassVar[Mapping[str, int]] = {"perplexity": -1, "bits per byte": -1}
    stored_as: ClassVar[tuple[str, ...]] = ("text",)
    numbered: ClassVar[tuple[str, ...]] = ()
    ahead: ClassVar[int] = 1
    data: TextData
    tokenizer: Tokenizer

    @classmethod
    def learn(cls, recipe: Recipe, examples: Sequence[Passage]) -> "LanguageModelling":
        lines = (line for passage in examples for line in passage.lines)
        return cls(recipe, train_tokenizer(lines, recipe.settings(TokenizerConfig)))

    def build_model(self) -> LanguageModel:
        architecture = LANGUAGE_MODELS[self.recipe.model_type].load()
        model = architecture(self.recipe.model, vocab_size=self.tokenizer.vocab_size)
        check_positions(model.max_length, "data.context", self.data.context)
        return model

    def describe(self) -> list[str]:
        (pieces,) = super().describe()
        return [f"{pieces}; windows of {self.data.context} tokens"]

    def request(self, record: str | Mapping[str, JsonValue], where: str) -> Passage:
        """The text of a line or a JSON record, whose −log p is asked for."""
        text = record if isinstance(record, str) else record.get("text")
        if not isinstance(text, str) or not normalize(text):
            raise DataError(f"{where}: text must hold something to read; got {text!r}.")
        return Passage((normalize(text),), where)

    def prompt(self, record: str | Mapping[str, JsonValue], where: str) -> "Prompt":
        """The text to continue, as it stands, of a line or a JSON record; it may be empty."""
        text = record if isinstance(record, str) else record.get("text")
        if not isinstance(text, str):
            value = "none" if text is None else repr(text)
            raise DataError(
                f'{where}: text must be a prompt to continue; got {value}. Write "text".'
            )
        return self.encode_prompt(text)

    def encode_prompt(self, text: str) -> "Prompt":
        """A text to continue, tokenised unless it is."""
        if isinstance(text, Prompt):
            return text
        prompt = Prompt(text)
        prompt.ids = tuple(self.tokenizer.encode(normalize(text)))
        return prompt

    def prompt_in(self, line: Line, ending: str) -> "Prompt":
        """The prompt in a line of a file."""
        text = readable(line)
        return self.prompt(object_of(text, line.where) if ending == ".jsonl" else text, line.where)

    def collate(self, encoded: Sequence[Stretch], *, generator: Generator | None = None) -> Batch:
        """Windows of ``data.context`` tokens; shifted at random if a generator is given.

        ``labels`` are the tokens that come next, -1 where they are not scored; ``owners`` the
        stretches that the rows are part of, of which there are ``count``.
        """
        data = self.data
        rows: list[tuple[Int[np.ndarray, " N"], Int[np.ndarray, " N"], int]] = []
        for owner, stretch in enumerate(encoded):
            first = stretch.first if generator is None else stretch.shifted(generator, self.ahead)
            window = stretch.ids[first : first + stretch.length + 1]
            rows += [(*part, owner) for part in _windows(window, data.context, data.overlap)]
        ids, labels, owners = (list(part) for part in zip(*rows, strict=True))
        return {
            "ids": padded(ids, EOS_ID),
            "labels": padded(labels, -1),
            "owners": torch.tensor(owners),
            "count": len(encoded),
        }

    def batch_loss(self, model: nn.Module, batch: Batch, smoothing: float) -> Loss:
        logits = model.project(model(batch["ids"]))  # type: ignore[operator]
        loss = F.cross_entropy(
            logits.float().flatten(0, 1),
            batch["labels"].flatten(),
            ignore_index=-1,
            reduction="sum",
            label_smoothing=smoothing,
        )
        return loss, int((batch["labels"] >= 0).sum())

    def predict(self, model: nn.Module, batch: Batch) -> list[Surprise]:
        costs = self._costs(model, batch)
        none = torch.zeros(batch["count"], device=costs.device)
        nats = none.index_add(0, batch["owners"], costs.sum(1))
        tokens = none.index_add(0, batch["owners"], (batch["labels"] >= 0).sum(1).float())
        return [Surprise(n, int(t)) for n, t in zip(nats.tolist(), tokens.tolist(), strict=True)]

    def score(self, answers: Sequence[Surprise], examples: Sequence[Passage]) -> dict[str, float]:
        nats = sum(answer.nats for answer in answers)
        tokens = sum(answer.tokens for answer in answers)
        size = sum(example.size for example in examples)
        return {"perplexity": perplexity(nats, tokens), "bits per byte": nats / math.log(2) / size}

    def example_score(self, answer: Surprise, example: Passage) -> float:
        """The mean probability of a token, geometrically."""
        return math.exp(-answer.nats / answer.tokens)

    def baselines(
        self, train: Sequence[Passage], examples: Sequence[Passage]
    ) -> dict[str, list[Surprise]]:
        """Every token by its frequency in training, and after the few before it, by Kneser-Ney."""
        size = self.tokenizer.vocab_size
        training_ids = np.concatenate([self.stretch(passage).ids[1:] for passage in train])
        counts = 1 + np.bincount(training_ids, minlength=size)
        cost = -np.log(counts / counts.sum())
        longer = KneserNey(training_ids, vocab_size=size)
        every = [self.stretch(example).ids for example in examples]
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
            prediction=Prediction(values=tuple(costs), measure=SURPRISE),
        )

    def show(self, example: Passage, answer: Surprise) -> str:
        return f"{example.beginning} (perplexity {math.exp(answer.nats / answer.tokens):.2f})"

    def _costs(self, model: nn.Module, batch: Batch) -> Float[Tensor, "B N"]:
        """−log p of each token; 0 of those that are not scored."""
        logits = model.project(model(batch["ids"])).float()  # type: ignore[operator]
        labels: Tensor = batch["labels"]
        return F.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), ignore_index=-1, reduction="none"
        ).view_as(labels)

    @property
    def window(self) -> int:
        return self.data.context

    def stretch(self, passage: Passage) -> Stretch:
        """The tokens and line ends of a passage, and the line end before it."""
        ids = [EOS_ID]
        for line in self.tokenizer.encode_all(list(passage.lines)):
            ids += [*line, EOS_ID]
        return Stretch(np.array(ids, dtype=np.int64), 0, len(ids) - self.ahead)


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
