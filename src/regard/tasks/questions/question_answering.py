"""Extractive question answering: the stretch of a text that answers a question, if one does."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Generator, Tensor, nn

from regard.metrics.question_answering import exact_match, f1
from regard.models import SpanFinder, SpanFinderConfig
from regard.models.heads import NO_ANSWER, best_spans
from regard.tasks.batches import Batch, Sample
from regard.tasks.drawing import Drawing, spans_text, words_text
from regard.tasks.one_pass_task import Loss
from regard.tasks.questions.question_task import QuestionTask
from regard.tasks.questions.text_pairs import PairReading, text_cutter
from regard.tasks.sentence_baselines import SlidingWindow
from regard.tasks.settings.data import QuestionsData
from regard.tasks.settings.recipe import Recipe
from regard.tasks.tables import Table, confusion_table, kind_of_answer, length_group
from regard.tasks.task import Answer
from regard.text import BadLines, Tokenizer, TokenizerConfig, train_tokenizer
from regard.text.reading.questions import Question
from regard.viewer import Prediction

__all__ = ["QuestionAnswering", "QuestionsData", "SpanAnswer"]


@dataclass(frozen=True, slots=True)
class SpanAnswer(Answer):
    """The answer to one question.

    Attributes:
        answer: As the text has it; empty if the text does not answer.
        start: Its position in the text, in characters; −1 if there is none.
        end: One past its last character.
        probability: Of its two ends in the window it was found in.
    """

    answer: str
    start: int
    end: int
    probability: float

    def text(self) -> str:
        """The answer in one line."""
        return " ".join(self.answer.split())


class QuestionAnswering(PairReading, QuestionTask[SpanAnswer]):
    """Questions to stretches of their texts.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> from regard.text.reading.questions import Answer
        >>> asked = Question("Who was old?", "A king was old.", (Answer("A king", 0),))
        >>> table = {"task": "question_answering", "tokenizer": {"type": "words"}}
        >>> task = QuestionAnswering.learn(recipe_from_table(table), [asked])
        >>> task.encode([asked])[0]["answers"]  # the first and the last token of "A king"
        [(0, 1)]
        >>> task.score([SpanAnswer("king", 2, 6, 0.9)], [asked])
        {'exact_match': 100.0, 'f1': 100.0}
    """

    loss_unit = "windows"
    metrics: ClassVar[Mapping[str, int]] = {"exact_match": 1, "f1": 1}
    main_metric: ClassVar[str] = "f1"
    learned = ("may_have_none",)
    file = "answering.json"
    data: QuestionsData
    tokenizer: Tokenizer
    may_have_none: bool

    @classmethod
    def learn(cls, recipe: Recipe, examples: Sequence[Question]) -> "QuestionAnswering":
        texts = dict.fromkeys(example.context for example in examples)
        lines = [*texts, *(example.text for example in examples)]
        tokenizer = train_tokenizer(lines, recipe.settings(TokenizerConfig))
        return cls(recipe, tokenizer, may_have_none=any(not e.answers for e in examples))

    def build_model(self) -> nn.Module:
        longest = self.data.max_length + self.data.max_question + 3
        return SpanFinder(self.recipe.settings(SpanFinderConfig), self.build_reader(longest))

    def describe(self) -> list[str]:
        some = ["some questions have no answer in their text"] if self.may_have_none else []
        return [*super().describe(), *some]

    def samples(
        self, examples: Sequence[Question], too_long: BadLines, *, training: bool
    ) -> Iterator[Sample]:
        """Ids of each question and its text, and the first and last token of each answer."""
        most, cut = self.data.max_question, text_cutter(self.tokenizer)
        for example in examples:
            text, question = cut(example.context), cut(example.text)
            too_long.add_cut("question", example.where, size=len(question.ids), longest=most)
            sample = self.encode_pair(text, question, paired_part=slice(most))
            sample["spans"], sample["context"] = text.spans, example.context
            sample["answers"] = [_tokens_of(text.spans, a.start, a.end) for a in example.answers]
            yield sample

    def length(self, sample: Sample) -> int:
        return sum(len(window) + len(sample["other"]) + 3 for window in self._windows(sample))

    def collate(self, encoded: Sequence[Sample], *, generator: Generator | None = None) -> Batch:
        """Padded windows of texts with their questions; a long text takes several rows.

        ``allowed`` is where an answer may stand; ``starts`` and ``ends`` are those of one that
        does, drawn of several by the generator, and ``NO_ANSWER`` where there is none.
        """
        rows = [
            (owner, window)
            for owner, sample in enumerate(encoded)
            for window in self._windows(sample)
        ]
        pairs = self.collate_pairs([_part(encoded[owner], window) for owner, window in rows])
        positions = torch.arange(pairs["ids"].shape[1])
        firsts = torch.tensor(pairs["firsts"])[:, None]
        inside = torch.tensor([len(window) for _, window in rows])[:, None]
        ends = [
            _drawn_answer(encoded[owner]["answers"], window, first, generator)
            for (owner, window), first in zip(rows, pairs["firsts"], strict=True)
        ]
        return {
            **pairs,
            "allowed": (positions >= firsts) & (positions < firsts + inside),
            "starts": torch.tensor([start for start, _ in ends]),
            "ends": torch.tensor([end for _, end in ends]),
            "owners": [owner for owner, _ in rows],
            "windows": [window for _, window in rows],
            "questions": list(encoded),
        }

    def batch_loss(self, model: nn.Module, batch: Batch, smoothing: float) -> Loss:
        start, end = _logits(model, batch)
        return SpanFinder.loss(start, end, batch["starts"], batch["ends"]), len(batch["owners"])

    def predict(self, model: nn.Module, batch: Batch) -> list[SpanAnswer]:
        """The answer to each question: the best of its windows.

        Windows are compared by how much better their answer is than none.
        """
        start, end = _logits(model, batch)
        spans = best_spans(start, end, batch["allowed"], max_length=self.data.max_answer)
        total = start.logsumexp(-1) + end.logsumexp(-1)
        numbers = (spans.start, spans.end, spans.score, spans.none, total)
        best: list[tuple[float, SpanAnswer] | None] = [None] * len(batch["questions"])
        rows = zip(
            batch["owners"],
            batch["windows"],
            batch["firsts"],
            *(tensor.tolist() for tensor in numbers),
            strict=True,
        )
        for owner, window, before, first, last, score, none, norm in rows:
            current = best[owner]
            if current is not None and current[0] >= score - none:
                continue
            question = batch["questions"][owner]
            begin = question["spans"][window.start + first - before][0]
            finish = question["spans"][window.start + last - before][1]
            text, share = question["context"][begin:finish], float(np.exp(score - norm))
            best[owner] = (score - none, SpanAnswer(text, begin, finish, share))
        none = SpanAnswer("", -1, -1, 0.0)
        may_be = self.may_have_none
        return [none if b is None or (may_be and b[0] < 0) else b[1] for b in best]

    def scores(self, answer: SpanAnswer, example: Question) -> Mapping[str, float]:
        right = _right(example)
        return {"exact_match": exact_match(answer.answer, right), "f1": f1(answer.answer, right)}

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

    def groups(self, example: Question) -> Mapping[str, str]:
        """The groups of its length and of its kind of answer."""
        return {
            "characters of the text": length_group(len(example.context), of_contexts=True),
            "kind of answer": _kind(example),
        }

    def tables(self, answers: Sequence[SpanAnswer], examples: Sequence[Question]) -> list[Table]:
        """Figures by ``groups``, and the confusion matrix of kinds of answer."""
        predicted = [kind_of_answer(answer.answer) for answer in answers]
        kinds = confusion_table(predicted, [_kind(example) for example in examples])
        return [*super().tables(answers, examples), kinds]

    def draw(
        self, model: nn.Module, example: Question, encoded: Sample, answer: SpanAnswer
    ) -> Drawing:
        """The text and the question, their attention in the answer's window; the answer marked."""
        spans, windows = encoded["spans"], self._windows(encoded)
        text = spans_text(encoded["context"], spans)
        question = self.drawn_text(example.text, len(encoded["other"]))
        begins = [index for index, (start, _) in enumerate(spans) if start == answer.start]
        held = (row for row, window in enumerate(windows) if begins and begins[0] in window)
        row, label = next(held, 0), answer.answer or "no answer"
        is_inside = (answer.start <= start < answer.end for start, _ in spans)
        return Drawing(
            text=text,
            output=words_text([label]),
            cross_attentions=self.cross_attentions(
                ("text", text), ("question", question), read=windows[row], row=row
            ),
            prediction=Prediction(
                labels=((label, answer.probability),),
                tags=tuple("answer" if inside else "" for inside in is_inside),
            ),
        )

    def show(self, example: Question, answer: SpanAnswer) -> str:
        right = " | ".join(dict.fromkeys(_right(example))) or "none"
        predicted = answer.text() or "none"
        return f"{example.text} → {predicted} ({answer.probability:.2f}; right: {right})"

    def _windows(self, sample: Sample) -> list[range]:
        """The tokens of the text that are read at once, several times for a long one."""
        data, count = self.data, len(sample["ids"])
        last = max(0, count - data.max_length)
        starts = [*range(0, last, data.stride), last]
        return [range(start, min(count, start + data.max_length)) for start in starts]


def _logits(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    start, end = model(batch["ids"], batch["lengths"], **batch["reading"])
    return start.float(), end.float()


def _part(sample: Sample, window: range) -> Sample:
    part = slice(window.start, window.stop)
    return {**sample, "ids": sample["ids"][part], "features": sample["features"][part]}


def _tokens_of(spans: Sequence[tuple[int, int]], start: int, end: int) -> tuple[int, int]:
    """The first and the last token of a stretch of text."""
    inside = [index for index, (first, last) in enumerate(spans) if first < end and last > start]
    return (inside[0], inside[-1]) if inside else (0, 0)


def _drawn_answer(
    answers: Sequence[tuple[int, int]], window: range, first: int, generator: Generator | None
) -> tuple[int, int]:
    """The positions of one of the answers that stand in a window."""
    inside = [answer for answer in answers if answer[0] in window and answer[1] in window]
    if not inside:
        return NO_ANSWER, NO_ANSWER
    drawn = 0 if generator is None else int(torch.randint(len(inside), (), generator=generator))
    start, end = inside[drawn]
    return start - window.start + first, end - window.start + first


def _right(example: Question) -> tuple[str, ...]:
    return tuple(answer.text for answer in example.answers)


def _kind(example: Question) -> str:
    return kind_of_answer(example.answers[0].text if example.answers else "")
