"""Questions about a text: SQuAD's JSON, JSONL with a question a line, tables with one a row."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

from regard.checks import choose
from regard.config import JsonValue
from regard.errors import DataError
from regard.text.normalization import normalize
from regard.text.reading.forms import json_values, text_suffix
from regard.text.reading.lines import Line, read_lines, readable
from regard.text.reading.records import Handling, object_of, usable, value_at
from regard.text.reading.tables import Field, read_table, row_splitter

# Columns of a question, and of the text that answers it.
QUESTION_FIELDS = (Field("question", 1), Field("context", 2))
# A question's id in SQuAD's layout.
_ID = re.compile(r'"id"\s*:\s*("(?:[^"\\\n]|\\.)*"|\d+)')


@dataclass(frozen=True, slots=True)
class Answer:
    """A reference answer; its start in the context is −1 where it does not stand there."""

    text: str
    start: int = -1

    @property
    def end(self) -> int:
        """The position after the last character."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a context; no answers make it unanswerable, or a request."""

    text: str
    context: str
    answers: tuple[Answer, ...]
    choices: tuple[str, ...] = ()
    article: str = ""
    id: str = ""
    where: str = ""

    def fingerprint(self) -> str:
        """The text, context and answers, which identify the question."""
        return "\0".join((self.text, self.context, *(a.text for a in self.answers), ""))


def read_questions(
    path: Path, *, spans: bool = True, **handling: Unpack[Handling]
) -> Iterator[Question]:
    """Read the questions of one file; with ``spans``, answers must stand in their context."""
    read = choose(f"the ending of {path}", text_suffix(path), _READERS)
    yield from usable(
        read(path),
        lambda item: _question(item, spans),
        "questions",
        rule=f"{path} must hold questions with answers",
        **handling,
    )


def question_of(record: Mapping[str, JsonValue], where: str) -> Question:
    """The question of a record without answers."""
    text, context = _text(record, "question", where), _text(record, "context", where)
    choices = _choices(record, where)
    name = str(record.get("story") or record.get("title") or "")
    return Question(normalize(text), context, (), choices, name, str(record.get("id", "")), where)


def parse_question(record: str | Mapping[str, JsonValue], where: str) -> Question:
    """The question of a JSON record, or of a line: question, tab, context."""
    if isinstance(record, str):
        question, tab, context = record.partition("\t")
        if not tab:
            raise DataError(
                f"{where}: expected a question, a tab and the text that answers it; got "
                f"{record!r}. Or give .jsonl with question and context."
            )
        record = {"question": question, "context": context}
    return question_of(record, where)


def normalized_positions(text: str) -> list[int]:
    """Map each character of ``normalize(text)`` to its position in the text."""
    positions: list[int] = []
    for word in re.finditer(r"\S+", text):
        if positions:
            positions.append(word.start() - 1)
        positions.extend(range(*word.span()))
    return positions


# A line of JSON; or a question's record in SQuAD, and its place in the file.
_Item = Line | tuple[object, str]


def _squad(path: Path) -> Iterator[_Item]:
    text = "\n".join(readable(line) for line in read_lines(path))
    roots = list(json_values(text, str(path)))
    lines = _lines_of_questions(text)
    articles = roots
    if len(roots) == 1 and not text.lstrip().startswith("["):
        articles = list(_list(roots[0], "data", str(path)))
    for index, article in enumerate(articles):
        title = str(article.get("title", "")) if isinstance(article, dict) else ""
        inside = f"{path}: data[{index}]"
        is_paragraph = isinstance(article, dict) and "qas" in article
        paragraphs = [article] if is_paragraph else _list(article, "paragraphs", inside)
        for number, paragraph in enumerate(paragraphs):
            where = inside if is_paragraph else f"{inside}.paragraphs[{number}]"
            keys = ("context", "context_text")  # CMRC's first layout has the second
            context = value_at(paragraph, *keys) if isinstance(paragraph, Mapping) else None
            for qa in _list(paragraph, "qas", where):
                if not isinstance(qa, dict):
                    yield qa, f"{where}.qas"
                    continue
                line = lines.get(str(qa.get("id")))
                name = f"{path}{'' if line is None else f':{line}'}"
                question = qa.get("question", qa.get("query_text"))
                record = {**qa, "question": question, "title": title, "context": context}
                yield record, f"{name}: question {qa.get('id') or question}"


def _rows(path: Path) -> Iterator[_Item]:
    """The rows of a table; one without an answer is of a question that the text does not answer."""
    table = read_table(path, (*QUESTION_FIELDS, Field("answer", 3)))
    names = {name.casefold() for name in table.header or ()}
    if "answer_start" in names:  # then SQuAD's own name for an answer may be meant
        is_text = "text" in names and not names & {"answer", "answers"}
        answers = Field("answer", "text" if is_text else 3)
        starts = Field("answer_start", "answer_start")
        table = read_table(path, (*QUESTION_FIELDS, answers, starts))

    def wrong_columns(line: Line, count: int, expected: int) -> DataError:
        return DataError(f"{line.where}: expected {expected} columns, found {count}.", "columns")

    split = row_splitter(table, wrong_columns)
    for line in table.lines:
        if not line.text.strip():
            continue
        try:
            cells = split(line)
        except DataError as error:
            yield error, line.where
            continue
        values = {name: cells[column - 1] for name, column in table.columns.items()}
        text, at = values["answer"].strip(), values.get("answer_start", "")
        is_there = at.isdecimal() and values["context"].startswith(text, int(at))
        answer = {"text": text, "answer_start": int(at) if is_there else None}
        yield {**values, "answers": [answer], "is_impossible": not text}, line.where


def _lines_of_questions(text: str) -> dict[str, int]:
    """The line of each question's id in a JSON file."""
    numbers: dict[str, int] = {}
    line, before = 1, 0
    for match in _ID.finditer(text):
        line, before = line + text.count("\n", before, match.start()), match.start()
        numbers.setdefault(str(json.loads(match[1])), line)
    return numbers


def _question(item: _Item, spans: bool) -> Question:
    if isinstance(item, Line):
        where = item.where
        record = object_of(readable(item), where)
        if spans and "answers" in record and answer_list(record["answers"]) == []:
            record["is_impossible"] = True  # so are SQuAD 2's rows in tables
    else:
        value, where = item
        if isinstance(value, DataError):
            raise value
        if not isinstance(value, dict):
            raise DataError(f"{where}: expected a JSON object, found {value!r}.")
        record = value
    question = question_of(record, where)
    if record.get("is_impossible"):
        return question
    answers = record.get("answers", record.get("answer"))
    answers = [answers] if isinstance(answers, str) else answer_list(answers)
    if not isinstance(answers, list) or not answers:
        raise DataError(
            f"{where}: answers must hold at least one; got {_quote(answers)}. Of a question that "
            "its context does not answer, set is_impossible to true."
        )
    parsed = tuple(_answer(answer, question.context, where, spans) for answer in answers)
    return replace(question, answers=parsed)


def answer_list(answers: JsonValue) -> JsonValue:
    """Answers each by itself, where tables have one list of texts and one of positions."""
    if not isinstance(answers, Mapping):
        return answers
    if isinstance(answers.get("text"), str):
        return [dict(answers)]
    lists = [column for column in answers.values() if isinstance(column, list)]
    return [dict(zip(answers, row, strict=True)) for row in zip(*lists, strict=False)]


def _answer(answer: JsonValue, context: str, where: str, spans: bool) -> Answer:
    record = answer if isinstance(answer, Mapping) else {"text": answer}
    text = _text(record, "text", where, name="an answer's text")
    start = record.get("answer_start")
    if start is None:
        start = context.find(text)
    if not isinstance(start, int) or isinstance(start, bool):
        raise DataError(f"{where}: answer_start must be a whole number; got {start!r}.")
    if not spans:
        return Answer(text, start if start >= 0 and context.startswith(text, start) else -1)
    if start < 0 or not context.startswith(text, start):
        raise DataError(_misplaced(text, start, context, where))
    return Answer(text, start)


def _misplaced(text: str, start: int, context: str, where: str) -> str:
    """Message about an answer that is not at its offset: the text there, and the cure."""
    position = context.find(text)
    if position < 0:
        cure = "It stands nowhere there: correct the answer, or leave it out: on_bad_line = skip."
    else:
        cure = f"Set answer_start to {position}, where it stands first."
    actual = f"{context[start : start + len(text)]!r} at {start}" if start >= 0 else "no position"
    return f"{where}: the answer must stand in its context; got {actual} for {text!r}. {cure}"


def _choices(record: Mapping[str, JsonValue], where: str) -> tuple[str, ...]:
    choices = record.get("choices", [])
    if not isinstance(choices, list) or not all(isinstance(c, str) and c.strip() for c in choices):
        raise DataError(f"{where}: choices must be texts; got {choices!r}.")
    return tuple(choices)


def _text(record: Mapping[str, JsonValue], key: str, where: str, *, name: str | None = None) -> str:
    value = record.get(key)
    if not isinstance(value, str) or not value.strip():
        cure = (
            "A question needs a question, the context that answers it and, to learn from, answers."
        )
        raise DataError(f"{where}: {name or key} must be text; got {_quote(value)}. {cure}")
    return value


def _quote(value: object) -> str:
    return "none" if value is None else repr(value)


def _list(record: object, key: str, where: str) -> Sequence[JsonValue]:
    members = record.get(key) if isinstance(record, dict) else None
    if not isinstance(members, list):
        raise DataError(
            f"{where} must hold a list at {key!r}, as SQuAD's files do: data, paragraphs, qas; got "
            f"{'none' if members is None else type(members).__name__}."
        )
    return members


_READERS: dict[str, Callable[[Path], Iterator[_Item]]] = {
    ".csv": _rows,
    ".json": _squad,
    ".jsonl": read_lines,
    ".tsv": _rows,
}
