"""Pair matching: whether two texts belong together, such as a question and a passage."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import ClassVar

import torch
from torch import nn

from regard.errors import DataError
from regard.models import Classifier, ClassifierConfig, PairClassifier
from regard.tasks.baselines.word_overlap import WordOverlap
from regard.tasks.batches import Batch, Sample
from regard.tasks.drawing import Drawing, pieces_text, words_text
from regard.tasks.held_out import hold_out_texts, valid_share
from regard.tasks.label_task import Fields, Label, LabelTask, Logits
from regard.tasks.label_task import Text as TextField
from regard.tasks.labels import LabelPrediction
from regard.tasks.recipe import Recipe
from regard.tasks.settings import PairsData
from regard.tasks.tables import by_group, length_group, question_word
from regard.tasks.task import Table
from regard.tasks.text_pairs import (
    build_reader,
    collate_pairs,
    cross_attentions,
    encode_pair,
    pair_length,
    pair_model,
    text_cutter,
)
from regard.text import BadLines, Tokenizer, normalize
from regard.text.reading.lines import text_suffix
from regard.text.reading.questions import Question, read_questions
from regard.text.reading.records import Handling, usable
from regard.viewer import Text

__all__ = ["LabelledPair", "PairMatching", "PairsData"]

MATCH, OTHER = "match", "other"


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


class PairMatching(LabelTask[LabelledPair]):
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
    fields: ClassVar[Fields] = {"first": TextField(), "second": TextField(), "label": Label()}
    example = LabelledPair
    metrics: ClassVar[Mapping[str, int]] = {"accuracy": 1}
    data: PairsData
    tokenizer: Tokenizer

    @classmethod
    def read_file(
        cls, file: Path, data: PairsData, bad_lines: BadLines | None
    ) -> Sequence[LabelledPair]:
        """The pairs of one file; of SQuAD's layout, each question with another passage, too."""
        if text_suffix(file) != ".json":
            return super().read_file(file, data, bad_lines)
        handling: Handling = {"on_bad_line": data.on_bad_line, "bad_lines": bad_lines}
        questions = list(read_questions(file, spans=False, **handling))
        passages: dict[str, dict[str, None]] = {}
        for question in questions:
            passages.setdefault(question.article, {})[question.context] = None

        def make(question: Question) -> list[LabelledPair]:
            return _with_another(question, list(passages[question.article]))

        return list(chain.from_iterable(usable(questions, make, "pairs", **handling)))

    @classmethod
    def hold_out(
        cls, recipe: Recipe, examples: Sequence[LabelledPair]
    ) -> tuple[list[LabelledPair], list[LabelledPair]]:
        """The pairs to train on and those to validate on, with other first texts."""
        share = valid_share(recipe)
        return hold_out_texts(examples, attrgetter("first"), unit="first texts", share=share)

    def build_model(self) -> nn.Module:
        """The recipe's model with new weights."""
        counts = {"num_classes": len(self.labels)}
        sizes, model = {"vocab_size": self.tokenizer.vocab_size}, pair_model(self.recipe)
        if issubclass(model, PairClassifier):
            return model(self.recipe.model, **sizes, **counts)
        reader = build_reader(self.recipe, **sizes, longest=2 * self.data.max_length + 3)
        return Classifier(self.recipe.settings(ClassifierConfig), reader, **counts)

    def samples(
        self, examples: Sequence[LabelledPair], too_long: BadLines, *, training: bool
    ) -> Iterator[Sample]:
        """Ids of each pair, both texts cut to ``data.max_length``.

        Raises:
            DataError: A label was not met in training.
        """
        longest = self.data.max_length
        cut, part = text_cutter(self.tokenizer), slice(longest)
        for example in examples:
            first, second = cut(example.first), cut(example.second)
            size = max(len(first.ids), len(second.ids))
            too_long.add_cut("text", example.where, size=size, longest=longest)
            pair = encode_pair(second, first, self.recipe, kept=part, other_kept=part)
            yield {**pair, "label": self.number(example)}

    def length(self, sample: Sample) -> int:
        """Tokens of both texts."""
        return pair_length(sample)

    def collate(self, encoded: Sequence[Sample], *, generator: object = None) -> Batch:
        """A padded batch; nothing is drawn."""
        labels = torch.tensor([sample["label"] for sample in encoded])
        return {**collate_pairs(encoded, self.recipe), "label": labels}

    def logits(self, model: nn.Module, batch: Batch) -> Logits:
        """The logits, and what the head adds to the loss, where there is a head."""
        ids, lengths, reading = batch["ids"], batch["lengths"], batch["reading"]
        if issubclass(pair_model(self.recipe), PairClassifier):
            return model(reading["other"], reading["other_lengths"], ids, lengths).float(), None
        logits, penalty = model(ids, lengths, return_penalty=True, **reading)
        return logits.float(), penalty

    def more_baselines(
        self, train: Sequence[LabelledPair], examples: Sequence[LabelledPair]
    ) -> dict[str, list[str]]:
        """For two labels, how many of the first text's words recur in the second."""
        if len(self.labels) != 2:
            return {}
        overlap = WordOverlap([(e.first, e.second, e.label or "") for e in train])
        return {"word overlap": [overlap.label(e.first, e.second) for e in examples]}

    def groupings(
        self, given: Sequence[str], right: Sequence[str], examples: Sequence[LabelledPair]
    ) -> Iterator[Table]:
        """By question word, and by the length of the second text."""
        scores = {"accuracy": [float(a == b) for a, b in zip(given, right, strict=True)]}
        yield by_group("question word", [question_word(e.first) for e in examples], scores)
        lengths = [length_group(len(example.second)) for example in examples]
        yield by_group("characters of the second text", lengths, scores, ordered=True)

    def draw(
        self, model: nn.Module, example: LabelledPair, encoded: Sample, answer: LabelPrediction
    ) -> Drawing:
        """Both texts, and their attention to each other."""

        def read(text: str, ids: Sequence[int]) -> Text:
            return pieces_text(text, self.tokenizer.pieces(text)[: len(ids)])

        second = ("second", read(example.second, encoded["ids"]))
        first = ("first", read(example.first, encoded["other"]))
        return Drawing(
            text=words_text((example.first, example.second), "\n"),
            output=words_text([answer.label]),
            cross_attentions=cross_attentions(self.recipe, second, first),
            prediction=self.prediction(answer),
        )

    def brief(self, example: LabelledPair) -> str:
        """Both texts."""
        second = example.second if len(example.second) <= 80 else f"{example.second[:77]}…"
        return f"{example.first} / {second}"


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
