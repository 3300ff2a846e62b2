"""Classification: one label for a text, such as its polarity; or for a text and an aspect of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import torch
from torch import nn

from regard.models import READERS, Classifier, ClassifierConfig
from regard.tasks.batches import Batch, Sample, dropped
from regard.tasks.drawing import Drawing, Shade, pieces_text, words_text
from regard.tasks.labels.baselines import NaiveBayes
from regard.tasks.labels.label_task import (
    CategoryField,
    Fields,
    LabelField,
    LabelledText,
    LabelPrediction,
    LabelTask,
    Logits,
    TextField,
)
from regard.tasks.labels.word_parts import Speller, cut_texts
from regard.tasks.settings.data import ClassificationData
from regard.tasks.settings.recipe import check_framed_positions
from regard.tasks.tables import length_group
from regard.text import BOS_ID, EOS_ID, PAD_ID, BadLines, Tokenizer, TokenizerConfig
from regard.viewer import Importance

__all__ = ["Classification", "ClassificationData", "LabelledText"]

ODDS = "the more the odds of “{label}” fall without it"
# The attention of the pooling's query, where the pooling has one.
POOLING = Shade(
    kind="cross", layer=None, query=0, measure="the more the query of the pooling looks at it"
)


class Classification(LabelTask[LabelledText]):
    """Texts to labels.

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

    fields: ClassVar[Fields] = {
        "text": TextField(),
        "aspect": CategoryField("aspects"),
        "label": LabelField(),
    }
    learned = ("labels", "aspects")
    data: ClassificationData
    tokenizer: Tokenizer | Speller
    aspects: list[str]

    def build_model(self) -> nn.Module:
        head = self.recipe.settings(ClassifierConfig)
        sizes: dict[str, int] = {}
        if isinstance(self.tokenizer, Speller):
            sizes["parts_vocab"] = len(self.tokenizer.grams)
        reader = READERS[self.recipe.model_type].load()(
            self.recipe.model,
            vocab_size=self.tokenizer.vocab_size,
            **(sizes if getattr(self.recipe.model, "parts", "none") != "none" else {}),
        )
        check_framed_positions(
            reader.max_length, self.data.max_length, self.recipe.settings(TokenizerConfig)
        )
        counts = {"num_classes": len(self.labels), "num_aspects": len(self.aspects) + 1}
        return Classifier(head, reader, **counts, **sizes)

    def initialise(self, model: nn.Module, samples: Sequence[Sample]) -> None:
        if isinstance(model, Classifier) and model.ngrams is not None:
            names = ("parts", "label", "aspect")
            model.ngrams.initialise(*([sample[name] for sample in samples] for name in names))

    def samples(
        self, examples: Sequence[LabelledText], too_long: BadLines, *, training: bool
    ) -> Iterator[Sample]:
        """Ids of each text, cut to ``data.max_length``, between its begin, if any, and its end."""
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
        """The batch with a fraction of its words unknown, and of their parts."""
        rates = {"ids": self.data.drop_words, "parts": self.data.drop_parts}
        unknown = {
            name: dropped(batch[name], batch[name] != PAD_ID, rate, generator)
            for name, rate in rates.items()
            if rate and name in batch
        }
        return {**batch, **unknown}

    def logits(self, model: nn.Module, batch: Batch) -> Logits:
        reading = {"parts": batch["parts"]} if "parts" in batch else {}
        if self.recipe.settings(ClassifierConfig).pooling == "aspect":
            reading["aspects"] = batch["aspect"]
        logits, penalty = model(batch["ids"], batch["lengths"], return_penalty=True, **reading)
        return logits.float(), penalty

    def more_baselines(
        self, train: Sequence[LabelledText], examples: Sequence[LabelledText]
    ) -> dict[str, list[str]]:
        """Naive Bayes on n-grams."""
        bayes = NaiveBayes([(example.text, example.label or "") for example in train])
        return {"naive Bayes": [bayes.label(example.text) for example in examples]}

    def groups(self, example: LabelledText) -> Mapping[str, str]:
        """By length."""
        return {"length in characters": length_group(len(example.text))}

    def draw(
        self, model: nn.Module, example: LabelledText, encoded: Sample, answer: LabelPrediction
    ) -> Drawing:
        """The tokens that are read; the label's attention to each, or its odds without each."""
        is_framed = "parts" not in encoded
        begins = is_framed and self.recipe.settings(TokenizerConfig).begins
        pieces = self.tokenizer.pieces(example.text)[: len(encoded["ids"]) - is_framed - begins]
        prediction, label = self.prediction(answer), answer.label
        losses = self.leave_one_out(model, encoded, answer, lambda each: each.log_odds(label))
        if losses:
            measure = ODDS.format(label=label)
            prediction = replace(prediction, values=losses, measure=measure)
        return Drawing(
            text=pieces_text(example.text, pieces, begins=begins, ends=is_framed),
            output=words_text([label]),
            prediction=prediction,
            shade=POOLING,
            importances=(Importance(method="leave one out", values=losses),) if losses else (),
        )
