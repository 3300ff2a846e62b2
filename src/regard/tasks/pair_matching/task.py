"""Pair matching: whether two texts belong together, such as a question and a passage."""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import ClassVar, TypedDict

import numpy as np
import torch
from jaxtyping import Float, Int, Int64
from torch import Tensor, nn

from regard.config import JsonValue
from regard.errors import DataError
from regard.models import Classifier, ClassifierConfig, PairClassifier
from regard.tasks.baselines.word_overlap import WordOverlap
from regard.tasks.checking import CheckedExample
from regard.tasks.held_out import hold_out_texts, valid_share
from regard.tasks.labels import (
    LabelPrediction,
    LabelTask,
    SavedLabels,
    certain,
    learn_labels,
    most_frequent,
    number_of,
    tell_labels,
)
from regard.tasks.pair_matching.settings import PairsData
from regard.tasks.recipe import Recipe, tell_pieces
from regard.tasks.showing import Said, Shown, ShownText, by_share
from regard.tasks.tables import by_group, confusion_table, label_table, length_group, question_word
from regard.tasks.task import Table
from regard.tasks.text_pairs import (
    EncodedPair,
    PairBatch,
    build_reader,
    collate_pairs,
    crossings,
    encode_pair,
    pair_length,
    pair_model,
    text_cutter,
)
from regard.text import (
    BadLines,
    Tokenizer,
    TokenizerConfig,
    load_tokenizer,
    normalize,
    train_tokenizer,
)
from regard.text.files import read_kept, write_plain
from regard.text.lines import text_suffix
from regard.text.questions import Question, read_questions
from regard.text.records import Handling, member, read_records, usable
from regard.text.tables import Field

MATCH, OTHER = "match", "other"
_FILE = "labels.json"


@dataclass(frozen=True, slots=True)
class LabelledPair:
    r"""Two texts and how they stand to each other.

    Attributes:
        first: Normalised.
        second: Normalised.
        label: None where it is asked for.
        where: Where it was read.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "pairs.tsv"
        >>> _ = path.write_text("He sleeps.\tHe is awake.\tcontradiction\n", encoding="utf-8")
        >>> recipe = Recipe(task="pair_matching", data=PairsData(train=str(path)))
        >>> (pair,) = PairMatching.read(recipe, "train")
        >>> pair.first, pair.second, pair.label
        ('He sleeps.', 'He is awake.', 'contradiction')
    """

    first: str
    second: str
    label: str | None
    where: str


@dataclass(frozen=True, slots=True)
class LabelledIds:
    """A pair as ids.

    Attributes:
        pair: The second text beside the first.
        label: The label's number; −1 where it is not known.
    """

    pair: EncodedPair
    label: int


@dataclass(frozen=True, slots=True, eq=False)
class LabelledBatch:
    """Padded pairs with their labels.

    Attributes:
        pairs: What the model reads.
        labels: The labels' numbers; −1 where not known.
    """

    pairs: PairBatch
    labels: Int[Tensor, " B"]


class _PairLabels(TypedDict):
    """Contents of the task's file."""

    labels: SavedLabels


class PairMatching(LabelTask[LabelledPair, LabelledIds, LabelledBatch]):
    """Pairs of texts to labels.

    Args:
        recipe: Whose settings hold.
        tokenizer: Learned from the training texts.
        labels: In order of their numbers.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> pairs = [
        ...     LabelledPair("Is it old?", "It is old.", "match", "a.tsv:1"),
        ...     LabelledPair("Is it old?", "He ran.", "other", "a.tsv:2"),
        ... ]
        >>> recipe = recipe_from_table({"task": "pair_matching", "tokenizer": {"type": "words"}})
        >>> task = PairMatching.learn(recipe, pairs)
        >>> task.labels, [answer.label for answer in task.baselines(pairs, pairs)["word overlap"]]
        (['match', 'other'], ['match', 'other'])
    """

    unit: ClassVar[str] = "pairs"
    counted = "pairs"
    metrics: ClassVar[Mapping[str, int]] = {"accuracy": 1}

    def __init__(self, recipe: Recipe, tokenizer: Tokenizer, labels: Sequence[str]) -> None:
        self.recipe, self.tokenizer, self.labels = recipe, tokenizer, list(labels)
        self.data = recipe.settings(PairsData)

    @classmethod
    def read(
        cls, recipe: Recipe, split: str, *, bad_lines: BadLines | None = None
    ) -> list[LabelledPair]:
        """The pairs of a split; none if the recipe names no file."""
        return [
            pair
            for file in recipe.files(split)
            for pair in _pairs(file, recipe.settings(PairsData), bad_lines)
        ]

    @classmethod
    def hold_out(
        cls, recipe: Recipe, examples: Sequence[LabelledPair]
    ) -> tuple[list[LabelledPair], list[LabelledPair]]:
        """The pairs to train on and those to validate on, with other first texts."""
        share = valid_share(recipe)
        return hold_out_texts(examples, attrgetter("first"), unit="first texts", share=share)

    @staticmethod
    def subject(example: LabelledPair) -> str:
        """The first text."""
        return example.first

    @staticmethod
    def checked(example: LabelledPair) -> CheckedExample:
        """Both texts and their label."""
        return CheckedExample(
            (example.first, example.second), (example.label or "",), example.where
        )

    @classmethod
    def learn(cls, recipe: Recipe, examples: Sequence[LabelledPair]) -> "PairMatching":
        """The task with the tokenizer and labels of the training pairs.

        Raises:
            DataError: There are fewer than two labels.
        """
        labels = learn_labels(example.label for example in examples)
        texts = dict.fromkeys(text for e in examples for text in (e.first, e.second))
        return cls(recipe, train_tokenizer(texts, recipe.settings(TokenizerConfig)), labels)

    @classmethod
    def load(cls, recipe: Recipe, folder: Path) -> "PairMatching":
        """The task with what ``save`` wrote."""
        labels = read_kept(folder, _FILE, _PairLabels)["labels"]
        return cls(recipe, load_tokenizer(folder / "text"), labels)

    def save(self, folder: Path) -> None:
        """Write the tokenizer and the labels."""
        self.tokenizer.save(folder / "text")
        write_plain(folder, {"labels": self.labels}, _FILE)

    def build_model(self) -> nn.Module:
        """The recipe's model with new weights."""
        sizes = {"vocab_size": self.tokenizer.vocab_size}
        model = pair_model(self.recipe)
        if issubclass(model, PairClassifier):
            return model(self.recipe.model, **sizes, num_classes=len(self.labels))
        longest = 2 * self.data.max_length + 3
        reader = build_reader(self.recipe, **sizes, longest=longest)
        return Classifier(
            self.recipe.settings(ClassifierConfig), reader, num_classes=len(self.labels)
        )

    def facts(self) -> list[str]:
        """Describe the vocabulary and labels learned from the text, in lines."""
        return [
            tell_pieces(self.recipe, self.tokenizer.vocab_size),
            tell_labels(self.labels),
        ]

    def asked_fields(self, *, with_answers: bool = False) -> Sequence[Field]:
        """Both texts."""
        data = self.recipe.settings(PairsData)
        return [Field.of(data, "first"), Field.of(data, "second")]

    def request(self, record: str | Mapping[str, JsonValue], where: str) -> LabelledPair:
        """The pair of a line, with a tab between its texts, or of a JSON record.

        Raises:
            DataError: A text is missing.
        """
        if isinstance(record, str):
            first, _, second = record.partition("\t")
            record = {"first": first, "second": second}
        texts = []
        for field in self.asked_fields():
            text, name = member(record, field), field.name
            if not isinstance(text, str) or not normalize(text):
                raise DataError(
                    f"{where}: {name} must be text; got {text!r}. A line holds both texts and a "
                    "tab between them, a JSON record first and second."
                )
            texts.append(normalize(text))
        return LabelledPair(texts[0], texts[1], None, where)

    def encode(
        self,
        examples: Iterable[LabelledPair],
        *,
        training: bool = False,
        too_long: BadLines | None = None,
    ) -> list[LabelledIds]:
        """Ids of each pair, both texts cut to ``data.max_length``.

        Raises:
            DataError: A label was not met in training.
        """
        longest, too_long = self.data.max_length, too_long or BadLines()
        cut = text_cutter(self.tokenizer)
        found = []
        for example in examples:
            first, second = cut(example.first), cut(example.second)
            most = max(len(first.ids), len(second.ids))
            too_long.add_cut("text", example.where, size=most, longest=longest)
            part = slice(longest)
            pair = encode_pair(second, first, self.recipe, kept=part, other_kept=part)
            number = number_of(example.label, self.labels, example.where)
            found.append(LabelledIds(pair, number))
        return found

    def lengths(self, encoded: Sequence[LabelledIds]) -> Int64[np.ndarray, " n"]:
        """Tokens of both texts."""
        return np.array([pair_length(each.pair) for each in encoded], dtype=np.int64)

    def collate(
        self, encoded: Sequence[LabelledIds], *, generator: torch.Generator | None = None
    ) -> LabelledBatch:
        """A padded batch; with a generator, nothing else."""
        pairs = collate_pairs([each.pair for each in encoded], self.recipe)
        return LabelledBatch(pairs, torch.tensor([each.label for each in encoded]))

    def baselines(
        self, train: Sequence[LabelledPair], examples: Sequence[LabelledPair]
    ) -> dict[str, list[LabelPrediction]]:
        """The most frequent label, and for two labels, how many of the first text's words recur."""
        most = most_frequent(example.label for example in train)
        found = {f"always {most}": [certain(most)] * len(examples)}
        if len(self.labels) == 2:
            overlap = WordOverlap([(e.first, e.second, e.label or "") for e in train])
            found["word overlap"] = [certain(overlap.label(e.first, e.second)) for e in examples]
        return found

    def tables(
        self, answers: Sequence[LabelPrediction], examples: Sequence[LabelledPair]
    ) -> list[Table]:
        """By label, by question word, by the length of the second text, what was taken for what."""
        given = [answer.label for answer in answers]
        right = [example.label or "" for example in examples]
        scores = {"accuracy": [float(a == b) for a, b in zip(given, right, strict=True)]}
        lengths = [length_group(len(example.second)) for example in examples]
        return [
            label_table(given, right),
            by_group("question word", [question_word(e.first) for e in examples], scores),
            by_group("characters of the second text", lengths, scores, ordered=True),
            confusion_table(given, right),
        ]

    def shown(self, example: LabelledPair, encoded: LabelledIds, answer: LabelPrediction) -> Shown:
        """Both texts, and what they look at in each other."""

        def read(text: str, ids: Sequence[int]) -> ShownText:
            return ShownText.of_pieces(text, self.tokenizer.pieces(text)[: len(ids)])

        return Shown(
            text=ShownText.of_words((example.first, example.second), "\n"),
            output=ShownText.of_words([answer.label]),
            crossings=crossings(
                self.recipe,
                ("second", read(example.second, encoded.pair.ids)),
                ("first", read(example.first, encoded.pair.other)),
            ),
        )

    def said(
        self, model: nn.Module, example: LabelledPair, encoded: LabelledIds, answer: LabelPrediction
    ) -> Said:
        """How they stand to each other."""
        return Said(labels=by_share(answer.probabilities.items()))

    def show(self, example: LabelledPair, answer: LabelPrediction) -> str:
        """Both texts, their label by the model and the right one."""
        second = example.second if len(example.second) <= 80 else f"{example.second[:77]}…"
        share = answer.probabilities[answer.label]
        return f"{example.first} / {second} → {answer.label} ({share:.2f}; right: {example.label})"

    def logits(
        self, model: nn.Module, batch: LabelledBatch
    ) -> tuple[Float[Tensor, "B K"], Float[Tensor, " B"] | None]:
        """The logits, and what the head adds to the loss, where there is a head."""
        pairs = batch.pairs
        if issubclass(pair_model(self.recipe), PairClassifier):
            other, lengths = pairs.reading["other"], pairs.reading["other_lengths"]
            return model(other, lengths, pairs.ids, pairs.lengths).float(), None
        logits, penalty = model(pairs.ids, pairs.lengths, return_penalty=True, **pairs.reading)
        return logits.float(), penalty


def _pairs(file: Path, data: PairsData, bad_lines: BadLines | None) -> Iterator[LabelledPair]:
    handling: Handling = {"on_bad_line": data.on_bad_line, "bad_lines": bad_lines}
    if text_suffix(file) != ".json":
        fields = [Field.of(data, name) for name in ("first", "second", "label")]
        for found, where in read_records(file, fields, **handling):
            texts = normalize(found["first"]), normalize(found["second"])
            yield LabelledPair(*texts, found["label"].strip(), where)
        return
    questions = list(read_questions(file, spans=False, **handling))
    passages: dict[str, dict[str, None]] = {}
    for question in questions:
        passages.setdefault(question.article, {})[question.context] = None

    def make(question: Question) -> list[LabelledPair]:
        return _with_another(question, list(passages[question.article]))

    yield from chain.from_iterable(usable(questions, make, "pairs", **handling))


def _with_another(question: Question, passages: Sequence[str]) -> list[LabelledPair]:
    """The question with its own passage and with another of the article, always the same one."""
    others = [passage for passage in passages if passage != question.context]
    if not others:
        raise DataError(
            f"{question.where}: its article must have another passage; got none. Leave it out: "
            "on_bad_line = skip."
        )
    other = random.Random(f"{question.text}\0{question.context}").choice(others)
    return [
        LabelledPair(question.text, normalize(passage), label, question.where)
        for passage, label in ((question.context, MATCH), (other, OTHER))
    ]
