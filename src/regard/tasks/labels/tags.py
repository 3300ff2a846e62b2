"""Tags of words or sentences: how a tagger is asked for them, their spans and baselines."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.config import JsonValue
from regard.errors import DataError
from regard.metrics.labels import entities, entity_tags, is_bio, to_scheme
from regard.models import READERS, Reader, Tagger, TaggerConfig
from regard.tasks.batches import Batch
from regard.tasks.one_pass_task import Loss, OnePassTask
from regard.tasks.task import AnswerT, ExampleT
from regard.text.reading.tagged import TaggedWords


@dataclass(frozen=True, slots=True)
class Tags:
    """The words of one sentence and a tag for each."""

    words: tuple[str, ...]
    tags: tuple[str, ...]

    def text(self) -> str:
        """``word/tag`` with spaces between."""
        return " ".join(f"{word}/{tag}" for word, tag in zip(self.words, self.tags, strict=True))

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        return {"tokens": list(self.words), "tags": list(self.tags)}


class TaggerTask(OnePassTask[ExampleT, AnswerT]):
    """A task that tags the units of a text, words or sentences, at their ``positions``."""

    padding: ClassVar[Mapping[str, int]] = {"tags": -1}

    def build_tagger(self, tags: Sequence[str], **sizes: int) -> tuple[Reader, Tagger]:
        """The recipe's reader with new weights, and the tagger on it."""
        reader = READERS[self.recipe.model_type].load()(self.recipe.model, **sizes)
        allowed = transitions(tags) if is_bio(tags) else None
        head = self.recipe.settings(TaggerConfig)
        return reader, Tagger(head, reader, num_tags=len(tags), allowed=allowed)

    def tag_scores(self, model: nn.Module, batch: Batch) -> Float[Tensor, "R N K"]:
        """The score of each tag for each unit."""
        reading = {name: batch[name] for name in ("parts", "positions") if name in batch}
        scores: Tensor = model(batch["ids"], batch["lengths"], **reading)
        return scores.float()

    def batch_loss(self, model: nn.Module, batch: Batch, smoothing: float) -> Loss:
        scores, counts = self.tag_scores(model, batch), batch["counts"]
        loss: Tensor = model.loss(scores, batch["tags"].clamp(min=0), counts)  # type: ignore[operator]
        return loss, int(counts.sum())


def transitions(tags: Sequence[str]) -> Bool[Tensor, "rows K"]:
    """Allowed transitions of tags: I-X only after B-X or I-X, and never first."""
    allowed = torch.ones(len(tags) + 1, len(tags), dtype=torch.bool)
    for column, tag in enumerate(tags):
        if tag[:1] == "I":
            before = [previous != "O" and previous[1:] == tag[1:] for previous in tags]
            allowed[:, column] = torch.tensor([*before, False])
    return allowed


def flattened(rows: Iterable[Iterable[str]]) -> list[str]:
    """The tags, or words, of all sentences."""
    return list(chain.from_iterable(rows))


def without_marks(example: TaggedWords) -> TaggedWords | None:
    """The sentence without marks between entities of one type; None if it has no such mark."""
    words, tags = example.words, example.tags or ()
    marks = {
        end
        for (kind, _, end), (next_kind, first, _) in pairwise(entities(tags))
        if first == end + 1 and kind == next_kind and not any(map(str.isalnum, words[end]))
    }
    if not marks:
        return None
    indices = [index for index in range(len(words)) if index not in marks]
    remaining_words, remaining_tags = (
        tuple(column[index] for index in indices) for column in (words, tags)
    )
    return TaggedWords(remaining_words, remaining_tags, example.where)


def in_scheme(example: TaggedWords, tags: Sequence[str]) -> TaggedWords:
    """The example in the scheme of a run's tags, which may be another than BIO in early runs."""
    if example.tags is None or is_bio(tags) or entity_tags(tags) is None:
        return example
    return replace(example, tags=to_scheme(example.tags, tags))


def space_of(words: Sequence[str]) -> str:
    """The space between words; none between single characters."""
    return "" if all(len(word) == 1 for word in words) else " "


def marked(words: Sequence[str], tags: Sequence[str]) -> str:
    """The words with their entities in brackets; single characters without spaces between."""
    space = space_of(words)
    text, at = [], 0
    for kind, first, end in entities(tags):
        text += [*words[at:first], f"[{space.join(words[first:end])} {kind}]"]
        at = end
    return space.join([*text, *words[at:]])


def compared(words: Sequence[str], tags: Sequence[str], right: Sequence[str]) -> str:
    """The marked words; behind them the wrong entities, and those that are right."""
    space = space_of(words)
    predicted, true = entities(tags), entities(right)
    notes = [
        f"{name}: "
        + ", ".join(f"{space.join(words[first:end])} {kind}".rstrip() for kind, first, end in spans)
        for name, spans in (
            ("wrong", [one for one in predicted if one not in true]),
            ("right", [one for one in true if one not in predicted]),
        )
        if spans
    ]
    text = marked(words, tags)
    return f"{text}  ({'; '.join(notes)})" if notes else text


def marked_errors(words: Sequence[str], tags: Sequence[str], right: Sequence[str]) -> str:
    """The words with their tags, the right ones behind wrong ones."""
    return " ".join(
        f"{word}/{tag}" + (f"(right: {true})" if tag != true else "")
        for word, tag, true in zip(words, tags, right, strict=True)
    )


def tag_numbers(example: TaggedWords, tags: Sequence[str]) -> list[int]:
    """The numbers of a sentence's tags; −1 where they are not known."""
    if example.tags is None:
        return [-1] * len(example.words)
    numbers = {tag: number for number, tag in enumerate(tags)}
    for position, (word, tag) in enumerate(zip(example.words, example.tags, strict=True), 1):
        if tag not in numbers:
            raise DataError(
                f"{example.where}: tags must be ones met in training "
                f"({', '.join(tags[:20])}); got {tag!r} for {word!r}, word {position} "
                "of the sentence. Correct it, or add sentences that have it to data.train."
            )
    return [numbers[tag] for tag in example.tags]
