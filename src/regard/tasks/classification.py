"""Classification: one label for a text, such as its polarity; or for a text and an aspect of it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import torch
from torch import nn

from regard.errors import DataError
from regard.models import READERS, Classifier, ClassifierConfig
from regard.tasks.baselines.naive_bayes import NaiveBayes
from regard.tasks.batches import Batch, Sample
from regard.tasks.drawing import Drawing, Shade, pieces_text, words_text
from regard.tasks.label_task import Category, Fields, Label, LabelledText, LabelTask, Logits, Text
from regard.tasks.labels import LabelPrediction, learn_labels
from regard.tasks.recipe import Recipe, check_framed_positions
from regard.tasks.settings import ClassificationData
from regard.tasks.speller import Speller, cut_texts
from regard.tasks.tables import length_table
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
    train_tokenizer,
)
from regard.viewer import Importance

__all__ = ["Classification", "ClassificationData", "LabelledText"]

# What a query of the pooling looks at, where the pooling has one.
_POOLING = Shade(
    kind="cross", layer=0, query=0, measure="the more the query of the pooling looks at it"
)


class Classification(LabelTask[LabelledText]):
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
        >>> task.labels, batch["ids"].shape, batch["lengths"], batch["label"]
        (['+', '-'], torch.Size([2, 3]), tensor([3, 2]), tensor([0, 1]))
    """

    fields: ClassVar[Fields] = {"text": Text(), "aspect": Category(), "label": Label()}
    learned = ("labels", "aspects")
    data: ClassificationData
    tokenizer: Tokenizer | Speller
    aspects: list[str]

    @classmethod
    def learn(cls, recipe: Recipe, examples: Sequence[LabelledText]) -> "Classification":
        """The task with the tokenizer, labels and aspects of the training examples.

        Raises:
            DataError: There are fewer than two labels, or nearly as many as examples.
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
        texts, settings = [example.text for example in examples], recipe.settings(TokenizerConfig)
        tokenizer: Tokenizer | Speller
        if reads_parts(recipe.model):
            tokenizer = Speller.learn(texts, settings, recipe.settings(ClassificationData).parts)
        else:
            tokenizer = train_tokenizer(texts, settings)
        return cls(recipe, tokenizer, labels=labels, aspects=aspects)

    @classmethod
    def load_tokenizer(cls, recipe: Recipe, folder: Path) -> Tokenizer | Speller:
        """The tokenizer, or the speller where words are read from parts."""
        return Speller.load(folder) if reads_parts(recipe.model) else load_tokenizer(folder)

    def build_model(self) -> nn.Module:
        """The recipe's classifier with new weights."""
        sizes = {"vocab_size": self.tokenizer.vocab_size}
        if isinstance(self.tokenizer, Speller):
            sizes["parts_vocab"] = len(self.tokenizer.grams)
        reader = READERS[self.recipe.model_type].load()(self.recipe.model, **sizes)
        check_framed_positions(reader, self.data.max_length, self.recipe.settings(TokenizerConfig))
        counts = {"num_classes": len(self.labels), "num_aspects": len(self.aspects) + 1}
        return Classifier(self.recipe.settings(ClassifierConfig), reader, **counts)

    def facts(self) -> list[str]:
        """Describe the vocabulary, labels and aspects learned from the text, in lines."""
        names = ", ".join(self.aspects[:10])
        aspects = [f"{len(self.aspects)} aspects: {names}"] if self.aspects else []
        return [*super().facts(), *aspects]

    def samples(
        self, examples: Sequence[LabelledText], too_long: BadLines, *, training: bool
    ) -> Iterator[Sample]:
        """Ids of each text, cut to ``data.max_length``, between its begin, if any, and its end.

        Raises:
            DataError: A label was not met in training.
        """
        longest = self.data.max_length
        begin = [BOS_ID] if self.recipe.settings(TokenizerConfig).begins else []
        numbers = {aspect: number for number, aspect in enumerate(self.aspects, 1)}
        cut = cut_texts(self.tokenizer, [example.text for example in examples])
        for example, (ids, parts) in zip(examples, cut, strict=True):
            too_long.add_cut("text", example.where, size=len(ids), longest=longest)
            sample: Sample = {
                "ids": [*begin, *ids[:longest], EOS_ID] if parts is None else ids[:longest],
                "aspect": numbers.get(example.aspect or "", 0),
                "label": self.number(example),
            }
            yield sample if parts is None else {**sample, "parts": parts[:longest]}

    def noisy(self, batch: Batch, generator: torch.Generator) -> Batch:
        """The batch with a share of its words unknown; their parts stay."""
        ids, share = batch["ids"], self.data.drop_words
        if not share:
            return batch
        drawn = torch.rand(ids.shape, generator=generator) < share
        return {**batch, "ids": ids.masked_fill(drawn & (ids != PAD_ID), UNK_ID)}

    def logits(self, model: nn.Module, batch: Batch) -> Logits:
        """The logits, and what the head adds to the loss."""
        by_aspect = self.recipe.settings(ClassifierConfig).pooling == "aspect"
        reading = {"parts": batch["parts"]} if "parts" in batch else {}
        aspects = batch["aspect"] if by_aspect else None
        logits, penalty = model(
            batch["ids"], batch["lengths"], aspects=aspects, return_penalty=True, **reading
        )
        return logits.float(), penalty

    def joined(self, answers: Sequence[LabelPrediction]) -> LabelPrediction:
        """One answer of several to the same text: the mean of their probabilities."""
        shares = {
            label: sum(answer.probabilities[label] for answer in answers) / len(answers)
            for label in self.labels
        }
        return LabelPrediction(max(self.labels, key=shares.__getitem__), shares)

    def more_baselines(
        self, train: Sequence[LabelledText], examples: Sequence[LabelledText]
    ) -> dict[str, list[str]]:
        """Naive Bayes on n-grams."""
        bayes = NaiveBayes([(example.text, example.label or "") for example in train])
        return {"naive Bayes": [bayes.label(example.text) for example in examples]}

    def groupings(
        self, given: Sequence[str], right: Sequence[str], examples: Sequence[LabelledText]
    ) -> Iterator[Table]:
        """By length."""
        yield length_table([len(example.text) for example in examples], given, right)

    def draw(
        self, model: nn.Module, example: LabelledText, encoded: Sample, answer: LabelPrediction
    ) -> Drawing:
        """The tokens that are read; the label's attention to each, or its odds without each."""
        is_framed = "parts" not in encoded
        begins = is_framed and self.recipe.settings(TokenizerConfig).begins
        pieces = self.tokenizer.pieces(example.text)[: len(encoded["ids"]) - is_framed - begins]
        prediction, label = self.prediction(answer), answer.label
        losses = self.leave_one_out(model, encoded, answer, lambda each: _log_odds(each, label))
        if losses:
            measure = f"the more the odds of “{label}” fall without it"
            prediction = replace(prediction, values=losses, measure=measure)
        return Drawing(
            text=pieces_text(example.text, pieces, begins=begins, ends=is_framed),
            output=words_text([label]),
            prediction=prediction,
            shade=_POOLING,
            importances=(Importance(method="leave one out", values=losses),) if losses else (),
        )


def _log_odds(answer: LabelPrediction, label: str) -> float:
    share = min(max(answer.probabilities[label], 1e-7), 1 - 1e-7)
    return math.log(share / (1 - share))
