"""Sentence selection: which sentence of a text answers a question, found by a memory network."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from regard.config import JsonValue
from regard.errors import DataError
from regard.models import MemoryNetwork, MemoryNetworkConfig
from regard.tasks.batches import Batch, Sample, boxed
from regard.tasks.drawing import Drawing, Shade, spans_text, words_text
from regard.tasks.one_pass_task import Loss
from regard.tasks.overlap import Overlap
from regard.tasks.questions.question_task import QuestionTask
from regard.tasks.sentence_baselines import SlidingWindow, sentences_of, words_of
from regard.tasks.settings.data import SentencesData
from regard.tasks.settings.recipe import Recipe
from regard.tasks.task import Answer
from regard.text import BadLines
from regard.text.batches import padded
from regard.text.reading.questions import Question
from regard.text.reading.records import Handling
from regard.text.tokenizers.words import Vocabulary

__all__ = ["SentenceSelection", "SentencesData"]

# Attention of the last hop, whose query is the question and the output of the hops before.
_LAST_HOP = Shade(
    kind="cross", layer=None, query=0, measure="the more the question looks at it in the last hop"
)


@dataclass(frozen=True, slots=True)
class SentenceAnswer(Answer):
    """The sentence that answers one question, its start in the text and its probability."""

    sentence: str
    start: int
    probability: float

    @property
    def end(self) -> int:
        """The position after the last character."""
        return self.start + len(self.sentence)

    def text(self) -> str:
        """The sentence in one line."""
        return " ".join(self.sentence.split())

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        span: dict[str, JsonValue] = {"start": self.start, "end": self.end}
        return {"sentence": self.sentence, **span, "probability": round(self.probability, 6)}


class SentenceSelection(QuestionTask[SentenceAnswer]):
    """Questions to sentences of their texts.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> from regard.text.reading.questions import Answer
        >>> asked = Question("Who was old?", "A king was old. He ran.", (Answer("A king", 0),))
        >>> recipe = recipe_from_table({"task": "sentence_selection"})
        >>> task = SentenceSelection.learn(recipe, [asked])
        >>> task.encode([asked])[0]["right"]
        [True, False]
        >>> task.baselines([], [asked])["word overlap"][0].to_dict()
        {'sentence': 'A king was old.', 'start': 0, 'end': 15, 'probability': 1.0}
    """

    metrics: ClassVar[Mapping[str, int]] = {"accuracy": 1}
    main_metric: ClassVar[str] = "accuracy"
    learned = ("words",)
    file = "words.json"
    data: SentencesData
    words: list[str]

    def __init__(self, recipe: Recipe, tokenizer: None = None, *, words: list[str]) -> None:
        super().__init__(recipe, words=words)
        self.vocabulary = Vocabulary(words, buckets=self.data.oov_buckets)

    @classmethod
    def read_file(cls, file: Path, data: Any, handling: Handling) -> Iterable[Question]:
        return (example for example in super().read_file(file, data, handling) if example.answers)

    @classmethod
    def learn(cls, recipe: Recipe, examples: Sequence[Question]) -> "SentenceSelection":
        contexts = dict.fromkeys(e.context for e in examples)
        texts = [*contexts, *(e.text for e in examples)]
        words = (word.text for text in texts for word in words_of(text))
        data = recipe.settings(SentencesData)
        task = cls(recipe, words=Vocabulary.learn(words, min_count=data.min_count).units)
        if data.shared_words:
            task.overlap = _sentence_overlap(contexts)
        return task

    def build_model(self) -> nn.Module:
        config = self.recipe.settings(MemoryNetworkConfig)
        count = 0 if self.overlap is None else self.overlap.num_among
        return MemoryNetwork(config, vocab_size=len(self.vocabulary), num_features=count)

    def describe(self) -> list[str]:
        hops = self.recipe.settings(MemoryNetworkConfig).num_hops
        return [f"{len(self.words):,} words, {hops} hops"]

    def samples(
        self, examples: Sequence[Question], too_long: BadLines, *, training: bool
    ) -> Iterator[Sample]:
        """Ids of the words of each question and of its text's sentences, and which are right.

        DataError if a text has no sentences, or more than the memory has room for; in training it
        is left out.
        """
        most = self.recipe.settings(MemoryNetworkConfig).max_sentences

        @cache
        def cut(context: str) -> tuple[list[tuple[int, int]], list[list[int]]]:
            spans, longest = sentences_of(context), self.data.max_words
            return spans, [self._ids(context[start:end])[:longest] for start, end in spans]

        for example in examples:
            spans, sentences = cut(example.context)
            if not 0 < len(spans) <= most:
                message = (
                    f"{example.where}: the text must have 1 to {most} sentences, as many as "
                    f"model.max_sentences; got {len(spans)}. Raise it, or cut the text up."
                )
                if not training:
                    raise DataError(message)
                too_long.add("sentences", message)
                continue
            right = [
                any(start <= answer.start < end for answer in example.answers)
                for start, end in spans
            ]
            if any(right) or not training:  # an answer may be between two sentences
                read = {"question": self._ids(example.text) or [1], "sentences": sentences}
                overlap = self._overlap(example, spans)
                location = {"spans": spans, "context": example.context}
                yield {**read, **location, "overlap": overlap, "right": right}

    def length(self, sample: Sample) -> int:
        sentences = sample["sentences"]
        return len(sentences) * max(map(len, sentences)) + len(sample["question"])

    def collate(self, encoded: Sequence[Sample], *, generator: Generator | None = None) -> Batch:
        return {
            "sentences": boxed([padded(sample["sentences"]) for sample in encoded]),
            "counts": torch.tensor([len(sample["sentences"]) for sample in encoded]),
            "question": padded([sample["question"] for sample in encoded]),
            "overlap": pad_sequence([sample["overlap"] for sample in encoded], batch_first=True),
            "right": padded([sample["right"] for sample in encoded], False).bool(),
            "samples": list(encoded),
        }

    def batch_loss(self, model: nn.Module, batch: Batch, smoothing: float) -> Loss:
        log_probs, right = _logits(model, batch).log_softmax(-1), batch["right"]
        is_labelled = right.any(-1)
        of_right = log_probs.masked_fill(~right, -torch.inf)[is_labelled].logsumexp(-1)
        return -of_right.sum(), int(is_labelled.sum())

    def predict(self, model: nn.Module, batch: Batch) -> list[SentenceAnswer]:
        share, index = _logits(model, batch).softmax(-1).max(-1)
        return [
            _sentence(sample["context"], sample["spans"][at], probability)
            for sample, at, probability in zip(
                batch["samples"], index.tolist(), share.tolist(), strict=True
            )
        ]

    def scores(self, answer: SentenceAnswer, example: Question) -> Mapping[str, float]:
        return {
            "accuracy": any(answer.start <= right.start < answer.end for right in example.answers)
        }

    def groups(self, example: Question) -> Mapping[str, str]:
        """The group of its number of sentences."""
        return {"number of sentences": str(len(sentences_of(example.context)))}

    def example_score(self, answer: SentenceAnswer, example: Question) -> float:
        """The answer's probability if it is right, else 0."""
        return answer.probability * self.scores(answer, example)["accuracy"]

    def baselines(
        self, train: Sequence[Question], examples: Sequence[Question]
    ) -> dict[str, list[SentenceAnswer]]:
        """The first sentence, the longest, and those that share most words with the question.

        Words count by how rare they are in the text, or in the sentences of training.
        """
        names = ("first sentence", "longest sentence", "word overlap", "rare word overlap")
        predicted: dict[str, list[SentenceAnswer]] = {name: [] for name in names}
        window, overlap = SlidingWindow(()), _sentence_overlap({e.context for e in train})
        for example in examples:
            spans = sentences_of(example.context)
            shared = [
                window.shared(example.text, example.context[start:end], example.context)
                for start, end in spans
            ]
            longest = max(spans, key=lambda span: span[1] - span[0])
            nearest = spans[shared.index(max(shared))]
            rarest = max(
                spans, key=lambda span: overlap.shared(example.text, example.context[slice(*span)])
            )
            chosen = (spans[0], longest, nearest, rarest)
            for answers, span in zip(predicted.values(), chosen, strict=True):
                answers.append(_sentence(example.context, span, 1.0))
        return predicted

    def draw(
        self, model: nn.Module, example: Question, encoded: Sample, answer: SentenceAnswer
    ) -> Drawing:
        """The sentences, the attention of the last hop to each, and the answer."""
        text = spans_text(encoded["context"], encoded["spans"])
        return Drawing(text=text, output=words_text([answer.text()]), shade=_LAST_HOP)

    def show(self, example: Question, answer: SentenceAnswer) -> str:
        right = example.answers[0].text if example.answers else "?"
        return f"{example.text} → {answer.text()} ({answer.probability:.2f}; right: {right})"

    def _overlap(self, example: Question, spans: Sequence[tuple[int, int]]) -> Float[Tensor, "M F"]:
        """Overlap of each sentence with the question; nothing without ``data.shared_words``."""
        if self.overlap is None:
            return torch.zeros(len(spans), 0)
        sentences = [example.context[slice(*span)] for span in spans]
        return torch.tensor(self.overlap.among(example.text, sentences))

    def _ids(self, text: str) -> list[int]:
        return self.vocabulary.ids(word.text for word in words_of(text))


def _logits(model: nn.Module, batch: Batch) -> Float[Tensor, "B Y"]:
    read = batch["sentences"], batch["counts"], batch["question"]
    logits: Tensor = model(*read, overlap=batch["overlap"])
    return logits.float()


def _sentence_overlap(contexts: Iterable[str]) -> Overlap:
    """The words of the sentences of these texts, and how rare they are."""
    return Overlap.learn(
        context[start:end] for context in contexts for start, end in sentences_of(context)
    )


def _sentence(context: str, span: tuple[int, int], probability: float) -> SentenceAnswer:
    return SentenceAnswer(context[slice(*span)], span[0], probability)
