"""Word answering: a word answers a question about a story, by a memory network, as on bAbI."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.config import JsonValue
from regard.tasks.baselines.sliding_window import words_of
from regard.tasks.labels import label_loss, most_frequent
from regard.tasks.recipe import Recipe
from regard.tasks.sentence_selection.memories import (
    Memory,
    MemoryBatch,
    collate_memories,
    learn_words,
    memories,
)
from regard.tasks.sentence_selection.memory_task import MemoryTask
from regard.text import BadLines
from regard.text.questions import Question
from regard.text.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class EncodedStory:
    """A story and a question, as ids of words.

    Attributes:
        memory: Both.
        number: Of the answer among ``WordAnswering.answers``; −1 where it is not known.
    """

    memory: Memory
    number: int


@dataclass(frozen=True, slots=True, eq=False)
class StoryBatch:
    """Padded stories, batch first.

    Attributes:
        memories: What the network takes.
        numbers: Of the answers; −1 where not known.
    """

    memories: MemoryBatch
    numbers: Int[Tensor, " B"]


@dataclass(frozen=True, slots=True)
class WordAnswer:
    """The word that answers one question.

    Attributes:
        word: In lower case.
        probability: Of the word.

    Example:
        >>> WordAnswer("kitchen", 0.875).to_dict()
        {'answer': 'kitchen', 'probability': 0.875}
    """

    word: str
    probability: float

    def text(self) -> str:
        """The word and its probability."""
        return f"{self.word}\t{self.probability:.4f}"

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        return {"answer": self.word, "probability": round(self.probability, 6)}


class WordAnswering(MemoryTask[EncodedStory, StoryBatch, WordAnswer]):
    """Questions about stories to words.

    The answer need not stand in the story: it is a softmax over all words of training (Sukhbaatar
    et al., 2015, section 2.1). An answer of several words counts as one.

    Args:
        recipe: Whose settings hold.
        words: Of questions and stories of training.
        answers: What may be answered, in order of their numbers.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> from regard.text.questions import Answer
        >>> asked = Question("Where is Hans?", "Hans went to a kitchen.", (Answer("kitchen", 15),))
        >>> task = WordAnswering.learn(recipe_from_table({"task": "word_answering"}), [asked])
        >>> task.answers_known[task.encode([asked])[0].number]
        'kitchen'
        >>> task.score(task.baselines([asked], [asked])["last word"], [asked])
        {'accuracy': 100.0}
    """

    spans: ClassVar[bool] = False

    def __init__(self, recipe: Recipe, words: Vocabulary, answers: Sequence[str]) -> None:
        super().__init__(recipe, words, answers)
        self._numbers = {answer: number for number, answer in enumerate(answers)}

    @classmethod
    def learn(cls, recipe: Recipe, examples: Sequence[Question]) -> "WordAnswering":
        """The task with the words of the training questions, stories and answers."""
        words = learn_words(recipe, examples)
        answers = (answer for example in examples for answer in _right(example))
        return cls(recipe, words, list(dict.fromkeys([*words.units, *answers])))

    def encode(
        self,
        examples: Iterable[Question],
        *,
        training: bool = False,
        too_long: BadLines | None = None,
    ) -> list[EncodedStory]:
        """Ids of the words of each question and of its story's sentences.

        Raises:
            DataError: A story has more sentences than the memory has room for, and it is not to
                learn from; or it has none.
        """
        found = []
        for example, memory in memories(
            examples, self.words, self.recipe, training=training, too_long=too_long
        ):
            known = [self._numbers[each] for each in _right(example) if each in self._numbers]
            found.append(EncodedStory(memory, known[0] if known else -1))
        return found

    def collate(
        self, encoded: Sequence[EncodedStory], *, generator: torch.Generator | None = None
    ) -> StoryBatch:
        """A padded batch."""
        return StoryBatch(
            memories=collate_memories([each.memory for each in encoded]),
            numbers=torch.tensor([each.number for each in encoded]),
        )

    def loss(
        self, model: nn.Module, batch: StoryBatch, *, smoothing: float = 0.0
    ) -> tuple[Float[Tensor, ""], int]:
        """The summed cross-entropy, and how many answers are known."""
        return label_loss(self._logits(model, batch), batch.numbers, smoothing=smoothing)

    def predict(self, model: nn.Module, batch: StoryBatch) -> list[WordAnswer]:
        """The most probable word for each question."""
        share, place = self._logits(model, batch).softmax(-1).max(-1)
        pairs = zip(place.tolist(), share.tolist(), strict=True)
        return [WordAnswer(self.answers_known[number], each) for number, each in pairs]

    def example_score(self, answer: WordAnswer, example: Question) -> float:
        """Its probability if it is right, else 0."""
        return answer.probability if answer.word in _right(example) else 0.0

    def baselines(
        self, train: Sequence[Question], examples: Sequence[Question]
    ) -> dict[str, list[WordAnswer]]:
        """The answer that most training questions have, and the last word of the last sentence."""
        most = most_frequent(_right(example)[0] for example in train if example.answers)
        last = [_last_word(example) for example in examples]
        return {
            f"always {most}": [WordAnswer(most, 1.0)] * len(examples),
            "last word": [WordAnswer(word, 1.0) for word in last],
        }

    def show(self, example: Question, answer: WordAnswer) -> str:
        """The question, the word and the right one."""
        right = " | ".join(_right(example)) or "?"
        return f"{example.text} → {answer.word} ({answer.probability:.2f}; right: {right})"


def _right(example: Question) -> list[str]:
    """The right answers, in lower case."""
    return [" ".join(answer.text.lower().split()) for answer in example.answers]


def _last_word(example: Question) -> str:
    words = [word.text for word in words_of(example.context) if not word.is_mark]
    return words[-1] if words else ""
