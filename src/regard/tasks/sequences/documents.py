"""Documents, questions about them and summaries of them, and answers that take no model."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean

from regard.config import JsonValue
from regard.errors import DataError, SettingError
from regard.metrics.rouge import first_words, sentence_rouge_n, words
from regard.tasks.sentence_baselines import text_rank
from regard.tasks.settings.recipe import DocumentData
from regard.text import BadLines, Line, Pair, Tokenizer, normalize, read_lines
from regard.text.reading.forms import text_suffix
from regard.text.reading.lines import readable
from regard.text.reading.records import object_of, record_in, usable, value_at
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
        question: Question about it; empty where a summary is wanted.
        answers: Right ones, none where they are asked for.
        where: ``file:line`` it was read at.
    """

    text: str
    question: str
    answers: tuple[str, ...]
    where: str


def read_documents(
    files: Sequence[Path], data: DocumentData, *, bad_lines: BadLines | None = None
) -> list[DocumentExample]:
    """The documents of some files."""
    documents: list[DocumentExample] = []
    for file in files:
        ending, layout = text_suffix(file), data
        if ending not in (".jsonl", *TABLES):
            raise SettingError(
                f"the ending of {file} must be .jsonl, .tsv or .csv; got {ending or 'none'!r}."
            )
        if ending in TABLES:
            table = read_table(file, document_fields(data, with_answers=True))
            lines, columns, ending = table.lines, table.columns, ".tsv"
            layout = replace(
                data,
                document=columns["document"],
                question=columns.get("question", 0),
                answer=columns["answer"],
            )
        else:
            lines = read_lines(file)
        documents += usable(
            lines,
            partial(parse_document, data=layout, ending=ending, with_answers=True),
            "documents",
            on_bad_line=data.on_bad_line,
            bad_lines=bad_lines,
            rule=f"{file} must hold documents and answers",
        )
    return documents


def document_fields(data: DocumentData, *, with_answers: bool = False) -> list[Field]:
    """Columns of the document, its question if the recipe has one, and perhaps its answer."""
    names = ["document", *(["question"] if data.question else [])]
    return [Field.of(data, name) for name in [*names, *["answer"] * with_answers]]


def parse_document(
    line: Line, data: DocumentData, ending: str, *, with_answers: bool = False
) -> DocumentExample:
    """Read a document, or a question, a tab and its document, or an object as in JSONL."""
    text = readable(line)
    if ending == ".tsv":
        record = _of_columns(text, line.where, data, with_answers=with_answers)
    elif ending == ".jsonl" or isinstance(record_in(text), dict):
        record = object_of(text, line.where)
    else:
        question, tab, document = text.partition("\t")
        record = {"document": document, "question": question} if tab else {"document": text}
    texts = {
        "document": _member(record, _keys(data.document, _DOCUMENT_KEYS), line.where),
        "question": value_at(record, *_keys(data.question, ("question",))) or "",
    }
    for name, value in texts.items():
        if not isinstance(value, str):
            raise DataError(f"{line.where}: {name} must be text; got {value!r}.")
    document, question = (normalize(str(value)) for value in texts.values())
    answers = _answers(record, data.answer, line.where) if with_answers else []
    right = tuple(dict.fromkeys(filter(None, map(normalize, answers))))
    for name, is_filled in (("document", document), ("answer", right or not with_answers)):
        if not is_filled:
            raise DataError(f"{line.where}: the {name} is empty.")
    return DocumentExample(document, question, right, line.where)


def _answers(record: Mapping[str, JsonValue], column: int | str, where: str) -> list[str]:
    """Every right answer: under the recipe's key, or else under any of the usual keys."""
    keys = _keys(column, _ANSWER_KEYS)
    _member(record, keys, where)  # whose error says that there is none
    is_named = isinstance(column, str) and value_at(record, column) is not None
    answers: list[str] = []
    for value in (value_at(record, key) for key in (keys[:1] if is_named else keys)):
        values = value if isinstance(value, list) else [] if value is None else [value]
        if not all(isinstance(item, str) for item in values):
            raise DataError(f"{where}: answers must be a text or a list of texts; got {value!r}.")
        answers += map(str, values)
    return answers


def _keys(column: int | str, usual: tuple[str, ...]) -> tuple[str, ...]:
    """Key of a field in objects: the recipe's column, or else the usual names."""
    return (column, *usual) if isinstance(column, str) else usual


def _member(record: Mapping[str, JsonValue], keys: Sequence[str], where: str) -> JsonValue:
    value = value_at(record, *keys)
    if value is None:
        raise DataError(
            f"{where}: expected the key {' or '.join(map(repr, keys[:4]))}; found "
            f"{', '.join(map(repr, record)) or 'none'}."
        )
    return value


def _of_columns(
    text: str, where: str, data: DocumentData, *, with_answers: bool
) -> dict[str, JsonValue]:
    cells = text.split("\t")
    fields = document_fields(data, with_answers=with_answers)
    columns = {field.name: field.column for field in fields if isinstance(field.column, int)}
    last = max(columns.values(), default=1)
    if len(cells) < last:
        raise DataError(
            f"{where}: expected at least {last} columns, found {len(cells)}. The document is in "
            f"column {data.document} (data.document), the answer in {data.answer} (data.answer)."
        )
    return {"document": text, **{name: cells[column - 1] for name, column in columns.items()}}


def pairs_of(
    documents: Sequence[DocumentExample], data: DocumentData, *, merge: bool = False
) -> list[Pair]:
    """Sources and targets: ``merge`` gives one pair for each document, else one for each answer."""
    pairs = []
    for document in documents:
        source = source_of(document, data)
        for answer in document.answers[: 1 if merge else None]:
            pairs.append(Pair(source, answer, document.answers, document.where))
    return pairs


def source_of(document: DocumentExample, data: DocumentData) -> str:
    """The question, if there is one, a separator, and the part of the document that is read."""
    text = document.text
    if data.sentences is not None and (document.question or data.shortened == "all"):
        parts = sentences(text)
        if document.question:
            parts = by_overlap(parts, document.question)
        text = chosen(parts, range(min(data.sentences, len(parts))))
    return f"{document.question} {SEPARATOR} {text}" if document.question else text


def sentences(text: str) -> list[str]:
    """The sentences of a text."""
    return [part for part in _SENTENCE_END.split(text) if part]


def chosen(parts: Sequence[str], indices: Iterable[int]) -> str:
    """Some sentences of a text, joined as its sentences are: with a space where any has one."""
    joint = " " if any(" " in part for part in parts) else ""
    return joint.join(parts[index] for index in indices)


def by_overlap(parts: Sequence[str], question: str) -> list[str]:
    """Sentences by the words they share with a question, most first; the rarer, the more."""
    vocabularies = [set(words(part)) for part in parts]
    counts = Counter(word for vocabulary in vocabularies for word in vocabulary)
    query = set(words(question))
    worth = [
        math.fsum(math.log((len(parts) + 1) / counts[word]) for word in sorted(query & vocabulary))
        for vocabulary in vocabularies
    ]
    return [parts[index] for index in sorted(range(len(parts)), key=lambda i: -worth[i])]


def cut_to(text: str, tokenizer: Tokenizer, longest: int) -> str:
    """The text, or so many tokens of it from its beginning."""
    if len(text.encode()) <= longest:  # no token is less than a byte
        return text
    pieces = tokenizer.pieces(text)
    return text if len(pieces) <= longest else text[: pieces[longest - 1].end]


def extracts(
    documents: Sequence[DocumentExample], answers: Sequence[str] = ()
) -> dict[str, list[str]]:
    """Extractive baselines by name; of summaries as many sentences as ``answers`` have."""
    cut = [sentences(document.text) for document in documents]
    if any(document.question for document in documents):
        nearest = []
        for parts, document in zip(cut, documents, strict=True):
            query = set(words(document.question))
            shared = [len(query & set(words(part))) for part in parts]
            nearest.append(parts[shared.index(max(shared))])
        return {
            "the first sentence": [parts[0] for parts in cut],
            "the sentence that shares most words with the question": nearest,
        }
    count = max(1, round(fmean(len(sentences(one)) for one in answers))) if answers else 1
    size = "sentence" if count == 1 else f"{count} sentences"
    outputs = {f"the first {size}": [chosen(parts, range(min(count, len(parts)))) for parts in cut]}
    if answers:
        counts = [len(words(one)) for one in answers]
        length, texts = max(1, round(fmean(counts))), [document.text for document in documents]
        # Without spaces between words, each character counts as one.
        is_spaced = sum(counts) < 2 * sum(len(one.split()) for one in answers)
        unit = "words" if is_spaced else "characters"
        outputs[f"the first {length} {unit}"] = [first_words(text, length) for text in texts]
    outputs[f"the {size} nearest to all"] = [_best(parts, count, _nearness) for parts in cut]
    outputs[f"TextRank's first {size}"] = [_best(parts, count, text_rank) for parts in cut]
    return outputs


def _best(
    parts: Sequence[str], count: int, ranked: Callable[[Sequence[str]], Sequence[float]]
) -> str:
    """The ``count`` sentences of the highest ranks, the earlier of equal ones, in their order."""
    ranks = ranked(parts)
    first = sorted(range(len(parts)), key=lambda index: -round(ranks[index], 9))[:count]
    return chosen(parts, sorted(first))


def _nearness(parts: Sequence[str]) -> list[float]:
    """The overlap of each sentence with the text of all, in words."""
    return sentence_rouge_n(parts, [" ".join(parts)] * len(parts), n=1)
