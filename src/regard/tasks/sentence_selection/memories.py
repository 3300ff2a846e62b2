"""Texts as memories: ids of the words of each sentence, and of a question about them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from jaxtyping import Int, Int64
from torch import Tensor

from regard.errors import DataError
from regard.models import MemoryNetworkConfig
from regard.tasks.baselines.sliding_window import sentences_of, words_of
from regard.tasks.recipe import Recipe
from regard.tasks.sentence_selection.settings import SentencesData
from regard.text import BadLines
from regard.text.padding import padded
from regard.text.questions import Question
from regard.text.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Memory:
    """A text's sentences and a question, as ids of words.

    Attributes:
        question: Of its words.
        sentences: Of the words of each sentence.
        spans: Start and end of each in the text.
        context: The text.
    """

    question: list[int]
    sentences: list[list[int]]
    spans: list[tuple[int, int]]
    context: str


@dataclass(frozen=True, slots=True, eq=False)
class MemoryBatch:
    """Padded memories, batch first, in the order that a memory network takes them.

    Attributes:
        sentences: Ids of the words of each sentence.
        counts: How many sentences are real.
        question: Ids of its words.
    """

    sentences: Int[Tensor, "B M J"]
    counts: Int[Tensor, " B"]
    question: Int[Tensor, "B Q"]


def learn_words(recipe: Recipe, examples: Sequence[Question]) -> Vocabulary:
    """The words of the training questions and texts."""
    texts = [*dict.fromkeys(e.context for e in examples), *(e.text for e in examples)]
    words = (word.text for text in texts for word in words_of(text))
    data = recipe.settings(SentencesData)
    return Vocabulary.learn(words, min_count=data.min_count, buckets=data.oov_buckets)


def memories(
    examples: Iterable[Question],
    words: Vocabulary,
    recipe: Recipe,
    *,
    training: bool,
    too_long: BadLines | None,
) -> Iterator[tuple[Question, Memory]]:
    """Each question with what is remembered of its text.

    Raises:
        DataError: A text has more sentences than the memory has room for, and it is not to learn
            from; or it has none.
    """
    most = recipe.settings(MemoryNetworkConfig).max_sentences
    longest = recipe.settings(SentencesData).max_words

    @cache
    def cut(context: str) -> tuple[list[tuple[int, int]], list[list[int]]]:
        spans = sentences_of(context)
        read = [[w.text for w in words_of(context[start:end])][:longest] for start, end in spans]
        return spans, [words.ids(each) for each in read]

    for example in examples:
        spans, sentences = cut(example.context)
        if 0 < len(spans) <= most:
            asked = words.ids(word.text for word in words_of(example.text))
            yield example, Memory(asked or [1], sentences, spans, example.context)
            continue
        message = (
            f"{example.where}: the text must have 1 to {most} sentences, as many as "
            f"model.max_sentences; got {len(spans)}. Raise it, or cut the text up."
        )
        if not training:
            raise DataError(message)
        if too_long is not None:
            too_long.add("sentences", message)


def memory_lengths(remembered: Iterable[Memory]) -> Int64[np.ndarray, " n"]:
    """Words of each memory, padded, and of its question."""
    return np.array(
        [
            len(each.sentences) * max(map(len, each.sentences)) + len(each.question)
            for each in remembered
        ],
        dtype=np.int64,
    )


def collate_memories(remembered: Sequence[Memory]) -> MemoryBatch:
    """A padded batch."""
    most = max(len(each.sentences) for each in remembered)
    longest = max(len(ids) for each in remembered for ids in each.sentences)
    sentences = torch.zeros(len(remembered), most, longest, dtype=torch.long)
    for row, each in enumerate(remembered):
        for place, ids in enumerate(each.sentences):
            sentences[row, place, : len(ids)] = torch.tensor(ids)
    return MemoryBatch(
        sentences=sentences,
        counts=torch.tensor([len(each.sentences) for each in remembered]),
        question=padded([each.question for each in remembered]),
    )
