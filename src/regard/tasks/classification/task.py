"""Classification: one label for a text, such as its polarity; or for a text and an aspect of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, TypedDict

import numpy as np
import torch
from jaxtyping import Float, Int32, Int64
from torch import Tensor, nn

from regard.config import JsonValue
from regard.devices import device_of, moved
from regard.errors import DataError, SettingError
from regard.models import READERS, Classifier, ClassifierConfig
from regard.tasks.baselines.naive_bayes import NaiveBayes
from regard.tasks.checking import CheckedExample
from regard.tasks.classification.data import (
    MOST_LEFT_OUT,
    EncodedText,
    LabelledText,
    TextBatch,
    odds_lost,
)
from regard.tasks.classification.settings import ClassificationData
from regard.tasks.classification.speller import Speller, boxed
from regard.tasks.labels import (
    LabelPrediction,
    LabelTask,
    SavedLabels,
    certain,
    has_header,
    learn_labels,
    most_frequent,
    number_of,
    tell_labels,
)
from regard.tasks.recipe import Recipe, check_framed_positions, tell_pieces
from regard.tasks.showing import Said, Shade, Shown, ShownText, by_share
from regard.tasks.tables import confusion_table, label_table, length_table
from regard.tasks.task import Table
from regard.tasks.word_parts import reads_parts
from regard.text import (
    BOS_ID,
    EOS_ID,
    PAD_ID,
    UNK_ID,
    BadLines,
    Tokenizer,
    TokenizerConfig,
    load_tokenizer,
    normalize,
    train_tokenizer,
)
from regard.text.files import read_kept, write_plain
from regard.text.padding import lengths_of, padded
from regard.text.records import member, read_records
from regard.text.tables import Field
from regard.text.words import SPLITTERS

_LABELS_FILE = "labels.json"
# What a query of the pooling looks at, where the pooling has one.
_POOLING = Shade(
    kind="cross", layer=0, query=0, measure="the more the query of the pooling looks at it"
)


class _Labels(TypedDict):
    """Contents of the file of labels."""

    labels: SavedLabels
    aspects: list[str]


class Classification(LabelTask[LabelledText, EncodedText, TextBatch]):
    """Texts to labels.

    Args:
        recipe: Whose settings hold.
        tokenizer: Learned from the training texts; a ``Speller`` where words are read from parts.
        labels: In order of their numbers.
        aspects: In order of their numbers, from 1.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> recipe = recipe_from_table({"task": "classification", "tokenizer": {"type": "words"}})
        >>> texts = {"good tea": "+", "bad": "-"}
        >>> known = [LabelledText(text, label, None, "a:1") for text, label in texts.items()]
        >>> task = Classification.learn(recipe, known)
        >>> batch = task.collate(task.encode(known))
        >>> task.labels, batch.ids.shape, batch.lengths, batch.labels
        (['+', '-'], torch.Size([2, 3]), tensor([3, 2]), tensor([0, 1]))
    """

    unit: ClassVar[str] = "texts"
    counted = "texts"

    def __init__(
        self,
        recipe: Recipe,
        tokenizer: Tokenizer | Speller,
        labels: Sequence[str],
        aspects: Sequence[str],
    ) -> None:
        self.recipe, self.tokenizer = recipe, tokenizer
        self.data = recipe.settings(ClassificationData)
        self.labels, self.aspects = list(labels), list(aspects)
        self._begin = [BOS_ID] if recipe.settings(TokenizerConfig).begins else []
        self._aspect_ids = {aspect: place for place, aspect in enumerate(aspects, 1)}

    @classmethod
    def read(
        cls, recipe: Recipe, split: str, *, bad_lines: BadLines | None = None
    ) -> list[LabelledText]:
        """The examples of a split; none if the recipe names no file."""
        data = recipe.settings(ClassificationData)
        fields = [*_asked_fields(data), Field.of(data, "label")]
        every: list[LabelledText] = []
        for file in recipe.files(split):
            read = read_records(file, fields, on_bad_line=data.on_bad_line, bad_lines=bad_lines)
            texts = [
                LabelledText(
                    normalize(found["text"]), found["label"].strip(), found.get("aspect"), where
                )
                for found, where in read
            ]
            every += texts[has_header([(one.text, one.label or "") for one in texts], file) :]
        return every

    @staticmethod
    def subject(example: LabelledText) -> str:
        """The text, whatever is asked of it."""
        return example.text

    @staticmethod
    def checked(example: LabelledText) -> CheckedExample:
        """The text, its aspect before it, and its label."""
        text = example.text if example.aspect is None else f"{example.aspect}: {example.text}"
        return CheckedExample((text,), (example.label or "",), example.where)

    @classmethod
    def learn(cls, recipe: Recipe, examples: Sequence[LabelledText]) -> "Classification":
        """The task with the tokenizer, labels and aspects of the training examples.

        Raises:
            DataError: There are fewer than two labels.
            SettingError: Words are to be read from their parts, and text is not cut into words.
        """
        labels = learn_labels(example.label for example in examples)
        if len(labels) > max(100, len(examples) // 4):
            raise DataError(
                f"data.train must hold few different labels; got {len(labels):,} in "
                f"{len(examples):,} examples, such as {labels[0]!r}. "
                "Is data.label the label's column? `regard train FILE` alone guesses which it is."
            )
        aspects = sorted({example.aspect for example in examples if example.aspect is not None})
        texts = [example.text for example in examples]
        tokenizer = recipe.settings(TokenizerConfig)
        if not reads_parts(recipe.model):
            return cls(recipe, train_tokenizer(texts, tokenizer), labels, aspects)
        if tokenizer.type not in SPLITTERS:
            raise SettingError(
                f"tokenizer.type must be {' or '.join(SPLITTERS)} where model.parts is set; "
                f"got {tokenizer.type!r}."
            )
        if tokenizer.begins:
            raise SettingError(
                "tokenizer.begin must be left out where model.parts is set; got true. "
                "A begin has no parts."
            )
        parts = recipe.settings(ClassificationData).parts
        return cls(recipe, Speller.learn(texts, tokenizer, parts), labels, aspects)

    @classmethod
    def load(cls, recipe: Recipe, folder: Path) -> "Classification":
        """The task with what ``save`` wrote."""
        table = read_kept(folder, _LABELS_FILE, _Labels)
        load = Speller.load if reads_parts(recipe.model) else load_tokenizer
        return cls(recipe, load(folder / "text"), table["labels"], table["aspects"])

    def save(self, folder: Path) -> None:
        """Write the tokenizer, the labels and the aspects."""
        self.tokenizer.save(folder / "text")
        write_plain(folder, {"labels": self.labels, "aspects": self.aspects}, _LABELS_FILE)

    def build_model(self) -> nn.Module:
        """The recipe's classifier with new weights."""
        read = READERS[self.recipe.model_type].load()
        reader = read(self.recipe.model, **self._sizes())
        check_framed_positions(reader, self.data.max_length, self.recipe.settings(TokenizerConfig))
        return Classifier(
            self.recipe.settings(ClassifierConfig),
            reader,
            num_classes=len(self.labels),
            num_aspects=len(self.aspects) + 1,
        )

    def facts(self) -> list[str]:
        """Describe the vocabulary and labels learned from the text, in lines."""
        facts = [
            tell_pieces(self.recipe, self.tokenizer.vocab_size),
            tell_labels(self.labels),
        ]
        if self.aspects:
            facts.append(f"{len(self.aspects)} aspects: {', '.join(self.aspects[:10])}")
        return facts

    def asked_fields(self, *, with_answers: bool = False) -> Sequence[Field]:
        """The text, and its aspect if the recipe has one."""
        return _asked_fields(self.data)

    def request(self, record: str | Mapping[str, JsonValue], where: str) -> LabelledText:
        """The text that a line or a JSON record asks about.

        Raises:
            DataError: It holds no text.
        """
        if isinstance(record, str):
            record = {"text": record}
        text, aspect = (member(record, Field.of(self.data, name)) for name in ("text", "aspect"))
        normal = normalize(text) if isinstance(text, str) else ""
        if not normal:
            raise DataError(f"{where}: text must hold something to classify; got {text!r}.")
        if aspect is not None and not isinstance(aspect, str):
            raise DataError(f"{where}: aspect must be text; got {aspect!r}.")
        return LabelledText(normal, None, aspect, where)

    def encode(
        self,
        examples: Iterable[LabelledText],
        *,
        training: bool = False,
        too_long: BadLines | None = None,
    ) -> list[EncodedText]:
        """Ids of each text, cut to ``data.max_length``.

        Raises:
            DataError: A label was not met in training.
        """
        examples = list(examples)
        longest, too_long = self.data.max_length, too_long or BadLines()
        found = []
        for example, (ids, parts) in zip(examples, self._cut(examples), strict=True):
            too_long.add_cut("text", example.where, size=len(ids), longest=longest)
            label = number_of(example.label, self.labels, example.where)
            aspect = self._aspect_ids.get(example.aspect or "", 0)
            end = [EOS_ID] if parts is None else []
            kept = None if parts is None else parts[:longest]
            found.append(EncodedText([*self._begin, *ids[:longest], *end], kept, label, aspect))
        return found

    def lengths(self, encoded: Sequence[EncodedText]) -> Int64[np.ndarray, " n"]:
        """Tokens of each text, its begin and end among them."""
        return np.array([len(each.ids) for each in encoded], dtype=np.int64)

    def collate(
        self, encoded: Sequence[EncodedText], *, generator: torch.Generator | None = None
    ) -> TextBatch:
        """A padded batch; with a generator, some words become unknown."""
        rows = [each.ids for each in encoded]
        ids = padded(rows)
        if generator is not None and self.data.drop_words:
            drawn = torch.rand(ids.shape, generator=generator) < self.data.drop_words
            ids = ids.masked_fill(drawn & (ids != PAD_ID), UNK_ID)
        spelled = [each.parts for each in encoded if each.parts is not None]
        return TextBatch(
            ids=ids,
            lengths=lengths_of(rows),
            parts=boxed(spelled) if spelled else None,
            aspects=torch.tensor([each.aspect for each in encoded]),
            labels=torch.tensor([each.label for each in encoded]),
        )

    def joined(self, answers: Sequence[LabelPrediction]) -> LabelPrediction:
        """One answer of several to the same text: the mean of their probabilities."""
        shares = {
            label: sum(answer.probabilities[label] for answer in answers) / len(answers)
            for label in self.labels
        }
        return LabelPrediction(max(self.labels, key=shares.__getitem__), shares)

    def baselines(
        self, train: Sequence[LabelledText], examples: Sequence[LabelledText]
    ) -> dict[str, list[LabelPrediction]]:
        """The most frequent label of training, and naive Bayes on the model's own tokens."""
        most = most_frequent(example.label for example in train)
        bayes = NaiveBayes([(example.text, example.label or "") for example in train])
        return {
            f"always {most}": [certain(most)] * len(examples),
            "naive Bayes": [certain(bayes.label(example.text)) for example in examples],
        }

    def tables(
        self, answers: Sequence[LabelPrediction], examples: Sequence[LabelledText]
    ) -> list[Table]:
        """By label, by length, and what was taken for what."""
        given = [answer.label for answer in answers]
        right = [example.label or "" for example in examples]
        return [
            label_table(given, right),
            length_table([len(example.text) for example in examples], given, right),
            confusion_table(given, right),
        ]

    def shown(self, example: LabelledText, encoded: EncodedText, answer: LabelPrediction) -> Shown:
        """The text in the tokens that are read, and its label."""
        is_framed = encoded.parts is None
        begins = is_framed and bool(self._begin)
        pieces = self.tokenizer.pieces(example.text)[: len(encoded.ids) - is_framed - begins]
        text = ShownText.of_pieces(example.text, pieces, begins=begins, ends=is_framed)
        return Shown(text=text, output=ShownText.of_words([answer.label]))

    def said(
        self, model: nn.Module, example: LabelledText, encoded: EncodedText, answer: LabelPrediction
    ) -> Said:
        """The labels, and what the answer owes to each token: by the pooling, or without it."""
        said = Said(labels=by_share(answer.probabilities.items()), shade=_POOLING)
        if len(encoded.ids) > MOST_LEFT_OUT:
            return said

        def answers(texts: Sequence[EncodedText]) -> list[LabelPrediction]:
            return self.predict(model, moved(self.collate(texts), device_of(model)))

        lost = odds_lost(encoded, answer, answers)
        return replace(
            said,
            values=lost,
            measure=f"the more the odds of “{answer.label}” fall without it",
            importances=(("leave one out", lost),),
        )

    def show(self, example: LabelledText, answer: LabelPrediction) -> str:
        """The text, its label by the model and by people."""
        text = example.text if len(example.text) <= 60 else f"{example.text[:57]}…"
        share = answer.probabilities[answer.label]
        return f"{text} → {answer.label} ({share:.2f}; right: {example.label})"

    def logits(
        self, model: nn.Module, batch: TextBatch
    ) -> tuple[Float[Tensor, "B K"], Float[Tensor, " B"]]:
        """The logits, and what the head adds to the loss."""
        aspects = (
            batch.aspects if self.recipe.settings(ClassifierConfig).pooling == "aspect" else None
        )
        reading = {} if batch.parts is None else {"parts": batch.parts}
        logits, penalty = model(
            batch.ids, batch.lengths, aspects=aspects, return_penalty=True, **reading
        )
        return logits.float(), penalty

    def _sizes(self) -> dict[str, int]:
        """How many ids there are, as a reader asks for them."""
        sizes = {"vocab_size": self.tokenizer.vocab_size}
        if isinstance(self.tokenizer, Speller):
            sizes["parts_vocab"] = len(self.tokenizer.grams)
        return sizes

    def _cut(
        self, examples: Sequence[LabelledText]
    ) -> list[tuple[list[int], Int32[Tensor, "N L"] | None]]:
        """Ids of each text's tokens and, where words are read from them, of their parts."""
        texts = [example.text for example in examples]
        if not isinstance(self.tokenizer, Speller):
            return [(ids, None) for ids in self.tokenizer.encode_all(texts)]
        every = map(self.tokenizer.encode, texts)
        return [(spelled.words, spelled.parts) for spelled in every]


def _asked_fields(data: ClassificationData) -> list[Field]:
    names = ("text", *(("aspect",) if data.aspect else ()))
    return [Field.of(data, name) for name in names]
