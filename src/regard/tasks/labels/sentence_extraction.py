"""Sentence extraction: which sentences of a document make its summary, by a tagger over them.

Each sentence has a begin before it, whose state says whether it is taken out: Liu & Lapata (2019),
https://arxiv.org/abs/1908.08345, section 3.1, with any reader for their BERT.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean
from typing import ClassVar, TypeAlias

from torch import nn

from regard.checks import counted
from regard.config import JsonValue
from regard.fields import Count
from regard.metrics import sentence_rouge_l, sentence_rouge_n
from regard.metrics.rouge import n_grams, words
from regard.tasks.batches import Batch, Sample
from regard.tasks.drawing import Drawing, words_text
from regard.tasks.labels.tags import TaggerTask
from regard.tasks.oddities import CheckedExample
from regard.tasks.sequences.documents import (
    DocumentExample,
    chosen,
    extracts,
    parse_document,
    read_documents,
    sentences,
)
from regard.tasks.settings.data import ExtractionData
from regard.tasks.settings.recipe import DocumentData, Recipe, check_positions
from regard.tasks.tables import Table
from regard.tasks.task import Answer
from regard.text import BOS_ID, BadLines, Line, Tokenizer, TokenizerConfig, train_tokenizer
from regard.viewer import Prediction

__all__ = ["ExtractionData", "SentenceExtraction"]

_LONGEST = 240  # characters of an example to read
# Counts of a text's words, and of its bigrams.
_Grams: TypeAlias = tuple[Counter[tuple[str, ...]], Counter[tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class Extract(Answer):
    """A summary of some sentences, all that were read, and the probability of each, if known."""

    summary: str
    sentences: tuple[str, ...] = ()
    probabilities: tuple[float, ...] = ()

    def text(self) -> str:
        """The sentences taken out."""
        return self.summary


class SentenceExtraction(TaggerTask[DocumentExample, Extract]):
    """Documents to some of their sentences.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> tale = DocumentExample("A king was old. He had a son.", "", ("An old king.",), "a:1")
        >>> table = {"task": "sentence_extraction", "tokenizer": {"type": "words"}}
        >>> task = SentenceExtraction.learn(recipe_from_table(table), [tale])
        >>> (sample,) = task.encode([tale])
        >>> sample["sentences"], sample["tags"], task.sentences
        (('A king was old.', 'He had a son.'), [1, 0], 1)
    """

    unit: ClassVar[str] = "documents"
    loss_unit = "sentences"
    metrics: ClassVar[Mapping[str, int]] = {"rouge_l": 1, "rouge_1": 1, "rouge_2": 1}
    main_metric: ClassVar[str] = "rouge_l"
    learned = ("sentences",)
    file = "extraction.json"
    data: ExtractionData
    tokenizer: Tokenizer
    sentences: Count

    @classmethod
    def read(
        cls, recipe: Recipe, split: str, *, bad_lines: BadLines | None = None
    ) -> list[DocumentExample]:
        data = _document_data(recipe.settings(ExtractionData))
        return read_documents(recipe.files(split), data, bad_lines=bad_lines)

    @staticmethod
    def checked(example: DocumentExample) -> CheckedExample:
        return CheckedExample((example.text,), (), example.where, example.answers)

    @staticmethod
    def named_texts(example: DocumentExample) -> dict[str, str]:
        return {"document": example.text, "answer": " | ".join(example.answers)}

    @classmethod
    def learn(cls, recipe: Recipe, examples: Sequence[DocumentExample]) -> "SentenceExtraction":
        counts = [len(sentences(answer)) for example in examples for answer in example.answers]
        count = recipe.settings(ExtractionData).sentences or max(1, round(fmean(counts)))
        texts = [example.text for example in examples]
        tokenizer = train_tokenizer(texts, recipe.settings(TokenizerConfig))
        return cls(recipe, tokenizer, sentences=count)

    def build_model(self) -> nn.Module:
        reader, tagger = self.build_tagger(("left", "taken"), vocab_size=self.tokenizer.vocab_size)
        check_positions(reader.max_length, "data.max_length", self.data.max_length)
        return tagger

    def describe(self) -> list[str]:
        count = counted(self.sentences, "sentences")
        return [*super().describe(), f"{count} of each document taken out"]

    def request(self, record: str | Mapping[str, JsonValue], where: str) -> DocumentExample:
        """The document of a text, or of a JSON record; DataError if there is none."""
        text = record if isinstance(record, str) else json.dumps(record)
        return parse_document(Line(text, where), _document_data(self.data), "")

    def encode_one(self, example: DocumentExample, too_long: BadLines) -> Sample:
        """Ids of a document as far as it is read, where its sentences begin, which are the best."""
        parts, most = sentences(example.text), self.data.max_length
        ids: list[int] = []
        positions: list[int] = []
        for part in parts:
            if len(ids) >= most - 1:  # a begin and a token at least
                break
            positions.append(len(ids))
            ids += [BOS_ID, *self.tokenizer.encode(part)]
        too_long.add_cut("document", example.where, size=len(ids), longest=most)
        read, labels = tuple(parts[: len(positions)]), [0] * len(positions)
        if example.answers:
            best = best_sentences(read, example.answers[0], self.sentences)
            labels = [int(index in best) for index in range(len(read))]
        labelled = {"tags": labels, "counts": len(positions), "sentences": read}
        return {"ids": ids[:most], "positions": positions, **labelled}

    def predict(self, model: nn.Module, batch: Batch) -> list[Extract]:
        shares = self.tag_scores(model, batch).softmax(-1)[..., 1].tolist()
        answers = []
        for read, row in zip(batch["sentences"], shares, strict=True):
            share = row[: len(read)]
            likeliest = sorted(range(len(share)), key=lambda index: -share[index])
            summary = chosen(read, sorted(likeliest[: self.sentences]))
            answers.append(Extract(summary, read, tuple(share)))
        return answers

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
        right = [answer for one in train for answer in one.answers]
        return {
            name: [Extract(text) for text in texts]
            for name, texts in extracts(examples, right).items()
        }

    def tables(
        self, answers: Sequence[Extract], examples: Sequence[DocumentExample]
    ) -> list[Table]:
        """Greedy oracle: an upper bound for extraction, up to the greedy choice."""
        best = []
        for example in examples:
            parts = sentences(example.text)
            taken = best_sentences(parts, example.answers[0], self.sentences)
            best.append(Extract(chosen(parts, taken)))
        rows: list[tuple[str | int | float, ...]] = [
            (name, *self.score(extracts, examples).values())
            for name, extracts in (
                ("taken out", answers),
                ("nearest to the summary, which is not known", best),
            )
        ]
        columns = ("", *self.metrics)
        return [Table("beside the best choice of sentences", columns, tuple(rows))]

    def draw(
        self, model: nn.Module, example: DocumentExample, encoded: Sample, answer: Extract
    ) -> Drawing:
        """The pieces that are read; at the begin of each sentence, its probability to be taken."""
        ids, decode = encoded["ids"], self.tokenizer.decode
        named = ["⟨sentence⟩" if i == BOS_ID else decode([i]).strip() or "␣" for i in ids]
        values = [0.0] * len(ids)
        for position, share in zip(encoded["positions"], answer.probabilities, strict=True):
            values[position] = share
        return Drawing(
            text=words_text(named),
            output=words_text([answer.summary]),
            prediction=Prediction(values=tuple(values), measure="the likelier to be taken out"),
        )

    def show(self, example: DocumentExample, answer: Extract) -> str:
        text = f"{answer.summary} (right: {' | '.join(example.answers)})"
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def best_sentences(sentences: Sequence[str], summary: str, most: int) -> list[int]:
    """Choose at most so many sentences greedily, by the summary's ROUGE-1 and ROUGE-2.

    Labels of Nallapati et al. (2017), https://arxiv.org/abs/1611.04230, section 3. One at least.
    """
    held = [_grams(words(sentence)) for sentence in sentences]
    target = _grams(words(summary))
    selected: list[int] = []
    reached = 0.0
    while len(selected) < min(most, len(sentences)):
        values = {
            index: _nearness([held[number] for number in (*selected, index)], target)
            for index in range(len(sentences))
            if index not in selected
        }
        best = max(values, key=values.__getitem__)
        if selected and values[best] <= reached:
            break
        selected.append(best)
        reached = values[best]
    return sorted(selected)


def _grams(text: Sequence[str]) -> _Grams:
    return Counter(n_grams(text, 1)), Counter(n_grams(text, 2))


def _nearness(held: Sequence[_Grams], target: _Grams) -> float:
    """ROUGE-1 and ROUGE-2 of some sentences, in which no bigram spans two of them."""
    total = 0.0
    for order, there in enumerate(target):
        made = sum((grams[order] for grams in held), Counter[tuple[str, ...]]())
        common = (made & there).total()
        total += 2 * common / max(1, made.total() + there.total())
    return total


@lru_cache(maxsize=1 << 16)
def _rouge(summary: str, right: tuple[str, ...]) -> tuple[float, float, float]:
    """ROUGE-L, -1 and -2 of a summary, which intervals ask for again and again."""
    (longest,) = sentence_rouge_l([summary], [right])
    one, two = (sentence_rouge_n([summary], [right], n=n)[0] for n in (1, 2))
    return longest, one, two


def _document_data(data: ExtractionData) -> DocumentData:
    """The settings by which documents are read."""
    return DocumentData(document=data.document, answer=data.summary, on_bad_line=data.on_bad_line)
