"""Sentence selection: which sentence of a text answers a question, found by a memory network."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import ClassVar, TypedDict

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from regard.config import JsonValue
from regard.models import MemoryNetwork, MemoryNetworkConfig
from regard.tasks.baselines.sliding_window import SlidingWindow, sentences_of
from regard.tasks.held_out import checked_question, hold_out_contexts, read_asked
from regard.tasks.one_pass_task import OnePassTask
from regard.tasks.recipe import Recipe, check_not_smoothed
from regard.tasks.sentence_selection.memories import (
    Memory,
    MemoryBatch,
    collate_memories,
    learn_words,
    memories,
    memory_lengths,
)
from regard.tasks.sentence_selection.settings import SentencesData
from regard.tasks.showing import Said, Shade, Shown, ShownText
from regard.tasks.tables import by_group, question_word
from regard.tasks.task import Table
from regard.text import BadLines
from regard.text.files import read_kept, write_plain
from regard.text.padding import padded
from regard.text.questions import QUESTION_FIELDS, Question, asked_question
from regard.text.tables import Field
from regard.text.vocabulary import Vocabulary

_FILE = "words.json"
# What the last hop, whose query is the question and what was found before, looks at.
_LAST_HOP = Shade(
    kind="cross", layer=None, query=0, measure="the more the question looks at it in the last hop"
)


class _Words(TypedDict):
    """Contents of the task's file."""

    words: list[str]


@dataclass(frozen=True, slots=True)
class EncodedSentences:
    """A text's sentences and a question, as ids of words.

    Attributes:
        memory: Both.
        right: Whether each sentence has an answer.
    """

    memory: Memory
    right: list[bool]


@dataclass(frozen=True, slots=True, eq=False)
class SentencesBatch:
    """Padded memories, batch first.

    Attributes:
        memories: What the network takes.
        right: Whether each sentence has an answer.
        encoded: What it was made of.
    """

    memories: MemoryBatch
    right: Bool[Tensor, "B M"]
    encoded: list[EncodedSentences]


@dataclass(frozen=True, slots=True)
class SentenceAnswer:
    """The sentence that answers one question.

    Attributes:
        sentence: Its text.
        start: Its place in the text, in characters.
        probability: Of the sentence.
    """

    sentence: str
    start: int
    probability: float

    @property
    def end(self) -> int:
        """One past its last character."""
        return self.start + len(self.sentence)

    def text(self) -> str:
        """The sentence in one line."""
        return " ".join(self.sentence.split())

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        probability = round(self.probability, 6)
        return {
            "sentence": self.sentence,
            "start": self.start,
            "end": self.end,
            "probability": probability,
        }


class SentenceSelection(OnePassTask[Question, EncodedSentences, SentencesBatch, SentenceAnswer]):
    """Questions to sentences of their texts.

    Args:
        recipe: Whose settings hold.
        words: Of questions and texts of training.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> from regard.text.questions import Answer
        >>> asked = Question("Who was old?", "A king was old. He ran.", (Answer("A king", 0),))
        >>> recipe = recipe_from_table({"task": "sentence_selection"})
        >>> task = SentenceSelection.learn(recipe, [asked])
        >>> task.encode([asked])[0].right
        [True, False]
        >>> task.baselines([], [asked])["word overlap"][0].to_dict()
        {'sentence': 'A king was old.', 'start': 0, 'end': 15, 'probability': 1.0}
    """

    unit: ClassVar[str] = "questions"
    counted = "questions"
    metrics: ClassVar[Mapping[str, int]] = {"accuracy": 1}
    hold_out = staticmethod(hold_out_contexts)
    subject = staticmethod(attrgetter("context"))
    checked = staticmethod(checked_question)
    request = staticmethod(asked_question)

    def __init__(self, recipe: Recipe, words: Vocabulary) -> None:
        self.recipe, self.words = recipe, words

    @classmethod
    def read(
        cls, recipe: Recipe, split: str, *, bad_lines: BadLines | None = None
    ) -> list[Question]:
        """The questions of a split that have an answer; none if the recipe names no file."""
        asked = read_asked(recipe, split, spans=True, bad_lines=bad_lines)
        return [question for question in asked if question.answers]

    @classmethod
    def learn(cls, recipe: Recipe, examples: Sequence[Question]) -> "SentenceSelection":
        """The task with the words of the training questions and texts."""
        return cls(recipe, learn_words(recipe, examples))

    @classmethod
    def load(cls, recipe: Recipe, folder: Path) -> "SentenceSelection":
        """The task with what ``save`` wrote."""
        table = read_kept(folder, _FILE, _Words)
        return cls(
            recipe, Vocabulary(table["words"], buckets=recipe.settings(SentencesData).oov_buckets)
        )

    def save(self, folder: Path) -> None:
        """Write the words."""
        write_plain(folder, {"words": self.words.units}, _FILE)

    def build_model(self) -> nn.Module:
        """The recipe's memory network with new weights."""
        return MemoryNetwork(self.recipe.settings(MemoryNetworkConfig), vocab_size=len(self.words))

    def facts(self) -> list[str]:
        """Describe the vocabulary learned from the text, in lines."""
        hops = self.recipe.settings(MemoryNetworkConfig).num_hops
        return [f"{len(self.words.units):,} words, {hops} hops"]

    def asked_fields(self, *, with_answers: bool = False) -> Sequence[Field]:
        """The question, and the text that answers it."""
        return QUESTION_FIELDS

    def shown(self, example: Question, encoded: EncodedSentences, answer: SentenceAnswer) -> Shown:
        """The sentences, which each hop looks at, and the answer."""
        text = ShownText.of_spans(encoded.memory.context, encoded.memory.spans)
        return Shown(text=text, output=ShownText.of_words([answer.text().partition("\t")[0]]))

    def said(
        self, model: nn.Module, example: Question, encoded: EncodedSentences, answer: SentenceAnswer
    ) -> Said:
        """How much the last hop looks at each sentence."""
        return Said(shade=_LAST_HOP)

    def lengths(self, encoded: Sequence[EncodedSentences]) -> Int64[np.ndarray, " n"]:
        """Words of each text, padded, and of its question."""
        return memory_lengths(each.memory for each in encoded)

    def encode(
        self,
        examples: Iterable[Question],
        *,
        training: bool = False,
        too_long: BadLines | None = None,
    ) -> list[EncodedSentences]:
        """Ids of the words of each question and of its text's sentences.

        Raises:
            DataError: A text has more sentences than the memory has room for, and it is not to
                learn from; or it has none.
        """
        found = []
        for example, memory in memories(
            examples, self.words, self.recipe, training=training, too_long=too_long
        ):
            right = [
                any(start <= answer.start < end for answer in example.answers)
                for start, end in memory.spans
            ]
            if any(right) or not training:  # an answer may be between two sentences
                found.append(EncodedSentences(memory, right))
        return found

    def collate(
        self, encoded: Sequence[EncodedSentences], *, generator: torch.Generator | None = None
    ) -> SentencesBatch:
        """A padded batch."""
        return SentencesBatch(
            memories=collate_memories([each.memory for each in encoded]),
            right=padded([each.right for each in encoded], False).bool(),
            encoded=list(encoded),
        )

    def loss(
        self, model: nn.Module, batch: SentencesBatch, *, smoothing: float = 0.0
    ) -> tuple[Float[Tensor, ""], int]:
        """Minus the log-probability that the sentence is one of the right ones, and their number.

        Raises:
            SettingError: Labels are to be smoothed, which several right ones have no sense of.
        """
        check_not_smoothed(self.recipe, smoothing)
        log_probs = self._logits(model, batch).log_softmax(-1)
        known = batch.right.any(-1)
        of_right = log_probs.masked_fill(~batch.right, -torch.inf)[known].logsumexp(-1)
        return -of_right.sum(), int(known.sum())

    def predict(self, model: nn.Module, batch: SentencesBatch) -> list[SentenceAnswer]:
        """The most probable sentence for each question."""
        share, place = self._logits(model, batch).softmax(-1).max(-1)
        return [
            _sentence(each.memory.context, each.memory.spans[at], probability)
            for each, at, probability in zip(
                batch.encoded, place.tolist(), share.tolist(), strict=True
            )
        ]

    def example_score(self, answer: SentenceAnswer, example: Question) -> float:
        """Its probability if it has an answer, else 0."""
        has_one = any(answer.start <= each.start < answer.end for each in example.answers)
        return answer.probability if has_one else 0.0

    def baselines(
        self, train: Sequence[Question], examples: Sequence[Question]
    ) -> dict[str, list[SentenceAnswer]]:
        """The first sentence, the longest, and the one that shares most words with the question."""
        found: dict[str, list[SentenceAnswer]] = {
            "first sentence": [],
            "longest sentence": [],
            "word overlap": [],
        }
        window = SlidingWindow(())
        for example in examples:
            spans = sentences_of(example.context)
            shared = [
                window.shared(example.text, example.context[start:end], example.context)
                for start, end in spans
            ]
            longest = max(spans, key=lambda span: span[1] - span[0])
            nearest = spans[shared.index(max(shared))]
            for answers, span in zip(found.values(), (spans[0], longest, nearest), strict=True):
                answers.append(_sentence(example.context, span, 1.0))
        return found

    def show(self, example: Question, answer: SentenceAnswer) -> str:
        """The question, the sentence chosen and the right answer."""
        right = example.answers[0].text if example.answers else "?"
        return f"{example.text} → {answer.text()} ({answer.probability:.2f}; right: {right})"

    def score(
        self, answers: Sequence[SentenceAnswer], examples: Sequence[Question]
    ) -> dict[str, float]:
        """The share of questions whose answer is right, in percent."""
        return {"accuracy": 100 * sum(self._hits(answers, examples)) / max(1, len(examples))}

    def tables(
        self, answers: Sequence[SentenceAnswer], examples: Sequence[Question]
    ) -> list[Table]:
        """By question word, and by how many sentences there are."""
        scores = {"accuracy": self._hits(answers, examples)}
        counts = [str(len(sentences_of(example.context))) for example in examples]
        return [
            by_group("question word", [question_word(each.text) for each in examples], scores),
            by_group("number of sentences", counts, scores, ordered=True),
        ]

    def _hits(self, answers: Sequence[SentenceAnswer], examples: Sequence[Question]) -> list[float]:
        return [float(self.example_score(a, e) > 0) for a, e in zip(answers, examples, strict=True)]

    def _logits(self, model: nn.Module, batch: SentencesBatch) -> Float[Tensor, "B Y"]:
        given = batch.memories
        logits: Tensor = model(given.sentences, given.counts, given.question)
        return logits.float()


def _sentence(context: str, span: tuple[int, int], probability: float) -> SentenceAnswer:
    return SentenceAnswer(context[slice(*span)], span[0], probability)
