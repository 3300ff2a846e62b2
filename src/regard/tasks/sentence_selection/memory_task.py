"""A task of a memory network: a question about a text, which it reads sentence by sentence."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import ClassVar, NotRequired, Protocol, TypedDict, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Float, Int64
from torch import Tensor, nn

from regard.models import MemoryNetwork, MemoryNetworkConfig
from regard.tasks.baselines.sliding_window import sentences_of
from regard.tasks.held_out import checked_question, hold_out_contexts, read_asked
from regard.tasks.one_pass_task import OnePassTask
from regard.tasks.recipe import Recipe
from regard.tasks.sentence_selection.memories import Memory, MemoryBatch, memory_lengths
from regard.tasks.sentence_selection.settings import SentencesData
from regard.tasks.showing import Said, Shade, Shown, ShownText
from regard.tasks.tables import by_group, question_word
from regard.tasks.task import AnswerT, Table
from regard.text import BadLines
from regard.text.files import read_kept, write_plain
from regard.text.questions import QUESTION_FIELDS, Question, asked_question
from regard.text.tables import Field
from regard.text.vocabulary import Vocabulary

_FILE = "words.json"
# What the last hop, whose query is the question and what was found before, looks at.
_LAST_HOP = Shade(
    kind="cross", layer=None, query=0, measure="the more the question looks at it in the last hop"
)


@runtime_checkable
class Remembered(Protocol):
    """A question and its text, as ids."""

    @property
    def memory(self) -> Memory:
        """The question and the sentences."""


@runtime_checkable
class RememberedBatch(Protocol):
    """Some of them, padded."""

    @property
    def memories(self) -> MemoryBatch:
        """What the network takes."""


RememberedT = TypeVar("RememberedT", bound=Remembered)
RememberedBatchT = TypeVar("RememberedBatchT", bound=RememberedBatch)


class _Vocabulary(TypedDict):
    """What the task's file holds."""

    words: list[str]
    answers: NotRequired[list[str]]


class MemoryTask(OnePassTask[Question, RememberedT, RememberedBatchT, AnswerT]):
    """Questions about texts, asked of a memory network; its answer is right or it is not.

    Args:
        recipe: Whose settings hold.
        words: Of questions and texts of training.
        answers: What may be answered, in order of their numbers; none where a sentence answers.

    Attributes:
        spans: Whether an answer must stand in its text.
    """

    spans: ClassVar[bool]
    unit: ClassVar[str] = "questions"
    counted = "questions"
    metrics: ClassVar[Mapping[str, int]] = {"accuracy": 1}
    hold_out = staticmethod(hold_out_contexts)
    subject = staticmethod(attrgetter("context"))
    checked = staticmethod(checked_question)
    request = staticmethod(asked_question)

    def __init__(self, recipe: Recipe, words: Vocabulary, answers: Sequence[str] = ()) -> None:
        self.recipe, self.words, self.answers_known = recipe, words, list(answers)

    @classmethod
    def read(
        cls, recipe: Recipe, split: str, *, bad_lines: BadLines | None = None
    ) -> list[Question]:
        """The questions of a split that have an answer; none if the recipe names no file."""
        asked = read_asked(recipe, split, spans=cls.spans, bad_lines=bad_lines)
        return [question for question in asked if question.answers]

    @classmethod
    def load(
        cls, recipe: Recipe, folder: Path
    ) -> "MemoryTask[RememberedT, RememberedBatchT, AnswerT]":
        """The task with what ``save`` wrote."""
        table = read_kept(folder, _FILE, _Vocabulary)
        words = Vocabulary(table["words"], buckets=recipe.settings(SentencesData).oov_buckets)
        return cls(recipe, words, table["answers"]) if "answers" in table else cls(recipe, words)

    def save(self, folder: Path) -> None:
        """Write the words, and the answers where there are some to choose from."""
        answers = {"answers": self.answers_known} if self.answers_known else {}
        write_plain(folder, {"words": self.words.units, **answers}, _FILE)

    def build_model(self) -> nn.Module:
        """The recipe's memory network with new weights."""
        return MemoryNetwork(
            self.recipe.settings(MemoryNetworkConfig),
            vocab_size=len(self.words),
            num_answers=len(self.answers_known) or None,
        )

    def facts(self) -> list[str]:
        """What was learned from the text, in lines for people."""
        answers = [f"{len(self.answers_known):,} answers"] if self.answers_known else []
        hops = self.recipe.settings(MemoryNetworkConfig).num_hops
        return [", ".join([f"{len(self.words.units):,} words", *answers, f"{hops} hops"])]

    def asked_fields(self, *, with_answers: bool = False) -> Sequence[Field]:
        """The question, and the text that answers it."""
        return QUESTION_FIELDS

    def shown(self, example: Question, encoded: RememberedT, answer: AnswerT) -> Shown:
        """The sentences, which each hop looks at, and the answer."""
        text = ShownText.of_spans(encoded.memory.context, encoded.memory.spans)
        return Shown(text=text, output=ShownText.of_words([answer.text().partition("\t")[0]]))

    def said(
        self, model: nn.Module, example: Question, encoded: RememberedT, answer: AnswerT
    ) -> Said:
        """How much the last hop looks at each sentence."""
        return Said(shade=_LAST_HOP)

    def lengths(self, encoded: Sequence[RememberedT]) -> Int64[np.ndarray, " n"]:
        """Words of each text, padded, and of its question."""
        return memory_lengths(each.memory for each in encoded)

    def score(self, answers: Sequence[AnswerT], examples: Sequence[Question]) -> dict[str, float]:
        """The share of questions whose answer is right, in percent."""
        return {"accuracy": 100 * sum(self._hits(answers, examples)) / max(1, len(examples))}

    def tables(self, answers: Sequence[AnswerT], examples: Sequence[Question]) -> list[Table]:
        """By question word, and by how many sentences there are."""
        scores = {"accuracy": self._hits(answers, examples)}
        counts = [str(len(sentences_of(example.context))) for example in examples]
        return [
            by_group("question word", [question_word(each.text) for each in examples], scores),
            by_group("number of sentences", counts, scores, ordered=True),
        ]

    def _hits(self, answers: Sequence[AnswerT], examples: Sequence[Question]) -> list[float]:
        return [float(self.example_score(a, e) > 0) for a, e in zip(answers, examples, strict=True)]

    def _logits(self, model: nn.Module, batch: RememberedBatchT) -> Float[Tensor, "B Y"]:
        given = batch.memories
        logits: Tensor = model(given.sentences, given.counts, given.question)
        return logits.float()
