"""Extractive question answering: the stretch of a text that answers a question, if one does."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import ClassVar, TypedDict

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from regard.metrics.question_answering import exact_match, f1
from regard.models import SpanFinder, SpanFinderConfig, best_spans
from regard.models.span_finder import NO_ANSWER
from regard.tasks.baselines.sliding_window import SlidingWindow
from regard.tasks.held_out import checked_question, hold_out_contexts, read_asked
from regard.tasks.one_pass_task import OnePassTask
from regard.tasks.question_answering.data import EncodedQuestion, QuestionBatch, SpanAnswer
from regard.tasks.question_answering.settings import QuestionsData
from regard.tasks.recipe import Recipe, check_not_smoothed, tell_pieces
from regard.tasks.showing import Said, Shown, ShownText
from regard.tasks.tables import (
    by_group,
    confusion_table,
    kind_of_answer,
    length_group,
    question_word,
)
from regard.tasks.task import Table
from regard.tasks.text_pairs import (
    EncodedPair,
    build_reader,
    collate_pairs,
    crossings,
    encode_pair,
    text_cutter,
)
from regard.text import BadLines, Tokenizer, TokenizerConfig, load_tokenizer, train_tokenizer
from regard.text.files import read_kept, write_plain
from regard.text.questions import QUESTION_FIELDS, Question, asked_question
from regard.text.tables import Field

_FILE = "answering.json"


class _Answering(TypedDict):
    """Contents of the task's file."""

    may_have_none: bool


class QuestionAnswering(OnePassTask[Question, EncodedQuestion, QuestionBatch, SpanAnswer]):
    """Questions to stretches of their texts.

    Args:
        recipe: Whose settings hold.
        tokenizer: Learned from questions and texts of training.
        may_have_none: Whether training had questions that their texts do not answer, so that "no
            answer" is one.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> from regard.text.questions import Answer
        >>> asked = Question("Who was old?", "A king was old.", (Answer("A king", 0),))
        >>> table = {"task": "question_answering", "tokenizer": {"type": "words"}}
        >>> task = QuestionAnswering.learn(recipe_from_table(table), [asked])
        >>> task.encode([asked])[0].answers  # the first and the last token of "A king"
        [(0, 1)]
        >>> task.score([SpanAnswer("king", 2, 6, 0.9)], [asked])
        {'exact_match': 100.0, 'f1': 100.0}
    """

    unit: ClassVar[str] = "questions"
    counted = "windows"
    metrics: ClassVar[Mapping[str, int]] = {"exact_match": 1, "f1": 1}
    read = staticmethod(read_asked)
    hold_out = staticmethod(hold_out_contexts)
    subject = staticmethod(attrgetter("context"))
    checked = staticmethod(checked_question)
    request = staticmethod(asked_question)

    def __init__(self, recipe: Recipe, tokenizer: Tokenizer, *, may_have_none: bool) -> None:
        self.recipe, self.tokenizer, self.may_have_none = recipe, tokenizer, may_have_none
        self.data = recipe.settings(QuestionsData)

    def asked_fields(self, *, with_answers: bool = False) -> Sequence[Field]:
        """The question, and the text that answers it."""
        return QUESTION_FIELDS

    @classmethod
    def learn(cls, recipe: Recipe, examples: Sequence[Question]) -> "QuestionAnswering":
        """The task with the tokenizer of the training questions and texts."""
        texts = dict.fromkeys(example.context for example in examples)
        lines = [*texts, *(example.text for example in examples)]
        tokenizer = train_tokenizer(lines, recipe.settings(TokenizerConfig))
        return cls(recipe, tokenizer, may_have_none=any(not e.answers for e in examples))

    @classmethod
    def load(cls, recipe: Recipe, folder: Path) -> "QuestionAnswering":
        """The task with what ``save`` wrote."""
        table = read_kept(folder, _FILE, _Answering)
        tokenizer = load_tokenizer(folder / "text")
        return cls(recipe, tokenizer, may_have_none=table["may_have_none"])

    def save(self, folder: Path) -> None:
        """Write the tokenizer, and whether texts may not answer."""
        self.tokenizer.save(folder / "text")
        write_plain(folder, {"may_have_none": self.may_have_none}, _FILE)

    def build_model(self) -> nn.Module:
        """The recipe's reader with new weights, and what finds spans on it."""
        data = self.data
        longest = data.max_length + data.max_question + 3
        reader = build_reader(self.recipe, vocab_size=self.tokenizer.vocab_size, longest=longest)
        return SpanFinder(self.recipe.settings(SpanFinderConfig), reader)

    def facts(self) -> list[str]:
        """Describe the vocabulary learned from the text, in lines."""
        facts = [tell_pieces(self.recipe, self.tokenizer.vocab_size)]
        if self.may_have_none:
            facts.append("some questions have no answer in their text")
        return facts

    def encode(
        self,
        examples: Iterable[Question],
        *,
        training: bool = False,
        too_long: BadLines | None = None,
    ) -> list[EncodedQuestion]:
        """Ids of each question and its text."""
        most, too_long = self.data.max_question, too_long or BadLines()
        cut = text_cutter(self.tokenizer)
        found = []
        for example in examples:
            text, asked = cut(example.context), cut(example.text)
            too_long.add_cut("question", example.where, size=len(asked.ids), longest=most)
            answers = [_tokens_of(text.spans, a.start, a.end) for a in example.answers]
            pair = encode_pair(text, asked, self.recipe, other_kept=slice(most))
            found.append(EncodedQuestion(pair, text.spans, answers, example.context))
        return found

    def lengths(self, encoded: Sequence[EncodedQuestion]) -> Int64[np.ndarray, " n"]:
        """Tokens of all windows of each text, and of its question beside each."""
        return np.array(
            [
                sum(len(window) + len(each.pair.other) + 3 for window in self._windows(each))
                for each in encoded
            ],
            dtype=np.int64,
        )

    def collate(
        self, encoded: Sequence[EncodedQuestion], *, generator: torch.Generator | None = None
    ) -> QuestionBatch:
        """A padded batch; with a generator, one of several right answers is drawn."""
        rows = [
            (owner, window) for owner, each in enumerate(encoded) for window in self._windows(each)
        ]
        cut = [_part(encoded[owner].pair, window) for owner, window in rows]
        pairs = collate_pairs(cut, self.recipe)
        places = torch.arange(pairs.ids.shape[1])
        firsts = torch.tensor(pairs.firsts)[:, None]
        inside = torch.tensor([len(window) for _, window in rows])[:, None]
        ends = [
            _drawn_answer(encoded[owner].answers, window, first, generator)
            for (owner, window), first in zip(rows, pairs.firsts, strict=True)
        ]
        return QuestionBatch(
            pairs=pairs,
            allowed=(places >= firsts) & (places < firsts + inside),
            starts=torch.tensor([start for start, _ in ends]),
            ends=torch.tensor([end for _, end in ends]),
            owners=[owner for owner, _ in rows],
            places=[window.start for _, window in rows],
            questions=list(encoded),
        )

    def loss(
        self, model: nn.Module, batch: QuestionBatch, *, smoothing: float = 0.0
    ) -> tuple[Float[Tensor, ""], int]:
        """Minus the log-probability of the answers' ends, and how many windows there are.

        Raises:
            SettingError: Labels are to be smoothed, over places that can be no answer.
        """
        check_not_smoothed(self.recipe, smoothing)
        start, end = self._logits(model, batch)
        return SpanFinder.loss(start, end, batch.starts, batch.ends), len(batch.owners)

    def predict(self, model: nn.Module, batch: QuestionBatch) -> list[SpanAnswer]:
        """The answer to each question: the best of its windows.

        Windows are compared by how much better their answer is than none.
        """
        start, end = self._logits(model, batch)
        longest = self.data.max_answer
        found = best_spans(start, end, batch.allowed, max_length=longest)
        total = (start.logsumexp(-1) + end.logsumexp(-1)).tolist()
        best: list[tuple[float, SpanAnswer] | None] = [None] * len(batch.questions)
        rows = zip(
            batch.owners,
            batch.places,
            batch.pairs.firsts,
            found.start.tolist(),
            found.end.tolist(),
            found.score.tolist(),
            found.none.tolist(),
            total,
            strict=True,
        )
        for owner, place, before, first, last, score, none, norm in rows:
            kept = best[owner]
            if kept is not None and kept[0] >= score - none:
                continue
            question = batch.questions[owner]
            begin = question.spans[place + first - before][0]
            finish = question.spans[place + last - before][1]
            text = question.context[begin:finish]
            answer = SpanAnswer(text, begin, finish, float(np.exp(score - norm)))
            best[owner] = (score - none, answer)
        return [self._unless_none(each) for each in best]

    def score(
        self, answers: Sequence[SpanAnswer], examples: Sequence[Question]
    ) -> dict[str, float]:
        """Exact match and F1 of words, the nearest of the right answers counting, in percent."""
        count = max(1, len(examples))
        pairs = list(zip(answers, examples, strict=True))
        return {
            "exact_match": 100 * sum(exact_match(a.answer, _right(e)) for a, e in pairs) / count,
            "f1": 100 * sum(f1(a.answer, _right(e)) for a, e in pairs) / count,
        }

    def example_score(self, answer: SpanAnswer, example: Question) -> float:
        """The F1 of its words."""
        return f1(answer.answer, _right(example))

    def baselines(
        self, train: Sequence[Question], examples: Sequence[Question]
    ) -> dict[str, list[SpanAnswer]]:
        """The sliding window of Richardson et al. (2013)."""
        find = SlidingWindow.learn(list(dict.fromkeys(example.context for example in train)))
        spans = [find.answer(example.text, example.context) for example in examples]
        return {
            "sliding window": [
                SpanAnswer(example.context[start:end], start, end, 0.0)
                for example, (start, end) in zip(examples, spans, strict=True)
            ]
        }

    def tables(self, answers: Sequence[SpanAnswer], examples: Sequence[Question]) -> list[Table]:
        """By question word, by length, by kind of answer, and which kind was given for which."""
        right = [_right(example) for example in examples]
        given = [answer.answer for answer in answers]
        exact = [exact_match(a, r) for a, r in zip(given, right, strict=True)]
        near = [f1(a, r) for a, r in zip(given, right, strict=True)]
        scores = {"exact match": exact, "F1": near}
        firsts = [each[0] if each else "" for each in right]
        texts = [length_group(len(example.context)) for example in examples]
        return [
            by_group("question word", [question_word(e.text) for e in examples], scores),
            by_group("characters of the text", texts, scores, ordered=True),
            by_group("kind of answer", [kind_of_answer(each) for each in firsts], scores),
            confusion_table(
                [kind_of_answer(each) for each in given], [kind_of_answer(each) for each in firsts]
            ),
        ]

    def shown(self, example: Question, encoded: EncodedQuestion, answer: SpanAnswer) -> Shown:
        """The text, and what it and the question look at in each other where the answer stands."""
        text = ShownText.of_spans(encoded.context, encoded.spans)
        asked = self.tokenizer.pieces(example.text)[: len(encoded.pair.other)]
        windows = self._windows(encoded)
        begins = [place for place, (start, _) in enumerate(encoded.spans) if start == answer.start]
        held = (row for row, window in enumerate(windows) if begins and begins[0] in window)
        row = next(held, 0)
        return Shown(
            text=text,
            output=ShownText.of_words([answer.answer or "no answer"]),
            crossings=crossings(
                self.recipe,
                ("text", text),
                ("question", ShownText.of_pieces(example.text, asked)),
                read=windows[row],
                row=row,
            ),
        )

    def said(
        self, model: nn.Module, example: Question, encoded: EncodedQuestion, answer: SpanAnswer
    ) -> Said:
        """The answer, marked in its text."""
        is_inside = (answer.start <= start < answer.end for start, _ in encoded.spans)
        return Said(
            labels=((answer.answer or "no answer", answer.probability),),
            tags=tuple("answer" if inside else "" for inside in is_inside),
        )

    def show(self, example: Question, answer: SpanAnswer) -> str:
        """The question, the model's answer and those of people."""
        right = " | ".join(dict.fromkeys(_right(example))) or "none"
        given = answer.text() or "none"
        return f"{example.text} → {given} ({answer.probability:.2f}; right: {right})"

    def _logits(self, model: nn.Module, batch: QuestionBatch) -> tuple[Tensor, Tensor]:
        pairs = batch.pairs
        start, end = model(pairs.ids, pairs.lengths, **pairs.reading)
        return start.float(), end.float()

    def _unless_none(self, found: tuple[float, SpanAnswer] | None) -> SpanAnswer:
        if found is None or (self.may_have_none and found[0] < 0):
            return SpanAnswer("", -1, -1, 0.0)
        return found[1]

    def _windows(self, question: EncodedQuestion) -> list[range]:
        """The tokens of the text that are read at once, several times for a long one."""
        data, count = self.data, len(question.pair.ids)
        last = max(0, count - data.max_length)
        starts = [*range(0, last, data.stride), last]
        return [range(start, min(count, start + data.max_length)) for start in starts]


def _part(pair: EncodedPair, window: range) -> EncodedPair:
    part = slice(window.start, window.stop)
    return replace(pair, ids=pair.ids[part], features=pair.features[part])


def _tokens_of(spans: Sequence[tuple[int, int]], start: int, end: int) -> tuple[int, int]:
    """The first and the last token of a stretch of text."""
    inside = [place for place, (first, last) in enumerate(spans) if first < end and last > start]
    return (inside[0], inside[-1]) if inside else (0, 0)


def _drawn_answer(
    answers: Sequence[tuple[int, int]],
    window: range,
    first: int,
    generator: torch.Generator | None,
) -> tuple[int, int]:
    """The places of one of the answers that stand in a window."""
    inside = [answer for answer in answers if answer[0] in window and answer[1] in window]
    if not inside:
        return NO_ANSWER, NO_ANSWER
    drawn = 0 if generator is None else int(torch.randint(len(inside), (), generator=generator))
    start, end = inside[drawn]
    return start - window.start + first, end - window.start + first


def _right(example: Question) -> tuple[str, ...]:
    return tuple(answer.text for answer in example.answers)
