"""Classification: one label for a text, such as its polarity; or for a text and an aspect of it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from regard.models import READERS, Classifier, ClassifierConfig
from regard.progress import progress
from regard.tasks.batches import Batch, Sample, dropped
from regard.tasks.drawing import Drawing, Shade, pieces_text, words_text
from regard.tasks.labels.baselines import TFIDF, TfidfClassifier
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
from regard.tasks.labels.logistic_regression import fit
from regard.tasks.labels.text_ngrams import TextNgrams
from regard.tasks.labels.word_parts import Speller, cut_texts
from regard.tasks.one_pass_task import without_id
from regard.tasks.settings.data import ClassificationData
from regard.tasks.settings.recipe import Recipe, check_framed_positions
from regard.tasks.tables import length_group
from regard.text import BOS_ID, EOS_ID, PAD_ID, BadLines, Tokenizer, TokenizerConfig
from regard.viewer import Importance

__all__ = ["Classification", "ClassificationData", "LabelledText"]

ODDS = "the more the odds of “{label}” fall without it"
NGRAM_SCORES = "the more the n-grams that end here speak for “{label}”"
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
    ngrams: TextNgrams | None = None  # where ``head.ngram_scores`` is set

    @classmethod
    def learn(cls, recipe: Recipe, examples: Sequence[LabelledText]) -> "Classification":
        """The task with the labels, the tokenizer and the n-grams of training."""
        task = cast("Classification", super().learn(recipe, examples))
        if recipe.settings(ClassifierConfig).ngram_scores:
            task.ngrams = TextNgrams.learn([example.text for example in examples])
        return task

    @classmethod
    def load(cls, recipe: Recipe, folder: Path) -> "Classification":
        task = cast("Classification", super().load(recipe, folder))
        if recipe.settings(ClassifierConfig).ngram_scores:
            task.ngrams = TextNgrams.load(folder)
        return task

    def save(self, folder: Path) -> None:
        super().save(folder)
        if self.ngrams is not None:
            self.ngrams.save(folder)

    def describe(self) -> list[str]:
        lines = super().describe()
        if self.ngrams is not None:
            lines.append(f"{len(self.ngrams):,} n-grams, scored by logistic regression")
        return lines

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
        num_ngrams = 0 if self.ngrams is None else len(self.ngrams)
        return Classifier(head, reader, **counts, num_ngrams=num_ngrams)

    def initialise(self, model: nn.Module, samples: Sequence[Sample]) -> None:
        """Fit the scores of n-grams, where the model has them."""
        if not isinstance(model, Classifier) or model.ngrams is None or self.ngrams is None:
            return
        with progress("logistic regression on n-grams"):
            rows = [(sample["ngrams"] - 1, sample["ngram_values"]) for sample in samples]
            inputs = self.ngrams.inputs(rows)
            labels = torch.tensor([sample["label"] for sample in samples])
            fitted = fit(inputs, labels, len(self.labels))
        model.ngrams.set(fitted.weights, fitted.bias)

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
            if self.ngrams is not None:  # of all the text; 0 is padding
                numbers_of_ngrams, sample["ngram_values"] = self.ngrams.tfidf(example.text)
                sample["ngrams"] = numbers_of_ngrams + 1
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

    def inputs(self, batch: Mapping[str, Any]) -> dict[str, Tensor]:
        """The part of a batch that the model takes, by the names of its arguments."""
        names = ("ids", "lengths", "parts", "ngrams", "ngram_values")
        inputs: dict[str, Tensor] = {name: batch[name] for name in names if name in batch}
        if self.recipe.settings(ClassifierConfig).pooling == "aspect":
            inputs["aspects"] = batch["aspect"]
        return inputs

    def logits(self, model: nn.Module, batch: Batch) -> Logits:
        inputs = self.inputs(batch)
        ids, lengths = inputs.pop("ids"), inputs.pop("lengths")
        logits, penalty = model(ids, lengths, return_penalty=True, **inputs)
        return logits.float(), penalty

    def more_baselines(
        self, train: Sequence[LabelledText], examples: Sequence[LabelledText]
    ) -> dict[str, list[str]]:
        """Logistic regression on TF-IDF."""
        linear = TfidfClassifier([(example.text, example.label or "") for example in train])
        return {TFIDF: linear.labels([example.text for example in examples])}

    def groups(self, example: LabelledText) -> Mapping[str, str]:
        """The group of its length."""
        return {"length in characters": length_group(len(example.text))}

    def draw(
        self, model: nn.Module, example: LabelledText, encoded: Sample, answer: LabelPrediction
    ) -> Drawing:
        """The tokens that are read; the label's attention to each, or its odds without each."""
        is_framed = "parts" not in encoded
        begins = is_framed and self.recipe.settings(TokenizerConfig).begins
        pieces = self.tokenizer.pieces(example.text)[: len(encoded["ids"]) - is_framed - begins]
        prediction, label = self.prediction(answer), answer.label
        ngrams: list[list[int]] = [[] for _ in encoded["ids"]]
        if self.ngrams is not None:
            ngrams[begins : begins + len(pieces)] = self.ngrams.of_pieces(example.text, pieces)

        def without(sample: Sample, index: int) -> Sample:
            shorter = without_id(sample, index)
            if self.ngrams is not None:
                left = ~np.isin(sample["ngrams"], [number + 1 for number in ngrams[index]])
                for name in ("ngrams", "ngram_values"):
                    shorter[name] = sample[name][left]
            return shorter

        measures = {
            NGRAM_SCORES.format(label=label): self._ngram_scores(model, encoded, ngrams, label),
            ODDS.format(label=label): self.leave_one_out(
                model, encoded, answer, lambda ablated: ablated.log_odds(label), without=without
            ),
        }
        for measure, values in measures.items():
            if values:
                prediction = replace(prediction, values=values, measure=measure)
        importances = zip(("scores of n-grams", "leave one out"), measures.values(), strict=True)
        return Drawing(
            text=pieces_text(example.text, pieces, begins=begins, ends=is_framed),
            output=words_text([label]),
            prediction=prediction,
            shade=POOLING,
            importances=tuple(
                Importance(method=method, values=values) for method, values in importances if values
            ),
        )

    def _ngram_scores(
        self, model: nn.Module, encoded: Sample, ngrams: Sequence[Sequence[int]], label: str
    ) -> tuple[float, ...]:
        """Terms that the n-grams that end in each token add to the log-odds of a label."""
        if not isinstance(model, Classifier) or model.ngrams is None:
            return ()
        device = model.ngrams.weights.device
        ids = torch.from_numpy(encoded["ngrams"]).to(device)
        values = torch.from_numpy(encoded["ngram_values"]).to(device)
        terms = model.ngrams.log_odds(ids, values, self.labels.index(label)).tolist()
        term_of = dict(zip(encoded["ngrams"].tolist(), terms, strict=True))
        return tuple(math.fsum(term_of[number + 1] for number in numbers) for numbers in ngrams)
