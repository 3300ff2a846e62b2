"""Sentence extraction: which sentences of a document make its summary, by a tagger over them.

Each sentence has a begin before it, whose state says whether it is taken out: Liu & Lapata (2019),
https://arxiv.org/abs/1908.08345, section 3.1, with any reader for their BERT.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import ClassVar, TypedDict

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from regard.config import JsonValue
from regard.fields import Count
from regard.metrics import sentence_rouge_l, sentence_rouge_n
from regard.models import READERS, Tagger, TaggerConfig
from regard.tasks.checking import CheckedExample
from regard.tasks.generation.documents import (
    DocumentExample,
    chosen,
    parse_document,
    read_documents,
    sentences,
)
from regard.tasks.generation.extracts import extracts
from regard.tasks.generation.settings import DocumentData
from regard.tasks.one_pass_task import OnePassTask
from regard.tasks.recipe import Recipe, check_not_smoothed, check_positions, tell_pieces
from regard.tasks.sentence_extraction.sentences import (
    DocumentBatch,
    EncodedDocument,
    Extract,
    best_sentences,
    collate_documents,
)
from regard.tasks.sentence_extraction.settings import ExtractionData
from regard.tasks.showing import Said, Shown, ShownText
from regard.tasks.task import Table
from regard.text import (
    BOS_ID,
    BadLines,
    Line,
    Tokenizer,
    TokenizerConfig,
    load_tokenizer,
    train_tokenizer,
)
from regard.text.files import read_kept, write_plain

_FILE = "extraction.json"
_LONGEST = 240  # characters of an example to read


class _Kept(TypedDict):
    """Contents of the task's file: how many sentences to extract."""

    sentences: Count


class SentenceExtraction(OnePassTask[DocumentExample, EncodedDocument, DocumentBatch, Extract]):
    """Documents to some of their sentences.

    Args:
        recipe: Whose settings hold.
        tokenizer: Of the documents.
        count: Sentences that are taken out.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> tale = DocumentExample("A king was old. He had a son.", "", ("An old king.",), "a:1")
        >>> table = {"task": "sentence_extraction", "tokenizer": {"type": "words"}}
        >>> task = SentenceExtraction.learn(recipe_from_table(table), [tale])
        >>> (encoded,) = task.encode([tale])
        >>> encoded.sentences, encoded.labels, task.count
        (('A king was old.', 'He had a son.'), [1, 0], 1)
    """

    unit: ClassVar[str] = "documents"
    counted = "sentences"
    metrics: ClassVar[Mapping[str, int]] = {"rouge_l": 1, "rouge_1": 1, "rouge_2": 1}

    def __init__(self, recipe: Recipe, tokenizer: Tokenizer, count: int) -> None:
        self.recipe, self.tokenizer, self.count = recipe, tokenizer, count
        self.data = recipe.settings(ExtractionData)

    @classmethod
    def read(
        cls, recipe: Recipe, split: str, *, bad_lines: BadLines | None = None
    ) -> list[DocumentExample]:
        """The documents of a split with their summaries; none if the recipe names no file."""
        data = _reading(recipe.settings(ExtractionData))
        return read_documents(recipe.files(split), data, bad_lines=bad_lines)

    @staticmethod
    def subject(example: DocumentExample) -> str:
        """The document."""
        return example.text

    @staticmethod
    def checked(example: DocumentExample) -> CheckedExample:
        """The document and its summaries."""
        return CheckedExample((example.text,), (), example.where, example.answers)

    @classmethod
    def learn(cls, recipe: Recipe, examples: Sequence[DocumentExample]) -> "SentenceExtraction":
        """The task with the tokenizer of the documents, and how many sentences summaries have."""
        known = [len(sentences(answer)) for example in examples for answer in example.answers]
        count = recipe.settings(ExtractionData).sentences or max(1, round(fmean(known)))
        texts = [example.text for example in examples]
        return cls(recipe, train_tokenizer(texts, recipe.settings(TokenizerConfig)), count)

    @classmethod
    def load(cls, recipe: Recipe, folder: Path) -> "SentenceExtraction":
        """The task with what ``save`` wrote."""
        count = read_kept(folder, _FILE, _Kept)["sentences"]
        return cls(recipe, load_tokenizer(folder / "text"), count)

    def save(self, folder: Path) -> None:
        """Write the tokenizer, and how many sentences are taken out."""
        self.tokenizer.save(folder / "text")
        write_plain(folder, {"sentences": self.count}, _FILE)

    def build_model(self) -> nn.Module:
        """The recipe's reader with new weights, and the tagger on it."""
        read = READERS[self.recipe.model_type].load()
        reader = read(self.recipe.model, vocab_size=self.tokenizer.vocab_size)
        check_positions(reader, "data.max_length", self.data.max_length)
        return Tagger(self.recipe.settings(TaggerConfig), reader, num_tags=2)

    def facts(self) -> list[str]:
        """How text is cut, and how many sentences are taken out."""
        taken = f"{self.count} sentence" + "s" * (self.count > 1)
        return [
            tell_pieces(self.recipe, self.tokenizer.vocab_size),
            f"{taken} of each document taken out",
        ]

    def request(self, record: str | Mapping[str, JsonValue], where: str) -> DocumentExample:
        """The document of a text, or of a JSON record.

        Raises:
            DataError: There is none.
        """
        text = record if isinstance(record, str) else json.dumps(record)
        return parse_document(Line(text, where), _reading(self.data), "")

    def encode(
        self,
        examples: Iterable[DocumentExample],
        *,
        training: bool = False,
        too_long: BadLines | None = None,
    ) -> list[EncodedDocument]:
        """Ids of each document, as far as it is read."""
        return [self._encoded(example, too_long) for example in examples]

    def lengths(self, encoded: Sequence[EncodedDocument]) -> Int64[np.ndarray, " n"]:
        """Tokens of each document."""
        return np.array([len(each.ids) for each in encoded], dtype=np.int64)

    def collate(
        self, encoded: Sequence[EncodedDocument], *, generator: torch.Generator | None = None
    ) -> DocumentBatch:
        """A padded batch; nothing is drawn."""
        return collate_documents(encoded)

    def loss(
        self, model: nn.Module, batch: DocumentBatch, *, smoothing: float = 0.0
    ) -> tuple[Float[Tensor, ""], int]:
        """Minus the log-probability of which sentences are the best, and how many there are.

        Raises:
            SettingError: Labels are to be smoothed.
        """
        check_not_smoothed(self.recipe, smoothing)
        scores = self._scores(model, batch)
        loss: Tensor = model.loss(scores, batch.labels, batch.counts)  # type: ignore[operator]
        return loss, int(batch.counts.sum())

    def predict(self, model: nn.Module, batch: DocumentBatch) -> list[Extract]:
        """The likeliest sentences of each document, in its order."""
        shares = self._scores(model, batch).softmax(-1)[..., 1].tolist()
        found = []
        for each, row in zip(batch.encoded, shares, strict=True):
            share = row[: len(each.sentences)]
            first = sorted(range(len(share)), key=lambda place: -share[place])[: self.count]
            summary = chosen(each.sentences, sorted(first))
            found.append(Extract(summary, each.sentences, tuple(share)))
        return found

    def score(
        self, answers: Sequence[Extract], examples: Sequence[DocumentExample]
    ) -> dict[str, float]:
        """ROUGE of the sentences taken out, the best of the summaries for each."""
        rows = [_rouge(a.summary, e.answers) for a, e in zip(answers, examples, strict=True)]
        columns = zip(*rows, strict=True)
        return dict(zip(self.metrics, map(fmean, columns), strict=True))

    def example_score(self, answer: Extract, example: DocumentExample) -> float:
        """ROUGE-L, from 0 to 1."""
        return _rouge(answer.summary, example.answers)[0] / 100

    def baselines(
        self, train: Sequence[DocumentExample], examples: Sequence[DocumentExample]
    ) -> dict[str, list[Extract]]:
        """Sentences that are chosen without a model: see ``extracts``."""
        known = [answer for one in train for answer in one.answers]
        return {
            name: [Extract(text) for text in texts]
            for name, texts in extracts(examples, known).items()
        }

    def tables(
        self, answers: Sequence[Extract], examples: Sequence[DocumentExample]
    ) -> list[Table]:
        """Greedy oracle: an upper bound for extraction, up to the greedy choice."""
        best = [Extract(_best_extract(example, self.count)) for example in examples]
        rows: list[tuple[str | int | float, ...]] = [
            (name, *self.score(found, examples).values())
            for name, found in (
                ("taken out", answers),
                ("nearest to the summary, which is not known", best),
            )
        ]
        columns = ("", *self.metrics)
        return [Table("beside the best choice of sentences", columns, tuple(rows))]

    def shown(self, example: DocumentExample, encoded: EncodedDocument, answer: Extract) -> Shown:
        """The pieces that are read, with the begin of each sentence."""
        decode = self.tokenizer.decode
        named = [
            "⟨sentence⟩" if one == BOS_ID else decode([one]).strip() or "␣" for one in encoded.ids
        ]
        return Shown(text=ShownText.of_words(named), output=ShownText.of_words([answer.summary]))

    def said(
        self, model: nn.Module, example: DocumentExample, encoded: EncodedDocument, answer: Extract
    ) -> Said:
        """How likely each sentence is to be one of the best, at its begin."""
        values = [0.0] * len(encoded.ids)
        for place, share in zip(encoded.places, answer.probabilities, strict=True):
            values[place] = share
        return Said(values=tuple(values), measure="the likelier to be taken out")

    def show(self, example: DocumentExample, answer: Extract) -> str:
        """The sentences taken out, and a summary."""
        text = f"{answer.summary} (right: {' | '.join(example.answers)})"
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"

    def _encoded(self, example: DocumentExample, too_long: BadLines | None) -> EncodedDocument:
        parts, most = sentences(example.text), self.data.max_length
        ids: list[int] = []
        places: list[int] = []
        for part in parts:
            if len(ids) >= most - 1:  # a begin and a token at least
                break
            places.append(len(ids))
            ids += [BOS_ID, *self.tokenizer.encode(part)]
        if too_long is not None:
            too_long.add_cut("document", example.where, size=len(ids), longest=most)
        read, labels = tuple(parts[: len(places)]), list[int]()
        if example.answers:
            best = best_sentences(read, example.answers[0], self.count)
            labels = [int(place in best) for place in range(len(read))]
        return EncodedDocument(read, ids[:most], places, labels)

    def _scores(self, model: nn.Module, batch: DocumentBatch) -> Float[Tensor, "B W 2"]:
        scores: Tensor = model(batch.ids, batch.lengths, places=batch.places)
        return scores.float()


@lru_cache(maxsize=1 << 16)
def _rouge(summary: str, right: tuple[str, ...]) -> tuple[float, float, float]:
    """ROUGE-L, -1 and -2 of a summary, which intervals ask for again and again."""
    (longest,) = sentence_rouge_l([summary], [right])
    one, two = (sentence_rouge_n([summary], [right], n=n)[0] for n in (1, 2))
    return longest, one, two


def _best_extract(example: DocumentExample, count: int) -> str:
    parts = sentences(example.text)
    return chosen(parts, best_sentences(parts, example.answers[0], count))


def _reading(data: ExtractionData) -> DocumentData:
    """The settings by which documents are read."""
    return DocumentData(document=data.document, answer=data.summary, on_bad_line=data.on_bad_line)
