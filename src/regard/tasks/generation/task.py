"""Generation: documents and what is wanted of them, as sources and targets."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import ClassVar

from regard.config import JsonValue
from regard.errors import DataError
from regard.metrics import bleu, rouge_l, rouge_n
from regard.tasks.checking import CheckedExample, ExamplesReport, check_examples
from regard.tasks.generation.documents import (
    DocumentExample,
    cut_to,
    document_fields,
    hold_out,
    pairs_of,
    parse_document,
    read_documents,
    source_of,
    told_reading,
    train_and_test,
)
from regard.tasks.generation.extracts import extracts
from regard.tasks.generation.settings import DocumentData
from regard.tasks.held_out import Parts
from regard.tasks.recipe import Recipe
from regard.tasks.sequence_task import SequenceTask
from regard.tasks.translations import Translations
from regard.text import BadLines, Line, Pair, PairTokenizer
from regard.text.reading.lines import readable
from regard.text.reading.records import record_in
from regard.text.reading.tables import Field


class GenerationTask(SequenceTask):
    """An answer or a summary for a document.

    Args:
        recipe: Whose settings hold.
        tokenizer: Of sources and targets.

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
    reads_documents: ClassVar[bool] = True

    @classmethod
    def read(cls, recipe: Recipe, split: str, *, bad_lines: BadLines | None = None) -> list[Pair]:
        """The documents of a split, each with all its answers; none if the recipe names no file."""
        data = recipe.settings(DocumentData)
        documents = read_documents(recipe.files(split), data, bad_lines=bad_lines)
        return pairs_of(documents, data, merge=True)

    @classmethod
    def read_parts(cls, recipe: Recipe, *, bad_lines: BadLines | None = None) -> Parts[Pair]:
        """The documents to train on, to validate on and to test on: no text is in two of them.

        Raises:
            DataError: The training text is not named, cannot be read, or is too short to hold some
                out.
        """
        data = recipe.settings(DocumentData)
        train, test = train_and_test(recipe, bad_lines=bad_lines)
        if not train:
            raise DataError("data.train must name the training text; got nothing.")
        valid = cls.read(recipe, "valid", bad_lines=bad_lines)
        if not valid:
            train, held = hold_out(recipe, train)
            valid = pairs_of(held, data, merge=True)
        return Parts(pairs_of(train, data), valid, pairs_of(test, data, merge=True))

    @classmethod
    def check(
        cls,
        recipe: Recipe,
        *,
        examples: int = 3,
        tokenizer: PairTokenizer | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> ExamplesReport:
        """Check the documents: see ``check_examples``."""

        def read(split: str, bad_lines: BadLines) -> list[CheckedExample]:
            documents = read_documents(
                recipe.files(split), recipe.settings(DocumentData), bad_lines=bad_lines
            )
            return [_said(document) for document in documents]

        return check_examples(read, unit="documents", examples=examples)

    @classmethod
    def baselines(cls, recipe: Recipe, split: str) -> dict[str, list[str]]:
        """Sentences of the documents, as many as the answers of training have: see ``extracts``."""
        known: list[str] = []
        with suppress(DataError):  # the text of training may be gone
            known = [pair.target for pair in cls.read_parts(recipe).train]
        if split == "valid" and not recipe.named("valid"):
            documents = hold_out(recipe, train_and_test(recipe)[0])[1]
        elif split == "test" and recipe.holds_out_test:
            documents = train_and_test(recipe)[1]
        else:
            documents = read_documents(recipe.files(split), recipe.settings(DocumentData))
        return extracts(documents, known)

    def told_reading(self) -> list[str]:
        """How much of a document is read."""
        return [told_reading(self.recipe.settings(DocumentData))]

    def asked_fields(self, *, with_answers: bool = False) -> Sequence[Field]:
        """The document, the question if the recipe has one, and the answer where that is given."""
        return document_fields(self.recipe.settings(DocumentData), with_answers=with_answers)

    def request(self, record: str | Mapping[str, JsonValue], where: str) -> Pair:
        """The document of a text, or of a JSON record, and what is asked about it.

        Raises:
            DataError: It asks nothing.
        """
        text = record if isinstance(record, str) else json.dumps(record)
        return self._asked(Line(text, where), "")

    def asked(self, line: Line, ending: str) -> Pair:
        """Parse a line of a file into a document; None for an empty line.

        Raises:
            DataError: It cannot be read.
        """
        return self._asked(line, ending) if readable(line).strip() else Pair("", "", (), line.where)

    def asked_pair(self, line: Line, ending: str) -> Pair:
        """A document and the answer to it that is given, of a line that is not empty.

        Raises:
            DataError: One of them is missing.
        """
        data = self.recipe.settings(DocumentData)
        typed = ".jsonl" if isinstance(record_in(line.text), dict) else ".tsv"
        document = parse_document(line, data, ending or typed, with_answers=True)
        return pairs_of([document], data, merge=True)[0]

    def parts(self, text: str) -> list[str]:
        """One part: what is beyond the longest text of training is not read."""
        return [cut_to(text, self.tokenizer.source, self.data.max_length)]

    def shortened(self, pair: Pair, too_long: BadLines | None) -> Pair:
        """The pair with what is read of its source."""
        (source,) = self.parts(pair.source)
        if len(source) < len(pair.source) and too_long is not None:
            longest = self.data.max_length
            too_long.add("document cut", f"{pair.where}: cut to {longest} tokens.")
        return replace(pair, source=source)

    def score(self, answers: Sequence[Translations], examples: Sequence[Pair]) -> dict[str, float]:
        """BLEU and ROUGE of the best answers."""
        language = self.data.target_language
        texts, references = [one.best.text for one in answers], [one.references for one in examples]
        return {
            "bleu": bleu(texts, references, target_language=language).value,
            "rouge_l": rouge_l(texts, references).value,
            "rouge_1": rouge_n(texts, references, n=1).value,
            "rouge_2": rouge_n(texts, references, n=2).value,
        }

    def _asked(self, line: Line, ending: str) -> Pair:
        data = self.recipe.settings(DocumentData)
        return Pair(source_of(parse_document(line, data, ending), data), "", (), line.where)


def _said(document: DocumentExample) -> CheckedExample:
    parts = tuple(filter(None, (document.question, document.text)))
    return CheckedExample(parts, (), document.where, document.answers)
