"""Generation from a document: its summary, or the answer to a question about it.

To the model it is translation: a source text, which is the question and what is read of the
document, into a target text, over one vocabulary, so that words can be copied. Training, search
and evaluation are those of ``translation.py``.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from pathlib import Path

from regard.config import JsonValue
from regard.errors import DataError, SettingError
from regard.metrics.rouge import words
from regard.tasks.generation.settings import DocumentData
from regard.tasks.held_out import hold_out_by_hash, hold_out_texts, valid_share
from regard.tasks.recipe import Recipe
from regard.text import BadLines, Line, Pair, Tokenizer, normalize, read_lines
from regard.text.reading.lines import readable, text_suffix
from regard.text.reading.records import found_at, object_of, record_in, usable
from regard.text.reading.tables import TABLES, Field, read_table

# Between the question and the document.
SEPARATOR = "‖"
_SENTENCE_END = re.compile(
    r"(?<=[.!?])\s+|(?<=[.!?]['\"’”])\s+|(?<=[。！？])(?![”’」』])|(?<=[。！？][”’」』])"
)
_DOCUMENT_KEYS = ("document", "context")
_ANSWER_KEYS = ("answers", "answer", "summary", "summaries", "highlights", "headline")


@dataclass(frozen=True, slots=True)
class DocumentExample:
    """Fields of a document, read from a line.

    Attributes:
        text: The document.
        question: What is asked about it; empty where a summary is wanted.
        answers: Right ones, none where they are asked for.
        where: ``file:line`` it was read at.

    Example:
        >>> line = Line('{"document": "It rained.", "question": "Why?"}', "tales.jsonl:1")
        >>> parse_document(line, DocumentData(), ".jsonl")
        DocumentExample(text='It rained.', question='Why?', answers=(), where='tales.jsonl:1')
    """

    text: str
    question: str
    answers: tuple[str, ...]
    where: str


_SHORTENED: dict[str, Callable[[DocumentExample], bool]] = {
    "all": lambda document: True,
    "asked": lambda document: bool(document.question),
}


def read_documents(
    files: Sequence[Path], data: DocumentData, *, bad_lines: BadLines | None = None
) -> list[DocumentExample]:
    """The documents of some files."""
    found: list[DocumentExample] = []
    for file in files:
        ending = text_suffix(file)
        if ending not in (".jsonl", *TABLES):
            raise SettingError(
                f"the ending of {file} must be .jsonl, .tsv or .csv; got {ending or 'none'!r}."
            )
        lines, layout = _rows(file, data) if ending in TABLES else (read_lines(file), data)
        found += usable(
            lines,
            partial(
                parse_document,
                data=layout,
                ending=".tsv" if ending in TABLES else ending,
                with_answers=True,
            ),
            "documents",
            on_bad_line=data.on_bad_line,
            bad_lines=bad_lines,
            rule=f"{file} must hold documents and answers",
        )
    return found


def _rows(file: Path, data: DocumentData) -> tuple[Iterable[Line], DocumentData]:
    """The rows of a table, and the settings with the numbers of its columns."""
    table = read_table(file, document_fields(data, with_answers=True))
    numbers = table.columns
    return table.lines, replace(
        data,
        document=numbers["document"],
        question=numbers.get("question", 0),
        answer=numbers["answer"],
    )


def document_fields(data: DocumentData, *, with_answers: bool = False) -> list[Field]:
    """Read a document from a row or an object; the answer only where it is required."""
    names = ["document", *(["question"] if data.question else [])]
    return [Field.of(data, name) for name in [*names, *["answer"] * with_answers]]


def parse_document(
    line: Line, data: DocumentData, ending: str, *, with_answers: bool = False
) -> DocumentExample:
    """Read a document from a line of a file, or from one typed in."""
    text = readable(line)
    if ending == ".tsv":
        found = _of_columns(text, line.where, data, with_answers=with_answers)
    elif ending == ".jsonl" or isinstance(record_in(text), dict):
        found = _of_record(text, line.where, data, with_answers=with_answers)
    else:
        question, tab, document = text.partition("\t")
        found = (document, question, ()) if tab else (text, "", ())
    document, question, answers = normalize(found[0]), normalize(found[1]), found[2]
    right = tuple(dict.fromkeys(filter(None, map(normalize, answers))))
    for name, value in (("document", document), ("answer", right or not with_answers)):
        if not value:
            raise DataError(f"{line.where}: the {name} is empty.")
    return DocumentExample(document, question, right, line.where)


def _of_record(
    text: str, where: str, data: DocumentData, *, with_answers: bool
) -> tuple[str, str, Sequence[str]]:
    record = object_of(text, where)
    document = _member(record, _keys(data.document, _DOCUMENT_KEYS), where)
    question = found_at(record, *_keys(data.question, ("question",))) or ""
    said = _said(record, data.answer, where) if with_answers else []
    for name, value in (("document", document), ("question", question)):
        if not isinstance(value, str):
            raise DataError(f"{where}: {name} must be text; got {value!r}.")
    return str(document), str(question), said


def _said(record: Mapping[str, JsonValue], column: int | str, where: str) -> list[str]:
    """Every right answer: what the recipe names, or else under whichever of the usual keys."""
    keys = _keys(column, _ANSWER_KEYS)
    _member(record, keys, where)  # whose error says that there is none
    is_named = isinstance(column, str) and found_at(record, column) is not None
    found: list[str] = []
    for said in (found_at(record, key) for key in (keys[:1] if is_named else keys)):
        if said is None:
            continue
        given = said if isinstance(said, list) else [said]
        answers = [one for one in given if isinstance(one, str)]
        if answers != given:
            raise DataError(f"{where}: answers must be a text or a list of texts; got {said!r}.")
        found += answers
    return found


def _keys(column: int | str, usual: tuple[str, ...]) -> tuple[str, ...]:
    """Key of a field in objects: the recipe's column, or else the usual names."""
    return (column, *usual) if isinstance(column, str) else usual


def _member(record: Mapping[str, JsonValue], keys: Sequence[str], where: str) -> JsonValue:
    found = found_at(record, *keys)
    if found is not None:
        return found
    raise DataError(
        f"{where}: expected the key {' or '.join(map(repr, keys[:4]))}; found "
        f"{', '.join(map(repr, record)) or 'none'}."
    )


def _of_columns(
    text: str, where: str, data: DocumentData, *, with_answers: bool
) -> tuple[str, str, Sequence[str]]:
    cells = text.split("\t")
    fields = document_fields(data, with_answers=with_answers)
    places = {field.name: field.column for field in fields if isinstance(field.column, int)}
    last = max(places.values(), default=1)
    if len(cells) < last:
        raise DataError(
            f"{where}: expected at least {last} columns, found {len(cells)}. The document is in "
            f"column {data.document} (data.document), the answer in {data.answer} (data.answer)."
        )
    said = {name: cells[place - 1] for name, place in places.items()}
    answers = [said["answer"]] if "answer" in said else []
    return said.get("document", text), said.get("question", ""), answers


def pairs_of(
    documents: Sequence[DocumentExample], data: DocumentData, *, merge: bool = False
) -> list[Pair]:
    """Source and target of a document."""
    pairs = []
    for document in documents:
        source = source_of(document, data)
        for answer in document.answers[: 1 if merge else None]:
            pairs.append(Pair(source, answer, document.answers, document.where))
    return pairs


def source_of(document: DocumentExample, data: DocumentData) -> str:
    """The question, if there is one, a separator, and what is read of the document."""
    text = document.text
    if data.sentences is not None and _SHORTENED[data.shortened](document):
        parts = sentences(text)
        if document.question:
            parts = by_overlap(parts, document.question)
        text = chosen(parts, range(min(data.sentences, len(parts))))
    return f"{document.question} {SEPARATOR} {text}" if document.question else text


def told_reading(data: DocumentData) -> str:
    """Describe how documents are read, in one line."""
    whole = f"read whole, up to {data.max_length:,} tokens"
    if data.sentences is None:
        return f"documents are {whole}"
    count = f"{data.sentences} sentence" + "s" * (data.sentences > 1)
    if data.shortened == "asked":
        return f"with a question, {count} of a document are read, nearest to it; others are {whole}"
    return f"{count} of a document are read: nearest to its question; without one, the first"


def sentences(text: str) -> list[str]:
    """The sentences of a text."""
    return [part for part in _SENTENCE_END.split(text) if part]


def chosen(parts: Sequence[str], places: Iterable[int]) -> str:
    """Some sentences of a text, joined as its sentences are: with a space where any has one."""
    joint = " " if any(" " in part for part in parts) else ""
    return joint.join(parts[place] for place in places)


def by_overlap(parts: Sequence[str], question: str) -> list[str]:
    """Sentences by the words they share with a question, most first; the rarer, the more."""
    held = [set(words(part)) for part in parts]
    counts = Counter(word for each in held for word in each)
    asked = set(words(question))
    worth = [
        math.fsum(math.log((len(parts) + 1) / counts[word]) for word in sorted(asked & each))
        for each in held
    ]
    return [parts[place] for place in sorted(range(len(parts)), key=lambda i: -worth[i])]


def cut_to(text: str, tokenizer: Tokenizer, longest: int) -> str:
    """The text, or so many tokens of it from its beginning."""
    if len(text.encode()) <= longest:  # no token is less than a byte
        return text
    pieces = tokenizer.pieces(text)
    return text if len(pieces) <= longest else text[: pieces[longest - 1].end]


def train_and_test(
    recipe: Recipe, *, bad_lines: BadLines | None = None
) -> tuple[list[DocumentExample], list[DocumentExample]]:
    """The documents of the training text, and those of them that the test holds out."""
    documents = read_documents(
        recipe.files("train"), recipe.settings(DocumentData), bad_lines=bad_lines
    )
    if not recipe.holds_out_test:
        return documents, []
    return hold_out_by_hash(documents, attrgetter("text"))


def hold_out(
    recipe: Recipe, documents: Sequence[DocumentExample]
) -> tuple[list[DocumentExample], list[DocumentExample]]:
    """The documents to train on and those to validate on: no text is among both."""
    return hold_out_texts(
        documents, attrgetter("text"), unit="documents", share=valid_share(recipe)
    )
