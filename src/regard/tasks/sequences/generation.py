"""Generation from a document: its summary, or the answer to a question about it.

To the model it is translation: a source text, which is the question and the part read of the
document, into a target text, over one vocabulary, so that words can be copied. Training, search
and evaluation are those of ``translation.py``.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import ClassVar

from regard.checks import counted
from regard.config import JsonValue
from regard.errors import DataError
from regard.metrics import bleu, rouge_l, rouge_n
from regard.progress import track
from regard.tasks.held_out import Parts, hold_out_texts, split_examples, valid_share
from regard.tasks.sequences.documents import (
    DocumentExample,
    cut_to,
    document_fields,
    extracts,
    pairs_of,
    parse_document,
    read_documents,
    source_of,
)
from regard.tasks.sequences.sequence_task import SequenceTask
from regard.tasks.sequences.translations import Translations
from regard.tasks.settings.recipe import DocumentData, Recipe
from regard.text import BadLines, Corpus, Line, Pair
from regard.text.reading.lines import readable
from regard.text.reading.records import record_in
from regard.text.reading.tables import Field

__all__ = ["DocumentData", "DocumentExample", "GenerationTask"]


class GenerationTask(SequenceTask):
    """An answer or a summary for a document.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> from regard.text import train_pair_tokenizer
        >>> table = {"data": {"max_length": 4}, "tokenizer": {"type": "words"}}
        >>> recipe = recipe_from_table({"task": "generation", **table})
        >>> text = "It rained. We stayed in."
        >>> task = GenerationTask(recipe, train_pair_tokenizer([text], [text], recipe.tokenizer))
        >>> task.request({"document": text, "question": "Why?"}, "line 1").source
        'Why? ‖ It rained. We stayed in.'
        >>> task.parts(text)
        ['It rained. We']
    """

    metrics: ClassVar[Mapping[str, int]] = {"bleu": 1, "rouge_l": 1, "rouge_1": 1, "rouge_2": 1}
    main_metric: ClassVar[str] = "rouge_l"
    data: DocumentData

    @classmethod
    def read(cls, recipe: Recipe, split: str, *, bad_lines: BadLines | None = None) -> list[Pair]:
        """The documents of a split, each with all its answers; none if the recipe names no file."""
        data = recipe.settings(DocumentData)
        documents = read_documents(recipe.files(split), data, bad_lines=bad_lines)
        return pairs_of(documents, data, merge=True)

    @classmethod
    def read_parts(cls, recipe: Recipe, *, bad_lines: BadLines | None = None) -> Parts[Pair]:
        """The documents to train on, to validate on and to test on: no text is in two of them."""
        data, parts = recipe.settings(DocumentData), cls._documents(recipe, bad_lines)
        valid, test = (pairs_of(split, data, merge=True) for split in (parts.valid, parts.test))
        return Parts(pairs_of(parts.train, data), valid, test)

    @staticmethod
    def named_texts(example: Pair) -> dict[str, str]:
        return {"document": example.source, "answer": " | ".join(example.references)}

    @classmethod
    def baselines(cls, recipe: Recipe, split: str) -> dict[str, list[str]]:
        """Sentences of the documents, as many as the answers of training have: see ``extracts``."""
        answers: list[str] = []
        with suppress(DataError):  # the text of training may be gone
            answers = [pair.target for pair in cls.read_parts(recipe).train]
        is_held = {"valid": not recipe.named("valid"), "test": recipe.holds_out_test}
        if is_held.get(split):
            return extracts(getattr(cls._documents(recipe), split), answers)
        return extracts(read_documents(recipe.files(split), recipe.settings(DocumentData)), answers)

    def describe(self) -> list[str]:
        return [*super().describe(), self._describe_reading()]

    def _describe_reading(self) -> str:
        data, whole = self.data, f"read whole, up to {self.data.max_length:,} tokens"
        if data.sentences is None:
            return f"documents are {whole}"
        count = counted(data.sentences, "sentences")
        if data.shortened == "all":
            return (
                f"{count} of a document are read: nearest to its question; without one, the first"
            )
        near = f"{count} of a document are read, nearest to it"
        return f"with a question, {near}; others are {whole}"

    def input_fields(self, *, with_answers: bool = False) -> Sequence[Field]:
        return document_fields(self.data, with_answers=with_answers)

    def request(self, record: str | Mapping[str, JsonValue], where: str) -> Pair:
        """The document of a text, or of a JSON record, and the question about it."""
        text = record if isinstance(record, str) else json.dumps(record)
        return self._parse(Line(text, where), "")

    def parse_line(self, line: Line, ending: str) -> Pair:
        return self._parse(line, ending) if readable(line).strip() else Pair("", "", (), line.where)

    def parse_pair(self, line: Line, ending: str) -> Pair:
        typed = ".jsonl" if isinstance(record_in(line.text), dict) else ".tsv"
        document = parse_document(line, self.data, ending or typed, with_answers=True)
        return pairs_of([document], self.data, merge=True)[0]

    def parts(self, text: str) -> list[str]:
        """One part: text beyond the longest of training is not read."""
        return [cut_to(text, self.tokenizer.source, self.data.max_length)]

    def encode_corpus(self, pairs: Sequence[Pair], too_long: BadLines | None) -> Corpus:
        """Pairs to learn from, with the part of each source that is read, as ids in flat arrays."""
        longest, cut = self.data.max_length, list[Pair]()
        for pair in track("cutting", pairs, len(pairs)):
            (source,) = self.parts(pair.source)
            if len(source) < len(pair.source) and too_long is not None:
                too_long.add("document cut", f"{pair.where}: cut to {longest} tokens.")
            cut.append(replace(pair, source=source))
        return super().encode_corpus(cut, too_long)

    def score(self, answers: Sequence[Translations], examples: Sequence[Pair]) -> dict[str, float]:
        language = self.data.target_language
        texts, references = [one.best.text for one in answers], [one.references for one in examples]
        return {
            "bleu": bleu(texts, references, target_language=language).value,
            "rouge_l": rouge_l(texts, references).value,
            "rouge_1": rouge_n(texts, references, n=1).value,
            "rouge_2": rouge_n(texts, references, n=2).value,
        }

    def _parse(self, line: Line, ending: str) -> Pair:
        document = parse_document(line, self.data, ending)
        return Pair(source_of(document, self.data), "", (), line.where)

    @classmethod
    def _documents(
        cls, recipe: Recipe, bad_lines: BadLines | None = None
    ) -> Parts[DocumentExample]:
        """The documents of a training: no text is in two of its parts."""
        data, text_of = recipe.settings(DocumentData), attrgetter("text")
        return split_examples(
            recipe,
            lambda split: read_documents(recipe.files(split), data, bad_lines=bad_lines),
            text_of,
            partial(hold_out_texts, text_of=text_of, unit="documents", share=valid_share(recipe)),
        )
