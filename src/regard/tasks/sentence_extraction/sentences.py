"""Documents as rows of sentences: ids, which of them make the best summary, padded batches."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor

from regard.config import JsonValue
from regard.metrics.rouge import n_grams, words
from regard.text.padding import lengths_of, padded


@dataclass(frozen=True, slots=True)
class Extract:
    """The sentences taken out of a document.

    Attributes:
        summary: They, in the document's order.
        sentences: All that were read.
        probabilities: Of each to be one of the best; empty where nothing was computed.
    """

    summary: str
    sentences: tuple[str, ...] = ()
    probabilities: tuple[float, ...] = ()

    def text(self) -> str:
        """The sentences taken out."""
        return self.summary

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        rounded: list[JsonValue] = [round(share, 6) for share in self.probabilities]
        sentences: list[JsonValue] = [*self.sentences]
        return {"summary": self.summary, "sentences": sentences, "probabilities": rounded}


@dataclass(frozen=True, slots=True)
class EncodedDocument:
    """A document as ids.

    Attributes:
        sentences: All of them that are read, the last perhaps not to its end.
        ids: A begin and the ids of each sentence.
        places: Where the sentences begin.
        labels: 1 for those that make the best summary, 0 for others; empty where none is known.
    """

    sentences: tuple[str, ...]
    ids: list[int]
    places: list[int]
    labels: list[int]


@dataclass(frozen=True, slots=True, eq=False)
class DocumentBatch:
    """Padded documents.

    Attributes:
        ids: Token ids.
        lengths: How many of each row are real.
        places: Where sentences begin, padded with 0.
        counts: Sentences of each document.
        labels: 1 for those of the best summary, 0 for others and in padding.
        encoded: What it was made of.
    """

    ids: Int[Tensor, "B N"]
    lengths: Int[Tensor, " B"]
    places: Int[Tensor, "B W"]
    counts: Int[Tensor, " B"]
    labels: Int[Tensor, "B W"]
    encoded: Sequence[EncodedDocument]


def collate_documents(encoded: Sequence[EncodedDocument]) -> DocumentBatch:
    """Documents side by side."""
    ids, places = [each.ids for each in encoded], [each.places for each in encoded]
    return DocumentBatch(
        ids=padded(ids),
        lengths=lengths_of(ids),
        places=padded(places, 0),
        counts=lengths_of(places),
        labels=padded([each.labels or [0] * len(each.places) for each in encoded], 0),
        encoded=encoded,
    )


def best_sentences(sentences: Sequence[str], summary: str, most: int) -> list[int]:
    """The sentences that come nearest to a summary together, in the document's order.

    Greedy, by the sum of ROUGE-1 and ROUGE-2, until another one makes them no better: the labels of
    Nallapati et al. (2017), https://arxiv.org/abs/1611.04230, section 3. One at least.

    Args:
        sentences: Of the document.
        summary: What to come near to.
        most: How many at most.

    Example:
        >>> best_sentences(["Rain fell.", "A king ran.", "He got old."], "A king got old.", 2)
        [1, 2]
    """
    held = [_counted(words(sentence)) for sentence in sentences]
    wanted = _counted(words(summary))
    taken: list[int] = []
    reached = 0.0
    while len(taken) < min(most, len(sentences)):
        values = {
            place: _nearness([held[each] for each in (*taken, place)], wanted)
            for place in range(len(sentences))
            if place not in taken
        }
        best = max(values, key=values.__getitem__)
        if taken and values[best] <= reached:
            break
        taken.append(best)
        reached = values[best]
    return sorted(taken)


def _counted(found: Sequence[str]) -> tuple[Counter[tuple[str, ...]], Counter[tuple[str, ...]]]:
    return Counter(n_grams(found, 1)), Counter(n_grams(found, 2))


def _nearness(
    held: Sequence[tuple[Counter[tuple[str, ...]], Counter[tuple[str, ...]]]],
    wanted: tuple[Counter[tuple[str, ...]], Counter[tuple[str, ...]]],
) -> float:
    """ROUGE-1 and ROUGE-2 of some sentences, in which no bigram spans two of them."""
    total = 0.0
    for order, there in enumerate(wanted):
        made = sum((each[order] for each in held), Counter[tuple[str, ...]]())
        common = (made & there).total()
        total += 2 * common / max(1, made.total() + there.total())
    return total
