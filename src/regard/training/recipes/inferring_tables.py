"""Infers the task of a table from the names and the contents of its columns."""

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from pathlib import Path
from statistics import correlation

from regard.config import JsonValue
from regard.errors import DataError
from regard.text.languages import guess_language
from regard.text.normalization import has_unspaced
from regard.text.reading.lines import Line, readable
from regard.text.reading.tables import csv_rows, known_names
from regard.training.recipes.inferred_task import (
    LEAST_ROWS,
    PAIRS,
    InferredTask,
    InferredTasks,
    Settings,
    columns_set,
    is_label,
    labelled,
    summaries,
)

# A summary's share of its document's length, and the characters from which a text is a document.
_SUMMARY_SHARE, _LONG = 0.5, 150
# Texts of a pair are at most so many times as long as each other, and have few labels.
_PAIR_RATIO, _PAIR_LABELS = 4, 3
# A text that is so many times shorter than another is a remark on it: a place, a user, a product.
_REMARK_RATIO = 4
# Numbers of so few kinds may be labels; a share of cells that decides what a column holds.
_LABEL_NUMBERS, _MOST = 20, 0.9
_SHOWN = 4  # labels
_NAME = re.compile(r"#?[^\W\d][\w.-]*( [\w#.-]+){0,3}|#\d( \w+)?")
_NUMBER = re.compile(
    r"(?=.*\d)[-+]?[$€£¥]?[-+]?(\d+|\d{1,3}(,\d{3})+)?(\.\d*)?([eE][-+]?\d+)?\s?%?"
    r"|[-+]?\d{1,3}(\.\d{3})*,\d+|[-+]?\d+,\d+"
)
_DATE = re.compile(
    r"\d{4}([-/.])\d{1,2}\1\d{1,2}\b.*|\d{1,2}([-/.])\d{1,2}\2\d{2,4}\b.*|\d{4}-\d{2}"
    r"|\d{1,2}:\d{2}(:\d{2})?([.,]\d+)?( ?[ap]m)?|\d{4}年(\d{1,2}月(\d{1,2}日)?)?.*"
    r"|((mon|tue|wed|thu|fri|sat|sun)[a-z]*,? )?((jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
    r"[a-z]*\.? \d{1,2}|\d{1,2}(st|nd|rd|th)?[ -](jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
    r"[a-z]*)\b.*\d{2,4}",
    re.IGNORECASE,
)
_LINK = re.compile(r"(https?://|www\.|/)\S*|[\w.+-]+@[\w-]+\.\w+|[\w-]+(\.[\w-]+)*\.[a-z]{2,4}")
# A word that has a digit or a sign of codes in it.
_CODE = re.compile(r"@\w+|#?(?=\S*\d)[\w.:/+#-]+|[0-9a-fA-F]{8}[0-9a-fA-F-]*|\S+_\S+")
_SENTENCE = re.compile(r".*[.!?。！？…][\"'”’」』)）]?", re.DOTALL)
_WORD = re.compile(r"[^\W\d_]+")
# The words of a name: review_text, reviewText, Review Text.
_NAME_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_A-Za-z]+|#")
# What columns are called that are about an example rather than a part of it, those that are a
# headline, that hold a number to predict, that grade a text, and that answer a question.
_REMARKS, _HEADLINES, _GOALS, _GRADES, _ANSWERS = (
    frozenset(names.split())
    for names in (
        "id ids idx index no uuid guid key asin isbn user users username author authors byline "
        "name nickname screenname location place date time timestamp created updated year month "
        "day url link image file filename path publisher hostname host language lang locale "
        "country region timezone split fold subset partition set query flag count "
        "votes likes retweets confidence attribution licence license keyword keywords annotator "
        "worker rater gender age genre "
        "编号 序号 日期 时间 链接 网址 用户 用户名 昵称 作者 来源 地区 语言",
        "title titles headline headlines subject heading 标题 题目 主题 新闻标题",
        "target y label price output value 目标 价格",
        "score overall grade",
        "answer answers response reply 答案 回答 回复",
    )
)
_LANGUAGES = known_names("source") & known_names("target")
_NAMED_PAIRS = {("1", "2"), ("a", "b"), ("一", "二"), ("甲", "乙")}


@dataclass(frozen=True, eq=False)
class Column:
    """A column of a table by its name or its number from 1, or the values at a key of objects."""

    called: int | str
    cells: Sequence[str]

    @property
    def name(self) -> str:
        """The name in small letters; empty where there is none."""
        return self.called.casefold() if isinstance(self.called, str) else ""

    @cached_property
    def kind(self) -> str:
        """``text``, ``label``, ``number``, ``date``, ``link``, ``code``, or ``none`` of these."""
        cells = [cell for cell in self.cells if cell and cell.casefold() not in ("nan", "null")]
        is_named = is_called(self, "label") and not is_exactly(self, "target", "text")
        is_named = is_named and not self.is_remark
        is_constant = len(set(cells)) < 2 and len(cells) >= LEAST_ROWS
        if len(cells) < len(self.cells) / 2 or (is_constant and self.name not in known_names()):
            return "none"
        if _most(_DATE, cells):
            return "date"
        if _most(_NUMBER, cells):
            return "label" if self._has_classes(cells, is_named=is_named) else "number"
        is_class = is_label(cells) and not self.is_remark
        is_text = is_exactly(self, "text", "first", "second")
        if not is_text and (is_class or (is_named and not self.has_words)):
            return "label"
        if _most(_LINK, cells):
            return "link"
        if (_most(_CODE, cells) or self.is_remark) and not self.has_words:
            return "code"
        return "text"

    def _has_classes(self, cells: Sequence[str], *, is_named: bool) -> bool:
        """Whether these numbers are labels."""
        kinds = set(cells)
        is_whole = all(re.fullmatch(r"-?\d+(\.0*)?", cell) for cell in kinds)
        if is_named:
            return is_whole or len(kinds) <= _LABEL_NUMBERS
        return is_whole and len(kinds) <= _LABEL_NUMBERS and is_label(cells) and not self.is_remark

    @property
    def is_remark(self) -> bool:
        """Whether its name says that it is about an example rather than a part of it."""
        words = _words_of(self)
        last = words[-1] if words else ""
        if last in known_names("text") | known_names("label"):
            return False
        is_number_of = bool(known_names("label") & {*words}) and last in ("id", "index")
        return not is_number_of and bool(_REMARKS & {self.name, *words})

    @property
    def is_mixed(self) -> bool:
        """Whether its cells change as those of labels do, not as those of chapters of a book."""
        changes = sum(one != other for one, other in pairwise(self.cells))
        return changes > 3 * len(set(self.cells))

    @cached_property
    def has_words(self) -> bool:
        """Whether most of its cells are of several words."""
        several = sum(" " in cell or has_unspaced(cell) for cell in self.cells)
        return several > len(self.cells) / 2

    @cached_property
    def size(self) -> float:
        """Characters of a cell, in the mean."""
        return sum(map(len, self.cells)) / len(self.cells)

    @cached_property
    def is_varied(self) -> bool:
        """Whether nearly every cell is filled, and unlike the others."""
        return len({*self.cells} - {""}) >= _MOST * len(self.cells)

    def __str__(self) -> str:
        called = _named(self)
        if self.kind != "label":
            what = {
                "text": f"texts of {self.size:.0f} characters",
                "code": "ids",
                "none": "few values",
            }
            return f"{called} has {what.get(self.kind, f'{self.kind}s')}"
        labels = list(dict.fromkeys(self.cells))
        more = ", …" if len(labels) > _SHOWN else ""
        return f"{called} has {len(labels)} labels ({', '.join(labels[:_SHOWN])}{more})"


def of_table(
    path: Path, lines: Sequence[Line], ending: str, later: Sequence[Sequence[Line]] = ()
) -> InferredTasks | None:
    """Infer the tasks of a table from its first lines and later ones; None of one column."""
    columns = columns_of(lines, ending, later)
    if not columns:
        for row in csv_rows(lines):
            readable(row)
        raise DataError(f"{path} must hold rows; got none.")
    return of_columns(columns, path, ending) if len(columns) > 1 else None


def of_columns(columns: Sequence[Column], path: Path, ending: str) -> InferredTasks:
    """Infer the tasks of more than one column."""
    kinds = {
        kind: [column for column in columns if column.kind == kind]
        for kind in ("text", "label", "number", "date", "link", "code")
    }
    texts, labels, numbers = kinds["text"], _different(kinds["label"]), kinds["number"]
    if not texts:  # few sentences, that come again and again
        texts = [column for column in labels if column.has_words]
        labels = [column for column in labels if not column.has_words]
    if not texts and len(columns) == 2 and not labels:
        texts = [column for column in columns if column.kind == "code" and not column.is_remark]
    if not texts:
        return _of_numbers(columns, numbers, path)
    texts = _main(texts, has_labels=bool(labels))
    why = "; ".join(map(str, [*texts, *labels, *numbers][:4]))
    if named := _of_names(columns, texts, labels, why):
        return named
    if labels:
        return _of_labels(texts, labels, why)
    if len(texts) > 1:
        scores = [column for column in numbers if _is_score(column)]
        if scores and not _are_two_languages(*(_named_pair(texts) or (texts[0], texts[1]))):
            raise _no_job(path, f"{why}: pairs of texts with a number", _rounding(scores[0]))
        return _of_texts(texts, why)
    return _of_one_text(texts[0], numbers, path, ending, why)


def _of_names(
    columns: Sequence[Column], texts: Sequence[Column], labels: Sequence[Column], why: str
) -> InferredTasks | None:
    """Infer a task from the names of columns, if they are enough."""

    def called(*fields: str) -> Column | None:
        exact = [text for text in texts if is_exactly(text, *fields)]
        return next(iter([*exact, *(text for text in texts if is_called(text, *fields))]), None)

    if labels and (pair := _named_pair(texts)):
        return _with_labels(pair, labels, why)
    question, context = called("question"), called("context")
    answer = next((each for each in (*texts, *columns) if each.name in _ANSWERS), None)
    if question and answer and question is not answer:
        if context and context not in (question, answer):
            settings = _renamed(document=context, question=question, answer=answer)
            what = "questions about a text, whose answers are written"
            return InferredTasks(
                (InferredTask(what, why, "generation-copy", settings),), is_sure=True
            )
        if answer in texts and not labels:
            pairs = _pairs(question, answer, why, is_whole=len(columns) == 2)
            return InferredTasks((pairs,), is_sure=True)
    source, target = called("source"), called("target")
    sides = [text for text in texts if _LANGUAGES & {text.name, *_words_of(text)}]
    if len(sides) > 1 and len(sides) == len(texts):
        candidates = [
            _pairs(*two, why, is_whole=len(columns) == 2) for two in combinations(sides, 2)
        ]
        return InferredTasks(tuple(candidates), is_sure=len(sides) == 2)
    summary = next((text for text in texts if _is_summary(text)), None)
    if source and target and len({source, target} - {summary}) == 2:
        return InferredTasks(
            (_pairs(source, target, why, is_whole=len(columns) == 2),), is_sure=True
        )
    rest = [text for text in texts if text is not summary]
    documents = [text for text in rest if is_called(text, "document", "source")] or rest
    if summary is None or not documents:
        return None
    document = max(documents, key=lambda text: text.size)
    short = summaries(document.cells, why, _renamed(document=document, answer=summary))
    ranked = [label for label in labels if _is_called_label(label)]
    if not ranked:
        return InferredTasks((short,), is_sure=True)
    candidates = [
        labelled(document.cells, why, _renamed(text=document, label=each)) for each in ranked
    ]
    return InferredTasks((*candidates, short), is_sure=False)


def _with_labels(pair: Sequence[Column], labels: Sequence[Column], why: str) -> InferredTasks:
    """Pairs of texts whose names say that they are, with each label that there is."""
    ranked = _ranked(labels)
    first, second = pair
    candidates = [
        InferredTask(PAIRS, why, "pair-matching", _renamed(first=first, second=second, label=label))
        for label in ranked
    ]
    return InferredTasks(tuple(candidates), is_sure=_is_clear(ranked))


def _of_labels(texts: Sequence[Column], labels: Sequence[Column], why: str) -> InferredTasks:
    """Texts, or pairs of texts, with labels."""
    ranked = _ranked(labels)
    called = [text for text in texts if is_called(text, "text") and not _is_headline(text)]
    longest = max(called or texts, key=lambda column: column.size)
    candidates = [
        labelled(longest.cells, why, _renamed(text=longest, label=label)) for label in ranked
    ]
    candidates += [
        labelled(text.cells, why, _renamed(text=text, label=ranked[0]))
        for text in texts
        if text is not longest
    ]
    if len(texts) == 2 and len(ranked) == 1:
        return _of_two_texts(texts, ranked[0], candidates, why, is_named=bool(called))
    if len(ranked) > 1 and len(texts) == 1 and not _is_numeric(ranked[1]):
        settings = _renamed(text=longest, label=ranked[0], aspect=ranked[1])
        what = "texts with labels, for one aspect or another"
        candidates.insert(1, InferredTask(what, why, "classification-aspect", settings))
    is_one = len(texts) == 1 or (len(called) == 1 and not any(map(_is_headline, texts)))
    return InferredTasks(tuple(candidates), is_sure=is_one and _is_clear(ranked))


def _of_two_texts(
    texts: Sequence[Column],
    label: Column,
    singly: Sequence[InferredTask],
    why: str,
    *,
    is_named: bool,
) -> InferredTasks:
    """Two texts with a label: a pair, one that is labelled, or a text and its translation."""
    first, second = texts
    translation = _pairs(first, second, why, is_whole=False)
    pairs = InferredTask(
        PAIRS, why, "pair-matching", _renamed(first=first, second=second, label=label)
    )
    is_one = not _are_two_languages(first, second)
    if not is_one or not (label.is_mixed or _is_called_label(label)):
        is_sure = not (is_one or label.is_mixed or _is_called_label(label))
        return InferredTasks((translation, pairs, *singly), is_sure=is_sure)
    is_pair = _ratio(first, second) <= _PAIR_RATIO and not any(map(_is_headline, texts))
    if not is_pair or len(set(label.cells)) > _PAIR_LABELS:
        return InferredTasks((*singly, pairs), is_sure=False)
    is_last = all(_follows(label, text) for text in texts)
    return InferredTasks((pairs, *singly), is_sure=is_last and not is_named)


def _of_texts(texts: Sequence[Column], why: str) -> InferredTasks:
    """Sentence pairs, or documents and summaries."""
    if len(texts) > 2:
        if two := _two_languages(texts):
            candidates = tuple(_pairs(*pair, why, is_whole=False) for pair in two)
            return InferredTasks(candidates, is_sure=len(two) == 1)
        document, *shorter = sorted(texts, key=lambda text: -text.size)
        settings = [_renamed(document=document, answer=summary) for summary in shorter]
        every = (summaries(document.cells, why, each) for each in settings)
        return InferredTasks(
            (*every, _pairs(texts[0], texts[1], why, is_whole=False)), is_sure=False
        )
    first, second = texts
    languages = [guess_language(column.cells) for column in texts]
    is_whole = (first.called, second.called) == (1, 2)
    pairs = _pairs(first, second, why, is_whole=is_whole)
    if _are_two_languages(first, second):
        if None not in languages:
            why = f"{why}; in {languages[0]} and {languages[1]}"
        return InferredTasks((_pairs(first, second, why, is_whole=is_whole),), is_sure=True)
    document, summary = sorted(texts, key=lambda column: -column.size)
    short = summaries(document.cells, why, _renamed(document=document, answer=summary))
    is_headline = _is_headline(summary)
    if is_headline or (document.size >= _LONG and summary.size <= _SUMMARY_SHARE * document.size):
        return InferredTasks((short, pairs), is_sure=True)
    return InferredTasks((pairs, short), is_sure=True)


def _of_one_text(
    text: Column, numbers: Sequence[Column], path: Path, ending: str, why: str
) -> InferredTasks:
    scores = [column for column in numbers if _is_score(column)]
    if scores:
        raise _no_job(path, f"{why}: texts with a number", _rounding(scores[0]))
    called = text.called
    out = shlex.quote(f"{path.name.partition('.')[0]}-text.txt")
    if ending == ".csv":
        place = json.dumps(called) if isinstance(called, str) else called - 1
        reader = "DictReader" if isinstance(called, str) else "reader"
        program = (
            f"import csv, sys; [print(row[{place}]) for row in csv.{reader}(open(sys.argv[1], "
            'encoding="utf-8-sig", newline=""))]'
        )
        cure = f"python -c {shlex.quote(program)} {shlex.quote(str(path))} > {out}"
    else:
        cure = f"take {_named(text)} into a file of its own, {out}"
    raise _no_job(
        path,
        f"{why}: texts and nothing to learn for each",
        f"As running text, for a language model: {cure}",
    )


def _of_numbers(columns: Sequence[Column], numbers: Sequence[Column], path: Path) -> InferredTasks:
    """Numbers to predict a number from."""
    every = [c for c in columns if c.kind == "number" or (c.kind == "label" and _is_numeric(c))]
    if len(every) < 2:
        filled = [column for column in columns if column.kind != "none"] or list(columns)
        raise DataError(
            f"{path} must hold texts; {'; '.join(map(str, filled[:4]))}. Name a recipe and its "
            "columns: regard recipes."
        )
    used = [column for column in every if not _is_running(column) and not column.is_remark]
    target = next((c for c in used[::-1] if c.name in _GOALS), (used or every)[-1])
    others = [column for column in used if column is not target]
    inputs = others or [column for column in every if column is not target]
    settings: dict[str, JsonValue] = {}
    if len(inputs) < len(columns) - 1:
        settings["data.inputs"] = [str(column.called) for column in inputs]
    if settings or target is not columns[-1]:
        settings["data.target"] = str(target.called)
    why = "all its cells are numbers"
    task = InferredTask("numbers to predict a number from", why, "regression", settings)
    if len(every) == len(columns):
        return InferredTasks((task,), is_sure=True)
    kinds = {"date": "dates", "label": "labels", "code": "ids", "link": "links"}
    beside = (kinds.get(column.kind) for column in columns if column not in every)
    what = " and ".join([*dict.fromkeys(filter(None, beside)), "numbers"])
    raise _no_job(
        path,
        what,
        f"A number can be predicted from the other numbers: {task.command([str(path)])}",
    )


def _no_job(path: Path, what: str, cure: str) -> DataError:
    return DataError(f"{path} must hold what a job learns; no job fits: {what}. {cure}")


def _rounding(score: Column) -> str:
    return (
        f"A number like that of {_named(score)} is not learned from texts; make a few labels of it "
        "in a column of its own, and name that: --set data.label=COLUMN."
    )


def columns_of(
    lines: Sequence[Line], ending: str, later: Sequence[Sequence[Line]] = ()
) -> list[Column]:
    """The columns of a table, called as its header does if it has one; none of no rows."""
    rows = list(_rows(lines, ending))
    for part in later:
        with suppress(DataError):
            rows += _rows(part, ending)
    if not rows:
        return []
    width = Counter(map(len, rows)).most_common(1)[0][0]
    rows = [row for row in rows if len(row) == width]
    columns = [[row[place].strip() for row in rows] for place in range(width)]
    if not _has_header(columns):
        return [Column(place, cells) for place, cells in enumerate(columns, 1)]
    return [
        Column(cells[0] if cells[0] and not cells[0].isdecimal() else place, cells[1:])
        for place, cells in enumerate(columns, 1)
    ]


def _rows(lines: Sequence[Line], ending: str) -> Iterator[list[str]]:
    for line in csv_rows(lines) if ending == ".csv" else lines:
        if line.text.strip() and line.problem is None:
            yield line.text.split("\t")


def _has_header(columns: Sequence[Sequence[str]]) -> bool:
    names = [cells[0] for cells in columns if cells[0]]
    if len(columns[0]) < 2 or len(set(names)) < len(names) or len(names) < len(columns) / 3:
        return False
    if not names or not all(map(_NAME.fullmatch, names)):
        return False
    known = known_names() | {"id"}
    return any(name.casefold() in known for name in names) or any(
        cells[0] not in cells[1:] and Column(1, cells[1:]).kind not in ("text", "code", "none")
        for cells in columns
    )


def is_exactly(column: Column, *fields: str) -> bool:
    """Whether a column has one of the names of one of these fields."""
    return any(column.name in known_names(field) for field in fields)


def is_called(column: Column, *fields: str) -> bool:
    """Match a column's name, or its last word; a label's may stand anywhere in the name."""
    words = _words_of(column)
    for field in fields:
        names = known_names(field)
        if column.name in names:
            return True
        if field == "label" and names & {*words}:
            return True
        if words and words[-1] in names:
            return True
        if any(not name.isascii() and column.name.endswith(name) for name in names):
            return True
    return False


def _words_of(column: Column) -> list[str]:
    if isinstance(column.called, int):
        return []
    return [word.casefold() for word in _NAME_WORD.findall(column.called)]


def _named_pair(texts: Sequence[Column]) -> tuple[Column, Column] | None:
    """Two texts whose names say that they are the first and the second of something."""
    for first, second in combinations(texts, 2):
        if is_exactly(first, "first") and is_exactly(second, "second"):
            return first, second
    for first, second in combinations(texts, 2):
        signs = [pair for pair in zip(first.name, second.name, strict=False) if len({*pair}) > 1]
        if len(first.name) == len(second.name) and len(signs) == 1 and signs[0] in _NAMED_PAIRS:
            return first, second
    return None


def _main(texts: Sequence[Column], *, has_labels: bool) -> list[Column]:
    """The texts that something is learned of: without places, users, products beside them."""
    candidates = [text for text in texts if not text.is_remark]
    if not candidates or not has_labels:
        return candidates or list(texts)
    if len(candidates) == 2 and not any(text.has_words for text in candidates):
        return candidates
    longest = max(candidates, key=lambda text: text.size)

    def is_main(text: Column) -> bool:
        is_long = longest.size < _REMARK_RATIO * text.size
        return text is longest or (text.has_words and (text.is_varied or is_long))

    pair = _named_pair(candidates) or ()
    return [text for text in candidates if is_main(text) or _is_headline(text) or text in pair]


def _different(labels: Sequence[Column]) -> list[Column]:
    """The labels, of those that stand for each other the one of words."""
    distinct: list[Column] = []
    for label in labels:
        same = next((other for other in distinct if _is_same(label, other)), None)
        if same is None:
            distinct.append(label)
        elif (_is_numeric(same), not is_exactly(same, "label")) > (
            _is_numeric(label),
            not is_exactly(label, "label"),
        ):
            distinct[distinct.index(same)] = label
    return distinct


def _is_same(label: Column, other: Column) -> bool:
    two = len(set(zip(label.cells, other.cells, strict=True)))
    return two == len(set(label.cells)) == len(set(other.cells))


def _ranked(labels: Sequence[Column]) -> list[Column]:
    """The labels, first those that are called so."""
    return sorted(
        labels, key=lambda each: (not is_exactly(each, "label"), not _is_called_label(each))
    )


def _is_clear(ranked: Sequence[Column]) -> bool:
    if len(ranked) == 1:
        return True
    exact = [is_exactly(label, "label") for label in ranked]
    return sum(exact) == 1 or (not any(exact) and sum(map(_is_called_label, ranked)) == 1)


def _is_called_label(column: Column) -> bool:
    return is_called(column, "label") or bool(_GRADES & {*_words_of(column)})


def _follows(label: Column, text: Column) -> bool:
    """Whether the label's column is behind the text's, as far as numbers say."""
    if isinstance(label.called, int) and isinstance(text.called, int):
        return label.called > text.called
    return True


def _is_headline(column: Column) -> bool:
    return bool(_HEADLINES & {column.name, *_words_of(column)})


def _is_summary(column: Column) -> bool:
    names = known_names("answer") - _HEADLINES - {"answer", "answers", "abstract", "答案", "回答"}
    return column.name in names or bool(names & {*_words_of(column)})


def _is_numeric(column: Column) -> bool:
    return _most(_NUMBER, column.cells)


def _is_running(column: Column) -> bool:
    """Whether a column numbers its rows."""
    try:
        steps = {int(other) - int(one) for one, other in pairwise(column.cells)}
    except ValueError:
        return False
    return steps == {1} and column.cells[0] in ("0", "1") and len(column.cells) >= LEAST_ROWS


def _is_score(column: Column) -> bool:
    """Whether a column measures something."""
    return not column.is_remark and any("." in cell or "," in cell for cell in column.cells)


def _ratio(first: Column, second: Column) -> float:
    small, large = sorted((first.size, second.size))
    return large / max(small, 1e-9)


def _are_two_languages(first: Column, second: Column) -> bool:
    """Whether two texts are in different languages; of unknown ones, by words and lengths."""
    languages = {guess_language(first.cells), guess_language(second.cells)}
    if None not in languages:
        return len(languages) == 2
    if len(first.cells) < LEAST_ROWS or _ratio(first, second) > _PAIR_RATIO:
        return False
    frequent = [
        {word for word, _ in Counter(_words(column)).most_common(30)} for column in (first, second)
    ]
    if len(frequent[0] & frequent[1]) > 6:
        return False
    lengths = [[len(cell) for cell in column.cells] for column in (first, second)]
    if min(len(set(each)) for each in lengths) < 2:
        return False
    return correlation(*lengths) > 0.5


def _two_languages(texts: Sequence[Column]) -> list[tuple[Column, Column]]:
    """Pairs of columns in different languages, known languages and sentences first."""
    sentences = [text for text in texts if _most(_SENTENCE, text.cells)]
    texts = sentences if len(sentences) > 1 else texts
    two = [pair for pair in combinations(texts, 2) if _are_two_languages(*pair)]
    known = [pair for pair in two if all(guess_language(text.cells) for text in pair)]
    return known or two


def _words(column: Column) -> Iterator[str]:
    return (word for cell in column.cells for word in _WORD.findall(cell.casefold()))


def _most(pattern: re.Pattern[str], cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells if cell]
    return bool(filled) and sum(map(bool, map(pattern.fullmatch, filled))) >= _MOST * len(filled)


def _named(column: Column) -> str:
    called = column.called
    return f"column {called}" if isinstance(called, int) else repr(called)


def _renamed(**columns: Column) -> Settings:
    """Settings for the columns that are not called like what they hold, or are optional."""
    return columns_set(
        **{
            name: column.called
            for name, column in columns.items()
            if column.called != name or name in ("aspect", "question")
        }
    )


def _pairs(first: Column, second: Column, why: str, *, is_whole: bool) -> InferredTask:
    columns = [first.called, second.called]
    settings = {} if is_whole and columns == [1, 2] else {"data.columns": columns}
    return InferredTask("sentence pairs", why, None, settings)
