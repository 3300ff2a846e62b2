"""Pair matching: whether two texts belong together, such as a question and a passage."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

import torch
from torch import nn

from regard.errors import SettingError
from regard.models import Classifier, ClassifierConfig, PairClassifier
from regard.tasks.batches import Batch, Sample
from regard.tasks.drawing import Drawing, words_text
from regard.tasks.labels.baselines import OVERLAP, OverlapClassifier
from regard.tasks.labels.label_task import (
    Fields,
    LabelField,
    LabelPrediction,
    LabelTask,
    Logits,
    TextField,
)
from regard.tasks.overlap import Overlap
from regard.tasks.questions.question_task import LabelledPair, read_matching
from regard.tasks.questions.text_pairs import PairReading, pair_length, pair_model, text_cutter
from regard.tasks.settings.data import PairsData
from regard.tasks.settings.recipe import Recipe
from regard.tasks.tables import length_group, question_word
from regard.text import BadLines
from regard.text.reading.forms import text_suffix
from regard.text.reading.records import Handling

__all__ = ["LabelledPair", "PairMatching", "PairsData"]


class PairMatching(PairReading, LabelTask[LabelledPair]):
    """Pairs of texts to labels.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> pairs = [
        ...     LabelledPair("Is it old?", "It is old.", "match", "a.tsv:1"),
        ...     LabelledPair("Is it old?", "He ran.", "other", "a.tsv:2"),
        ... ]
        >>> recipe = recipe_from_table({"task": "pair_matching", "tokenizer": {"type": "words"}})
        >>> task = PairMatching.learn(recipe, pairs)
        >>> task.labels, [answer.label for answer in task.baselines(pairs, pairs)[OVERLAP]]
        (['match', 'other'], ['match', 'other'])
    """

    unit: ClassVar[str] = "pairs"
    fields: ClassVar[Fields] = {"first": TextField(), "second": TextField(), "label": LabelField()}
    example = LabelledPair
    metrics: ClassVar[Mapping[str, int]] = {"accuracy": 1}
    without_overlap: ClassVar[tuple[str, str]] = ("first", "first texts")
    data: PairsData

    @classmethod
    def read_file(cls, file: Path, data: Any, handling: Handling) -> Sequence[LabelledPair]:
        """The pairs of one file; of SQuAD's layout, each question with another passage, too."""
        if text_suffix(file) != ".json":
            return super().read_file(file, data, handling)
        return list(read_matching(file, handling))

    @classmethod
    def learn(cls, recipe: Recipe, examples: Sequence[LabelledPair]) -> "PairMatching":
        """The task with the labels, tokenizer and word frequencies of training."""
        task = cast(PairMatching, super().learn(recipe, examples))
        if task.data.shared_words:
            model = pair_model(recipe)
            if issubclass(model, PairClassifier) and not model.reads_overlap:
                where = f"where model.type does not read it; got true, {recipe.model_type!r}"
                raise SettingError(f"data.shared_words must be false {where}.")
            task.overlap = Overlap.learn(dict.fromkeys(example.second for example in examples))
        return task

    def build_model(self) -> nn.Module:
        counts, model = {"num_classes": len(self.labels)}, pair_model(self.recipe)
        if self.overlap is not None:
            counts["num_features"] = self.overlap.num_features
        if issubclass(model, PairClassifier):
            return model(self.recipe.model, vocab_size=self.tokenizer.vocab_size, **counts)
        reader = self.build_reader(2 * self.data.max_length + 3)
        return Classifier(self.recipe.settings(ClassifierConfig), reader, **counts)

    def samples(
        self, examples: Sequence[LabelledPair], too_long: BadLines, *, training: bool
    ) -> Iterator[Sample]:
        """Ids of each pair, both texts cut to ``data.max_length``."""
        longest = self.data.max_length
        cut, part = text_cutter(self.tokenizer), slice(longest)
        for example in examples:
            first, second = cut(example.first), cut(example.second)
            size = max(len(first.ids), len(second.ids))
            too_long.add_cut("text", example.where, size=size, longest=longest)
            pair = self.encode_pair(second, first, part=part, paired_part=part)
            numbers = [] if self.overlap is None else self.overlap.features(*self.texts(example))
            yield {**pair, "overlap": numbers, "label": self.number(example)}

    def length(self, sample: Sample) -> int:
        return pair_length(sample)

    def collate(self, encoded: Sequence[Sample], *, generator: object = None) -> Batch:
        batch = self.collate_pairs(encoded)
        for name in ("overlap", "label"):
            batch[name] = torch.tensor([sample[name] for sample in encoded])
        return batch

    def logits(self, model: nn.Module, batch: Batch) -> Logits:
        ids, lengths, reading = batch["ids"], batch["lengths"], batch["reading"]
        overlap = {} if self.overlap is None else {"overlap": batch["overlap"]}
        if issubclass(pair_model(self.recipe), PairClassifier):
            paired = reading["other"], reading["other_lengths"]
            return model(*paired, ids, lengths, **overlap).float(), None
        logits, penalty = model(ids, lengths, return_penalty=True, **reading, **overlap)
        return logits.float(), penalty

    def more_baselines(
        self, train: Sequence[LabelledPair], examples: Sequence[LabelledPair]
    ) -> dict[str, list[str]]:
        """Logistic regression on how many of the first text's words recur in the second."""
        overlap = OverlapClassifier([(e.first, e.second, e.label or "") for e in train])
        return {OVERLAP: overlap.labels([(e.first, e.second) for e in examples])}

    def groups(self, example: LabelledPair) -> Mapping[str, str]:
        """The groups of its question word, and of the length of the second text."""
        length = length_group(len(example.second), of_contexts=True)
        word = question_word(example.first)
        return {"question word": word, "characters of the second text": length}

    def draw(
        self, model: nn.Module, example: LabelledPair, encoded: Sample, answer: LabelPrediction
    ) -> Drawing:
        """Both texts, and their attention to each other."""
        first = self.drawn_text(example.first, len(encoded["other"]))
        second = self.drawn_text(example.second, len(encoded["ids"]))
        return Drawing(
            text=words_text((example.first, example.second), "\n"),
            output=words_text([answer.label]),
            cross_attentions=self.cross_attentions(("second", second), ("first", first)),
            is_pair=True,
            prediction=self.prediction(answer),
        )

    def brief(self, example: LabelledPair) -> str:
        """Both texts."""
        second = example.second if len(example.second) <= 80 else f"{example.second[:77]}…"
        return f"{example.first} / {second}"
