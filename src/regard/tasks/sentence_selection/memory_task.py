"""A task of a memory network: a question about a text, which it reads sentence by sentence."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Float, Int64
from torch import Tensor, nn

from regard.tasks.baselines.sliding_window import sentences_of
from regard.tasks.held_out import checked_question, hold_out_contexts
from regard.tasks.sentence_selection.memories import Memory, MemoryBatch, memory_lengths
from regard.tasks.tables import by_group, question_word
from regard.tasks.task import AnswerT, OnePassTask, Table
from regard.text.questions import Question, asked_question


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


class MemoryTask(OnePassTask[Question, RememberedT, RememberedBatchT, AnswerT]):
    """Questions about texts, asked of a memory network; its answer is right or it is not."""

    unit: ClassVar[str] = "questions"
    counted = "questions"
    metrics: ClassVar[Mapping[str, int]] = {"accuracy": 1}
    hold_out = staticmethod(hold_out_contexts)
    subject = staticmethod(attrgetter("context"))
    checked = staticmethod(checked_question)
    request = staticmethod(asked_question)

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
