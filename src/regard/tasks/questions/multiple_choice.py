"""Multiple choice: which of several answers to a question about a text is the right one."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from regard.config import JsonValue
from regard.errors import DataError
from regard.metrics.question_answering import answer_words
from regard.models import ClassifierConfig, MultipleChoice
from regard.tasks.batches import Batch, Sample
from regard.tasks.drawing import Drawing, likeliest_first, words_text
from regard.tasks.oddities import CheckedExample
from regard.tasks.one_pass_task import Loss
from regard.tasks.questions.question_task import ContextTask, read_stories
from regard.tasks.questions.text_pairs import (
    PairReading,
    joined,
    pair_length,
    pair_model,
    text_cutter,
)
from regard.tasks.sentence_baselines import SlidingWindow, sentences_of
from regard.tasks.settings.data import ChoicesData
from regard.tasks.settings.recipe import Recipe
from regard.tasks.tables import length_group
from regard.tasks.task import Answer
from regard.text import BadLines, Tokenizer, TokenizerConfig, train_tokenizer
from regard.text.reading.questions import Question, parse_question, question_of, read_questions
from regard.text.reading.records import Handling, usable
from regard.text.tokenizers.pieces import END
from regard.viewer import Prediction, Text, Token

__all__ = ["Choice", "Choices", "ChoicesData", "MultipleChoiceAnswering"]


@dataclass(frozen=True, slots=True)
class Choices:
    """A question about a text, with at least two answers to choose from.

    ``right`` is the index of the right one, −1 where it is to be predicted.
    """

    text: str
    context: str
    choices: tuple[str, ...]
    right: int
    where: str


@dataclass(frozen=True, slots=True)
class Choice(Answer):
    """The answer chosen, its index among the choices, and the probability of every choice."""

    answer: str
    index: int
    probabilities: tuple[float, ...]

    def text(self) -> str:
        """The answer and its probability."""
        return f"{self.answer}\t{self.probabilities[self.index]:.4f}"

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        shares: list[JsonValue] = [round(share, 6) for share in self.probabilities]
        return {"answer": self.answer, "choice": self.index, "probabilities": shares}


class MultipleChoiceAnswering(PairReading, ContextTask[Choices, Choice]):
    """Questions with answers to choose from to the right ones.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> asked = Choices("Who was old?", "A king was old.", ("a dog", "the king"), 1, "a:1")
        >>> recipe = recipe_from_table({"task": "multiple_choice", "tokenizer": {"type": "words"}})
        >>> task = MultipleChoiceAnswering.learn(recipe, [asked])
        >>> task.collate(task.encode([asked]))["answer_lengths"].shape  # one question, two answers
        torch.Size([1, 2])
        >>> task.score(task.baselines([], [asked])["longest overlap"], [asked])
        {'accuracy': 100.0}
    """

    can_smooth: ClassVar[bool] = True
    metrics: ClassVar[Mapping[str, int]] = {"accuracy": 1}
    main_metric: ClassVar[str] = "accuracy"
    data: ChoicesData
    tokenizer: Tokenizer

    @classmethod
    def read_file(cls, file: Path, data: Any, handling: Handling) -> Iterable[Choices]:
        """The questions of one file, with their choices or answers to others of their story."""
        if data.sentences:
            questions = read_questions(file, **handling)
            return usable(questions, _with_sentences, "sentences", **handling)
        return read_stories(
            file,
            handling,
            "choices",
            story_of=lambda question: question.article or question.context,
            part_of=lambda question: question.answers[0].text if question.answers else None,
            make=lambda question, candidates: _with_choices(question, candidates, data.num_wrong),
        )

    @staticmethod
    def checked(example: Choices) -> CheckedExample:
        return CheckedExample((example.text, example.context), (), example.where, example.choices)

    @staticmethod
    def named_texts(example: Choices) -> dict[str, str]:
        texts = {"context": example.context, "question": example.text}
        return {**texts, "choices": " | ".join(example.choices)}

    @classmethod
    def learn(cls, recipe: Recipe, examples: Sequence[Choices]) -> "MultipleChoiceAnswering":
        texts = dict.fromkeys(example.context for example in examples)
        answered = (f"{e.text} {e.choices[e.right]}" for e in examples)
        return cls(recipe, train_tokenizer([*texts, *answered], recipe.settings(TokenizerConfig)))

    def build_model(self) -> nn.Module:
        longest = self.data.max_length + self.data.max_answer + 3
        return MultipleChoice(self.recipe.settings(ClassifierConfig), self.build_reader(longest))

    def request(self, record: str | Mapping[str, JsonValue], where: str) -> Choices:
        """The question of a JSON record with "context" and "choices"; DataError without one."""
        if self.data.sentences:
            return _with_sentences(parse_question(record, where))
        if isinstance(record, str):
            raise DataError(
                f"{where}: expected a JSON object with question, context and choices; got a "
                "line of text. Give a .jsonl file."
            )
        question = question_of(record, where)
        if len(question.choices) < 2:
            raise DataError(f"{where}: choices must be at least two; got {list(question.choices)}.")
        return Choices(question.text, question.context, question.choices, -1, where)

    def samples(
        self, examples: Sequence[Choices], too_long: BadLines, *, training: bool
    ) -> Iterator[Sample]:
        """Ids of each answer, after its question, beside the text."""
        longest = self.data.max_length
        # The question's end asks.
        parts = {"part": slice(-self.data.max_answer, None), "paired_part": slice(longest)}
        cut = text_cutter(self.tokenizer)
        for example in examples:
            text, question = cut(example.context), cut(example.text)
            if self.data.sentences:
                answers, text = [cut(sentence) for sentence in example.choices], question
                parts["part"] = slice(self.data.max_answer)
            else:
                answers = [joined(question, cut(choice)) for choice in example.choices]
            too_long.add_cut("text", example.where, size=len(text.ids), longest=longest)
            pairs = [self.encode_pair(answer, text, **parts) for answer in answers]
            yield {"pairs": pairs, "choices": example.choices, "right": example.right}

    def length(self, sample: Sample) -> int:
        """Tokens of all answers, each beside the text; a text that is read once counts once."""
        pairs, once = sample["pairs"], pair_model(self.recipe).reads_apart
        return sum(map(pair_length, pairs)) - (len(pairs) - 1) * len(pairs[0]["other"]) * once

    def collate(self, encoded: Sequence[Sample], *, generator: Generator | None = None) -> Batch:
        """A padded batch, a row for each answer; questions with fewer have rows without tokens."""
        counts = torch.tensor([len(sample["pairs"]) for sample in encoded])
        most = int(counts.max())
        rows = [
            sample["pairs"][min(index, len(sample["pairs"]) - 1)]
            for sample in encoded
            for index in range(most)
        ]
        pairs = self.collate_pairs(rows, every=most)
        is_answer = torch.arange(most) < counts[:, None]
        return {
            **pairs,
            "answer_lengths": pairs["lengths"].view(-1, most) * is_answer,
            "right": torch.tensor([sample["right"] for sample in encoded]),
            "choices": [sample["choices"] for sample in encoded],
        }

    def batch_loss(self, model: nn.Module, batch: Batch, smoothing: float) -> Loss:
        logits, penalty = self._logits(model, batch)
        right, is_answer = batch["right"], batch["answer_lengths"] > 0
        log_probs, is_labelled = logits.log_softmax(-1), right >= 0
        loss = F.nll_loss(log_probs, right.clamp(min=0), reduction="none")
        # Padding among the answers has no probability to be smoothed.
        spread = -log_probs.masked_fill(~is_answer, 0).sum(-1) / is_answer.sum(-1)
        losses = (1 - smoothing) * loss + smoothing * spread + penalty
        return (losses * is_labelled).sum(), int(is_labelled.sum())

    def predict(self, model: nn.Module, batch: Batch) -> list[Choice]:
        rows = self._logits(model, batch)[0].softmax(-1).tolist()
        return [
            _chosen(choices, row[: len(choices)])
            for row, choices in zip(rows, batch["choices"], strict=True)
        ]

    def scores(self, answer: Choice, example: Choices) -> Mapping[str, float]:
        return {"accuracy": answer.index == example.right}

    def groups(self, example: Choices) -> Mapping[str, str]:
        """The groups of its length, and of whether the text has the very answer."""
        answer, context = (
            f" {' '.join(answer_words(text))} "
            for text in (example.choices[example.right], example.context)
        )
        return {
            "characters of the text": length_group(len(example.context), of_contexts=True),
            "right answer word for word in the text": "yes" if answer in context else "no",
        }

    def example_score(self, answer: Choice, example: Choices) -> float:
        """The probability of the right answer."""
        return answer.probabilities[example.right]

    def distribution(self, answer: Choice, example: Choices) -> tuple[Sequence[float], int] | None:
        return None if example.right < 0 else (answer.probabilities, example.right)

    def baselines(
        self, train: Sequence[Choices], examples: Sequence[Choices]
    ) -> dict[str, list[Choice]]:
        """Always the first, the answer most of whose words the text has, and a sliding window."""
        window = SlidingWindow(())
        scores: dict[str, Callable[[Choices, str], float]] = {
            "always the first": lambda e, choice: -float(e.choices.index(choice)),
            "longest overlap": lambda e, choice: _overlap(choice, e.context),
            "sliding window": lambda e, choice: window.score(e.text, choice, e.context),
        }
        return {
            name: [
                _certain(e.choices, [score(e, choice) for choice in e.choices]) for e in examples
            ]
            for name, score in scores.items()
        }

    def draw(self, model: nn.Module, example: Choices, encoded: Sample, answer: Choice) -> Drawing:
        """Question and text, the attention of the chosen answer to the text, and each choice."""
        cut, pair, question = self.tokenizer.pieces, encoded["pairs"][answer.index], example.text
        if self.data.sentences:
            sentence = self.drawn_text(answer.answer, len(pair["ids"]))
            question_text = self.drawn_text(question, len(pair["other"]))
            return self._drawn(("answer", sentence), ("question", question_text), example, answer)
        end = len(question)
        tokens = [Token(text=word.text, start=word.start, end=word.end) for word in cut(question)]
        tokens.append(Token(text=END, start=end, end=end))
        tokens += [
            Token(text=word.text, start=word.start + end + 1, end=word.end + end + 1)
            for word in cut(answer.answer)
        ]
        read = Text(text=f"{question} {answer.answer}", tokens=tuple(tokens[-len(pair["ids"]) :]))
        context = self.drawn_text(example.context, len(pair["other"]))
        return self._drawn(("answer", read), ("text", context), example, answer)

    def _drawn(
        self, read: tuple[str, Text], beside: tuple[str, Text], example: Choices, answer: Choice
    ) -> Drawing:
        """The attention between an answer and the text beside it, and each choice."""
        attentions = self.cross_attentions(read, beside, row=answer.index)
        choices = zip(example.choices, answer.probabilities, strict=True)
        return Drawing(
            text=words_text((example.text, example.context), "\n"),
            output=words_text([answer.answer]),
            cross_attentions=attentions[::-1],
            prediction=Prediction(labels=likeliest_first(choices)),
        )

    def show(self, example: Choices, answer: Choice) -> str:
        share = answer.probabilities[answer.index]
        right = example.choices[example.right] if example.right >= 0 else "?"
        return f"{example.text} → {answer.answer} ({share:.2f}; right: {right})"

    def _logits(
        self, model: nn.Module, batch: Batch
    ) -> tuple[Float[Tensor, "B A"], Float[Tensor, " B"]]:
        lengths = batch["answer_lengths"]
        # Tensors read once for all answers have an axis of one answer.
        by_answer = {
            name: tensor.view(len(lengths), -1, *tensor.shape[1:])
            for name, tensor in batch["reading"].items()
        }
        ids = batch["ids"].view(*lengths.shape, -1)
        logits, penalty = model(ids, lengths, return_penalty=True, **by_answer)
        return logits.float(), penalty


def _with_choices(question: Question, candidates: Sequence[str], num_wrong: int) -> Choices:
    """The question with its choices, or always the same of the answers to others of its story."""
    right, choices = question.answers[0].text if question.answers else "", question.choices
    if choices and right not in choices:
        raise DataError(
            f"{question.where}: the first of answers must be one of choices; got {right!r} "
            f"and {list(choices)}."
        )
    if not choices:
        choices = _drawn(question, right, candidates, num_wrong)
    return Choices(question.text, question.context, choices, choices.index(right), question.where)


def _with_sentences(question: Question) -> Choices:
    """The question with the sentences of its text; the right one is −1 where none is."""
    spans = sentences_of(question.context)
    if not spans:
        raise DataError(f"{question.where}: the text must have a sentence; got none.")
    starts = [answer.start for answer in question.answers]
    right = next((n for n, (a, b) in enumerate(spans) if any(a <= s < b for s in starts)), -1)
    sentences = tuple(question.context[start:end] for start, end in spans)
    return Choices(question.text, question.context, sentences, right, question.where)


def _drawn(
    question: Question, right: str, candidates: Sequence[str], num_wrong: int
) -> tuple[str, ...]:
    """The right answer among wrong ones, which are right ones to other questions."""
    right_words = {answer_words(answer.text) for answer in question.answers}
    dice = random.Random(f"{question.text}\0{question.context}")
    wrong: list[str] = []
    for candidate in dice.sample(candidates, len(candidates)):
        if len(wrong) < num_wrong and answer_words(candidate) not in right_words:
            right_words.add(answer_words(candidate))
            wrong.append(candidate)
    if len(wrong) < num_wrong:
        raise DataError(
            f"{question.where}: its story must have {num_wrong} other answers to draw wrong ones "
            f"from; got {len(wrong)}. Give choices, lower data.num_wrong, or leave the question "
            "out: on_bad_line = skip."
        )
    return tuple(dice.sample([right, *wrong], num_wrong + 1))


def _chosen(choices: Sequence[str], shares: Sequence[float]) -> Choice:
    """The likeliest choice, the first of equals."""
    index = shares.index(max(shares))
    return Choice(choices[index], index, tuple(shares))


def _certain(choices: Sequence[str], scores: Sequence[float]) -> Choice:
    """The choice with the highest score, the first of equals, as if nothing else were possible."""
    best = scores.index(max(scores))
    return _chosen(choices, [float(index == best) for index in range(len(scores))])


def _overlap(answer: str, context: str) -> float:
    """The share of an answer's words that stand in the text, and how long a run of them does."""
    words, text = answer_words(answer), answer_words(context)
    if not words:
        return 0.0
    counts, shared = Counter(text), Counter(words)
    return (counts & shared).total() / len(words) + 0.001 * len(words)
