"""Infers the task of a table from the names and the contents of its columns."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from statistics import correlation
from types import MappingProxyType

from regard.config import JsonValue
from regard.errors import DataError
from regard.text.languages import guess_language
from regard.text.reading.lines import Line, readable
from regard.text.reading.tables import csv_rows, usual_names
from regard.training.recipes import InferredTask, InferredTasks, Settings
from regard.training.recipes.columns import (
    LEAST_ROWS,
    MOST,
    Column,
    check_no_tags,
    columns_of,
    is_chinese,
    most_match,
)
from regard.training.recipes.inferring_settings import columns_named, of_named
from regard.training.recipes.table_tasks import (
    as_running_text,
    column_settings,
    labelled_texts,
    pair_matching,
    sentence_pairs,
    summarised_documents,
)

# A summary's share of its document's length, and the characters from which a text is a document.
_SUMMARY_SHARE, _LONG = 0.5, 150
# Texts of a pair are at most so many times as long as each other, and have few labels.
_PAIR_RATIO, _PAIR_LABELS = 4, 3
# A text that is so many times shorter than another is a remark on it: a place, a user, a product.
_REMARK_RATIO = 4
# The most frequent words of two texts, of which those of two languages share few.
_FREQUENT, _SHARED = 30, 6
_SENTENCE = re.compile(r".*[.!?。！？…][\"'”’」』)）]?", re.DOTALL)
_WORD = re.compile(r"[^\W\d_]+")
# Names of columns that hold a number to predict, and that answer a question.
_TARGETS = {*["target", "y", "label", "price", "output", "value", "目标", "价格"]}
_ANSWERS = {*["answer", "answers", "response", "reply", "答案", "回答", "回复"]}
_LANGUAGES = usual_names("source") & usual_names("target")
_NAMED_PAIRS = {("1", "2"), ("a", "b"), ("一", "二"), ("甲", "乙")}


def of_table(
    path: Path,
    lines: Sequence[Line],
    ending: str,
    later: Sequence[Sequence[Line]] = (),
    settings: Settings = MappingProxyType({}),
) -> InferredTasks | None:
    """Infer the tasks of a table from its first lines and later ones; None of one column."""
    columns = columns_of(lines, ending, later)
    if not columns:
        for row in csv_rows(lines):
            readable(row)
        raise DataError(f"{path} must hold rows; got none.")
    return of_columns(columns, path, settings) if len(columns) > 1 else None


def of_columns(
    columns: Sequence[Column], path: Path, settings: Settings = MappingProxyType({})
) -> InferredTasks:
    """Infer the tasks of more than one column, by those of them that settings name."""
    named = columns_named(columns, settings, path)
    unnamed = [column for column in columns if column not in named.values()]
    texts, labels, numbers = (
        [column for column in unnamed if column.kind == kind]
        for kind in ("text", "label", "number")
    )
    labels = _distinct(labels)
    if not texts:  # few sentences, that come again and again
        texts = [column for column in labels if column.has_words]
        labels = [column for column in labels if not column.has_words]
    if not texts and len(columns) == 2 and not labels:
        texts = [column for column in unnamed if column.kind == "code" and not column.is_remark]
    if not {*named} <= {"text", "label", "target"}:
        return of_named(named, texts, _ranked(labels), path)
    if "target" in named:
        return _of_numbers(columns, [*numbers, named["target"]], path, target=named["target"])
    texts = [named["text"]] if "text" in named else texts
    labels = [named["label"]] if "label" in named else labels
    if not texts:
        return _of_numbers(columns, numbers, path)
    check_no_tags([*texts, *labels], path)
    texts = _main(texts, has_labels=bool(labels))
    why = "; ".join(map(str, [*texts, *labels, *numbers][:4]))
    if tasks := _of_names(columns, texts, labels, why):
        return tasks
    if labels:
        return _of_labels(texts, labels, why)
    if len(texts) == 1:
        return _of_one_text(texts[0], numbers, path, why)
    scores = [column for column in numbers if column.is_score]
    if scores and not _are_two_languages(*(_named_pair(texts) or (texts[0], texts[1]))):
        raise _no_job(path, f"{why}: pairs of texts with a number", _rounding(scores[0]))
    return _of_texts(texts, why, is_whole=len(columns) == 2)


def _of_names(
    columns: Sequence[Column], texts: Sequence[Column], labels: Sequence[Column], why: str
) -> InferredTasks | None:
    """Infer a task from the names of columns, if they are enough."""

    def called(*fields: str) -> Column | None:
        exact = [text for text in texts if text.has_name(*fields)]
        return next(iter([*exact, *(text for text in texts if text.is_called(*fields))]), None)

    is_whole = len(columns) == 2
    if labels and (pair := _named_pair(texts)):
        ranked = _ranked(labels)
        matching = tuple(pair_matching(*pair, label, why) for label in ranked)
        return InferredTasks(matching, is_sure=_is_clear(ranked))
    question, context = called("question"), called("context")
    is_squad = any(column.name == "answer_start" for column in columns)
    answers = {*_ANSWERS, "text"} if is_squad else _ANSWERS
    answer = next((column for column in (*texts, *columns) if column.name in answers), None)
    if question and answer and question is not answer:
        if context and context not in (question, answer):
            return _of_questions(question, context, answer, why)
        if answer in texts and not any(label.is_numeric for label in labels):
            named = [labelled_texts(question, label, why) for label in labels]
            named += [pair_matching(question, answer, label, why) for label in labels]
            answering = sentence_pairs(question, answer, why, is_whole=is_whole)
            return InferredTasks((*named, answering), is_sure=not labels)
    source, target = called("source"), called("target")
    sides = [text for text in texts if _LANGUAGES & {text.name, *text.words}]
    if len(sides) > 1 and len(sides) == len(texts):
        both = combinations(sides, 2)
        pairs = tuple(sentence_pairs(*pair, why, is_whole=is_whole) for pair in both)
        return InferredTasks(pairs, is_sure=len(sides) == 2)
    summary = next((text for text in texts if text.is_summary), None)
    if source and target and len({source, target} - {summary}) == 2:
        return InferredTasks((sentence_pairs(source, target, why, is_whole=is_whole),))
    remaining = [text for text in texts if text is not summary]
    documents = [text for text in remaining if text.is_called("document", "source")] or remaining
    if summary is None or not documents:
        return None
    document = max(documents, key=lambda text: text.size)
    candidates = [labelled_texts(document, label, why) for label in labels if label.is_named_label]
    candidates.append(summarised_documents(document, summary, why))
    return InferredTasks(tuple(candidates), is_sure=len(candidates) == 1)


def _of_questions(question: Column, context: Column, answer: Column, why: str) -> InferredTasks:
    """Questions with answers that stand in the text, or are written."""
    settings = column_settings(document=context, question=question, answer=answer)
    task = "questions about a text, whose answers are written"
    writing = InferredTask(task, why, "generation-copy", settings)
    answers = [pair for pair in zip(answer.cells, context.cells, strict=True) if pair[0]]
    is_named = question.has_name("question") and context.has_name("context")
    if sum(one in text for one, text in answers) < MOST * len(answers) or not is_named:
        return InferredTasks((writing,))
    chinese = "-chinese" if is_chinese(context.cells) else ""
    task = "questions whose answers stand in a text"
    return InferredTasks((InferredTask(task, why, f"question-answering{chinese}"), writing))


def _of_labels(texts: Sequence[Column], labels: Sequence[Column], why: str) -> InferredTasks:
    """Texts, or pairs of texts, with labels."""
    ranked = _ranked(labels)
    called = [text for text in texts if text.is_called("text") and not text.is_headline]
    longest = max(called or texts, key=lambda column: column.size)
    candidates = [labelled_texts(longest, label, why) for label in ranked]
    candidates += [labelled_texts(text, ranked[0], why) for text in texts if text is not longest]
    if len(texts) == 2 and len(ranked) == 1:
        first, second = texts
        return _of_two_texts(first, second, ranked[0], candidates, why, is_named=bool(called))
    if len(ranked) > 1 and len(texts) == 1 and not ranked[1].is_numeric:
        settings = column_settings(text=longest, label=ranked[0], aspect=ranked[1])
        task = "texts with labels, for one aspect or another"
        candidates.insert(1, InferredTask(task, why, "classification-aspect", settings))
    is_one = len(texts) == 1 or (len(called) == 1 and not any(text.is_headline for text in texts))
    return InferredTasks(tuple(candidates), is_sure=is_one and _is_clear(ranked))


def _of_two_texts(
    first: Column,
    second: Column,
    label: Column,
    singly: Sequence[InferredTask],
    why: str,
    *,
    is_named: bool,
) -> InferredTasks:
    """Two texts with a label: a pair, one that is labelled, or a text and its translation."""
    texts = (first, second)
    pairs = pair_matching(first, second, label, why)
    is_one = not _are_two_languages(first, second)
    is_class = label.is_mixed or label.is_named_label
    if not is_one or not is_class:
        translation = sentence_pairs(first, second, why, is_whole=False)
        return InferredTasks((translation, pairs, *singly), is_sure=not is_one and not is_class)
    is_pair = _ratio(first, second) <= _PAIR_RATIO and not any(text.is_headline for text in texts)
    if not is_pair or len(set(label.cells)) > _PAIR_LABELS:
        return InferredTasks((*singly, pairs), is_sure=False)
    is_last = all(
        label.called > text.called
        for text in texts
        if isinstance(label.called, int) and isinstance(text.called, int)
    )
    return InferredTasks((pairs, *singly), is_sure=is_last and not is_named)


def _of_texts(texts: Sequence[Column], why: str, *, is_whole: bool) -> InferredTasks:
    """Sentence pairs, or documents and summaries."""
    document, *shorter = sorted(texts, key=lambda text: -text.size)
    if len(texts) > 2:
        if two := _two_languages(texts):
            candidates = tuple(sentence_pairs(*pair, why, is_whole=False) for pair in two)
            return InferredTasks(candidates, is_sure=len(two) == 1)
        every = (summarised_documents(document, summary, why) for summary in shorter)
        pairs = sentence_pairs(texts[0], texts[1], why, is_whole=False)
        return InferredTasks((*every, pairs), is_sure=False)
    first, second = texts
    if _are_two_languages(first, second):
        languages = [guess_language(column.cells) for column in texts]
        if None not in languages:
            why = f"{why}; in {languages[0]} and {languages[1]}"
        return InferredTasks((sentence_pairs(first, second, why, is_whole=is_whole),))
    pairs, [summary] = sentence_pairs(first, second, why, is_whole=is_whole), shorter
    is_short = document.size >= _LONG and summary.size <= _SUMMARY_SHARE * document.size
    summarised = summarised_documents(document, summary, why)
    if summary.is_headline or is_short:
        return InferredTasks((summarised, pairs))
    return InferredTasks((pairs, summarised))


def _of_one_text(text: Column, numbers: Sequence[Column], path: Path, why: str) -> InferredTasks:
    """Raise DataError: there is nothing to learn for each text."""
    scores = [column for column in numbers if column.is_score]
    if scores:
        raise _no_job(path, f"{why}: texts with a number", _rounding(scores[0]))
    cure = f"As running text, for a language model: {as_running_text(text, path)}"
    raise _no_job(path, f"{why}: texts and nothing to learn for each", cure)


def _of_numbers(
    columns: Sequence[Column], numbers: Sequence[Column], path: Path, target: Column | None = None
) -> InferredTasks:
    """Numbers to predict a number from; DataError if there is something else in the table."""
    every = [c for c in columns if c in numbers or (c.kind == "label" and c.is_numeric)]
    if len(every) < 2:
        filled = [column for column in columns if column.kind != "none"] or list(columns)
        raise DataError(
            f"{path} must hold texts; {'; '.join(map(str, filled[:4]))}. Name a recipe and its "
            "columns: regard recipes."
        )
    used = [column for column in every if not column.is_row_number and not column.ends_as_remark]
    target = target or next((c for c in used[::-1] if c.name in _TARGETS), (used or every)[-1])
    remaining = [column for column in used if column is not target]
    inputs = remaining or [column for column in every if column is not target]
    settings: dict[str, JsonValue] = {}
    if len(inputs) < len(columns) - 1:
        settings["data.inputs"] = [str(column.called) for column in inputs]
    if settings or target is not columns[-1]:
        settings["data.target"] = str(target.called)
    why = "all its cells are numbers"
    task = InferredTask("numbers to predict a number from", why, "regression", settings)
    if len(every) == len(columns):
        return InferredTasks((task,))
    kinds = {"date": "dates", "label": "labels", "code": "ids", "link": "links"}
    unused_kinds = (kinds.get(column.kind) for column in columns if column not in every)
    content = " and ".join([*dict.fromkeys(filter(None, unused_kinds)), "numbers"])
    cure = f"A number can be predicted from the other numbers: {task.command([str(path)])}"
    raise _no_job(path, content, cure)


def _no_job(path: Path, content: str, cure: str) -> DataError:
    return DataError(f"{path} must hold what a job learns; no job fits: {content}. {cure}")


def _rounding(score: Column) -> str:
    return (
        f"A number like that of {score.title} is not learned from texts; make a few labels of it "
        "in a column of its own, and name that: --set data.label=COLUMN."
    )


def _named_pair(texts: Sequence[Column]) -> tuple[Column, Column] | None:
    """Two texts whose names say that they are the first and the second of something."""
    for first, second in combinations(texts, 2):
        if first.has_name("first") and second.has_name("second"):
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
    return [text for text in candidates if is_main(text) or text.is_headline or text in pair]


def _distinct(labels: Sequence[Column]) -> list[Column]:
    """The labels, of those that stand for each other the one of words."""

    def rank(label: Column) -> tuple[bool, bool]:
        return label.is_numeric, not label.has_name("label")

    distinct: list[Column] = []
    for label in labels:
        same = next((column for column in distinct if _is_same(label, column)), None)
        if same is None:
            distinct.append(label)
        elif rank(same) > rank(label):
            distinct[distinct.index(same)] = label
    return distinct


def _is_same(first: Column, second: Column) -> bool:
    two = len(set(zip(first.cells, second.cells, strict=True)))
    return two == len(set(first.cells)) == len(set(second.cells))


def _ranked(labels: Sequence[Column]) -> list[Column]:
    """The labels, first those that are called so, and words before numbers."""

    def rank(label: Column) -> tuple[bool, bool, bool]:
        return not label.has_name("label"), not label.is_named_label, label.is_numeric

    return sorted(labels, key=rank)


def _is_clear(ranked: Sequence[Column]) -> bool:
    if len(ranked) == 1:
        return True
    for traits in (
        [label.has_name("label") for label in ranked],
        [label.is_named_label for label in ranked],
        [not label.is_numeric for label in ranked],
    ):
        if any(traits):
            return sum(traits) == 1
    return False


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
    if len(_frequent_words(first) & _frequent_words(second)) > _SHARED:
        return False
    lengths = [[len(cell) for cell in column.cells] for column in (first, second)]
    if min(len(set(sizes)) for sizes in lengths) < 2:
        return False
    return correlation(*lengths) > 0.5


def _frequent_words(column: Column) -> set[str]:
    words = Counter(word for cell in column.cells for word in _WORD.findall(cell.casefold()))
    return {word for word, _ in words.most_common(_FREQUENT)}


def _two_languages(texts: Sequence[Column]) -> list[tuple[Column, Column]]:
    """Pairs of columns in different languages, known languages and sentences first."""
    sentences = [text for text in texts if most_match(_SENTENCE, text.cells)]
    texts = sentences if len(sentences) > 1 else texts
    two = [pair for pair in combinations(texts, 2) if _are_two_languages(*pair)]
    recognised = [pair for pair in two if all(guess_language(text.cells) for text in pair)]
    return recognised or two
