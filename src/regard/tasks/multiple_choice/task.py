"""Multiple choice: which of some answers to a question about a text is right."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from regard.config import JsonValue
from regard.errors import DataError
from regard.metrics.labels import accuracy
from regard.metrics.question_answering import answer_words
from regard.models import ClassifierConfig, MultipleChoice
from regard.tasks.baselines.sliding_window import SlidingWindow
from regard.tasks.checking import CheckedExample
from regard.tasks.held_out import hold_out_contexts
from regard.tasks.multiple_choice.choices import Choices, read_choices
from regard.tasks.multiple_choice.settings import ChoicesData
from regard.tasks.one_pass_task import OnePassTask
from regard.tasks.recipe import Recipe, tell_pieces
from regard.tasks.showing import Said, Shown, ShownText, ShownToken, by_share
from regard.tasks.tables import by_group, length_group, question_word
from regard.tasks.task import Table
from regard.tasks.text_pairs import (
    EncodedPair,
    PairBatch,
    build_reader,
    collate_pairs,
    crossings,
    encode_pair,
    joined,
    pair_length,
    pair_model,
    text_cutter,
)
from regard.text import BadLines, Tokenizer, TokenizerConfig, load_tokenizer, train_tokenizer
from regard.text.pieces import END
from regard.text.questions import question_of


@dataclass(frozen=True, slots=True)
class EncodedChoices:
    """A question's answers as ids, each beside the text.

    Attributes:
        pairs: One an answer.
        choices: The answers.
        right: The place of the right one; −1 where not known.
    """

    pairs: list[EncodedPair]
    choices: tuple[str, ...]
    right: int


@dataclass(frozen=True, slots=True, eq=False)
class ChoicesBatch:
    """Padded questions with as many answers each; those that are none have no tokens.

    Attributes:
        pairs: A row for each answer, question by question.
        lengths: How many tokens of each answer are real, 0 where there is none.
        right: The places of the right ones; −1 where not known.
        choices: The answers.
    """

    pairs: PairBatch
    lengths: Int[Tensor, "B A"]
    right: Int[Tensor, " B"]
    choices: list[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Choice:
    """The answer chosen.

    Attributes:
        answer: Its text.
        place: Its place among the choices, from 0.
        probabilities: Of every choice.

    Example:
        >>> answer = Choice("the king", 1, (0.25, 0.75))
        >>> answer.probabilities[answer.place], answer.to_dict()
        (0.75, {'answer': 'the king', 'choice': 1, 'probabilities': [0.25, 0.75]})
    """

    answer: str
    place: int
    probabilities: tuple[float, ...]

    def text(self) -> str:
        """The answer and its probability."""
        return f"{self.answer}\t{self.probabilities[self.place]:.4f}"

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        shares = [round(share, 6) for share in self.probabilities]
        return {"answer": self.answer, "choice": self.place, "probabilities": shares}


class MultipleChoiceAnswering(OnePassTask[Choices, EncodedChoices, ChoicesBatch, Choice]):
    """Questions with answers to choose from to the right ones.

    Args:
        recipe: Whose settings hold.
        tokenizer: Learned from questions, answers and texts of training.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> asked = Choices("Who was old?", "A king was old.", ("a dog", "the king"), 1, "a:1")
        >>> recipe = recipe_from_table({"task": "multiple_choice", "tokenizer": {"type": "words"}})
        >>> task = MultipleChoiceAnswering.learn(recipe, [asked])
        >>> task.collate(task.encode([asked])).lengths.shape  # one question, two answers
        torch.Size([1, 2])
        >>> task.score(task.baselines([], [asked])["longest overlap"], [asked])
        {'accuracy': 100.0}
    """

    unit: ClassVar[str] = "questions"
    counted = "questions"
    metrics: ClassVar[Mapping[str, int]] = {"accuracy": 1}
    hold_out = staticmethod(hold_out_contexts)

    def __init__(self, recipe: Recipe, tokenizer: Tokenizer) -> None:
        self.recipe, self.tokenizer = recipe, tokenizer
        self.data = recipe.settings(ChoicesData)

    @classmethod
    def read(
        cls, recipe: Recipe, split: str, *, bad_lines: BadLines | None = None
    ) -> list[Choices]:
        """The questions of a split; none if the recipe names no file.

        Raises:
            DataError: A question has no choices, and its story not enough other answers.
        """
        data = recipe.settings(ChoicesData)
        return [
            choices
            for file in recipe.files(split)
            for choices in read_choices(
                file,
                num_wrong=data.num_wrong,
                on_bad_line=data.on_bad_line,
                bad_lines=bad_lines,
            )
        ]

    @staticmethod
    def subject(example: Choices) -> str:
        """The text that the question is about."""
        return example.context

    @staticmethod
    def checked(example: Choices) -> CheckedExample:
        """The question, its text and the choices."""
        return CheckedExample((example.text, example.context), (), example.where, example.choices)

    @classmethod
    def learn(cls, recipe: Recipe, examples: Sequence[Choices]) -> "MultipleChoiceAnswering":
        """The task with the tokenizer of the training questions, answers and texts."""
        texts = dict.fromkeys(example.context for example in examples)
        asked = (f"{e.text} {e.choices[e.right]}" for e in examples)
        return cls(recipe, train_tokenizer([*texts, *asked], recipe.settings(TokenizerConfig)))

    @classmethod
    def load(cls, recipe: Recipe, folder: Path) -> "MultipleChoiceAnswering":
        """The task with what ``save`` wrote."""
        return cls(recipe, load_tokenizer(folder / "text"))

    def save(self, folder: Path) -> None:
        """Write the tokenizer."""
        self.tokenizer.save(folder / "text")

    def build_model(self) -> nn.Module:
        """The recipe's reader with new weights, and what scores an answer on it."""
        data = self.data
        longest = data.max_length + data.max_answer + 3
        reader = build_reader(self.recipe, vocab_size=self.tokenizer.vocab_size, longest=longest)
        return MultipleChoice(self.recipe.settings(ClassifierConfig), reader)

    def facts(self) -> list[str]:
        """Describe the vocabulary learned from the text, in lines."""
        return [tell_pieces(self.recipe, self.tokenizer.vocab_size)]

    def request(self, record: str | Mapping[str, JsonValue], where: str) -> Choices:
        """The question of a JSON record with its "context" and "choices".

        Raises:
            DataError: One of them is missing.
        """
        if isinstance(record, str):
            raise DataError(
                f"{where}: expected a JSON object with question, context and choices; got a "
                "line of text. Give a .jsonl file."
            )
        question = question_of(record, where)
        if len(question.choices) < 2:
            raise DataError(f"{where}: choices must be at least two; got {list(question.choices)}.")
        return Choices(question.text, question.context, question.choices, -1, where)

    def encode(
        self,
        examples: Iterable[Choices],
        *,
        training: bool = False,
        too_long: BadLines | None = None,
    ) -> list[EncodedChoices]:
        """Ids of each answer, after its question, beside the text."""
        longest, too_long = self.data.max_length, too_long or BadLines()
        cut = text_cutter(self.tokenizer)
        found = []
        for example in examples:
            text, asked = cut(example.context), cut(example.text)
            too_long.add_cut("text", example.where, size=len(text.ids), longest=longest)
            pairs = []
            for choice in example.choices:
                answer = joined(asked, cut(choice))
                kept = slice(-self.data.max_answer, None)  # the question's end asks
                pairs.append(
                    encode_pair(answer, text, self.recipe, kept=kept, other_kept=slice(longest))
                )
            found.append(EncodedChoices(pairs, example.choices, example.right))
        return found

    def lengths(self, encoded: Sequence[EncodedChoices]) -> Int64[np.ndarray, " n"]:
        """Tokens of all answers, each beside the text; a text that is read once counts once."""
        once = pair_model(self.recipe).reads_apart
        return np.array(
            [
                sum(map(pair_length, each.pairs))
                - (len(each.pairs) - 1) * len(each.pairs[0].other) * once
                for each in encoded
            ],
            dtype=np.int64,
        )

    def collate(
        self, encoded: Sequence[EncodedChoices], *, generator: torch.Generator | None = None
    ) -> ChoicesBatch:
        """A padded batch."""
        most = max(len(each.pairs) for each in encoded)
        rows = [
            each.pairs[min(place, len(each.pairs) - 1)] for each in encoded for place in range(most)
        ]
        pairs = collate_pairs(rows, self.recipe, every=most)
        counts = torch.tensor([len(each.pairs) for each in encoded])
        is_there = torch.arange(most) < counts[:, None]
        return ChoicesBatch(
            pairs=pairs,
            lengths=pairs.lengths.view(-1, most) * is_there,
            right=torch.tensor([each.right for each in encoded]),
            choices=[each.choices for each in encoded],
        )

    def loss(
        self, model: nn.Module, batch: ChoicesBatch, *, smoothing: float = 0.0
    ) -> tuple[Float[Tensor, ""], int]:
        """The summed cross-entropy with the head's penalty, and how many questions there are."""
        logits, penalty = self._logits(model, batch)
        log_probs = logits.log_softmax(-1)
        known = batch.right >= 0
        loss = F.nll_loss(log_probs, batch.right.clamp(min=0), reduction="none")
        # What is no answer has no probability to be smoothed.
        spread = -log_probs.masked_fill(batch.lengths == 0, 0).sum(-1)
        spread = spread / (batch.lengths > 0).sum(-1)
        each = (1 - smoothing) * loss + smoothing * spread + penalty
        return (each * known).sum(), int(known.sum())

    def predict(self, model: nn.Module, batch: ChoicesBatch) -> list[Choice]:
        """The answer chosen for each question."""
        rows = self._logits(model, batch)[0].softmax(-1).tolist()
        found = []
        for row, choices in zip(rows, batch.choices, strict=True):
            shares = tuple(row[: len(choices)])
            place = shares.index(max(shares))
            found.append(Choice(choices[place], place, shares))
        return found

    def score(self, answers: Sequence[Choice], examples: Sequence[Choices]) -> dict[str, float]:
        """Accuracy in percent."""
        given = [str(answer.place) for answer in answers]
        return {"accuracy": accuracy(given, [str(example.right) for example in examples])}

    def example_score(self, answer: Choice, example: Choices) -> float:
        """The probability of the right answer."""
        return answer.probabilities[example.right]

    def baselines(
        self, train: Sequence[Choices], examples: Sequence[Choices]
    ) -> dict[str, list[Choice]]:
        """Always the first, the answer most of whose words the text has, and a sliding window."""
        window = SlidingWindow(())
        return {
            "always the first": [
                _chosen(e, [-float(place) for place in range(len(e.choices))]) for e in examples
            ],
            "longest overlap": [
                _chosen(e, [_overlap(choice, e.context) for choice in e.choices]) for e in examples
            ],
            "sliding window": [
                _chosen(e, [window.score(e.text, choice, e.context) for choice in e.choices])
                for e in examples
            ],
        }

    def tables(self, answers: Sequence[Choice], examples: Sequence[Choices]) -> list[Table]:
        """By question word, by length, by whether the text has the very answer."""
        hits = [float(a.place == e.right) for a, e in zip(answers, examples, strict=True)]
        scores = {"accuracy": hits}
        said = ["yes" if _is_said(e.choices[e.right], e.context) else "no" for e in examples]
        lengths = [length_group(len(example.context)) for example in examples]
        return [
            by_group("question word", [question_word(e.text) for e in examples], scores),
            by_group("characters of the text", lengths, scores, ordered=True),
            by_group("right answer word for word in the text", said, scores),
        ]

    def shown(self, example: Choices, encoded: EncodedChoices, answer: Choice) -> Shown:
        """Question and text, and what the answer chosen looks at in the text."""
        pair = encoded.pairs[answer.place]
        context = self.tokenizer.pieces(example.context)[: len(pair.other)]
        found = crossings(
            self.recipe,
            ("answer", self._asked(example.text, answer.answer, len(pair.ids))),
            ("text", ShownText.of_pieces(example.context, context)),
            row=answer.place,
        )
        return Shown(
            text=ShownText.of_words((example.text, example.context), "\n"),
            output=ShownText.of_words([answer.answer]),
            crossings=found[::-1],
        )

    def said(
        self, model: nn.Module, example: Choices, encoded: EncodedChoices, answer: Choice
    ) -> Said:
        """How likely each choice is."""
        return Said(labels=by_share(zip(example.choices, answer.probabilities, strict=True)))

    def show(self, example: Choices, answer: Choice) -> str:
        """The question, the answer chosen and the right one."""
        share = answer.probabilities[answer.place]
        right = example.choices[example.right] if example.right >= 0 else "?"
        return f"{example.text} → {answer.answer} ({share:.2f}; right: {right})"

    def _asked(self, question: str, answer: str, kept: int) -> ShownText:
        """The question and an answer, of which the last tokens are read."""
        place = len(question)
        tokens = (
            *ShownText.of_pieces(question, self.tokenizer.pieces(question)).tokens,
            ShownToken(END, place, place),
            *(
                ShownToken(piece.text, piece.start + place + 1, piece.end + place + 1)
                for piece in self.tokenizer.pieces(answer)
            ),
        )
        return ShownText(f"{question} {answer}", tokens[-kept:])

    def _logits(
        self, model: nn.Module, batch: ChoicesBatch
    ) -> tuple[Float[Tensor, "B A"], Float[Tensor, " B"]]:
        """The logits, and what the head adds to the loss."""
        shape = batch.lengths.shape
        ids = batch.pairs.ids.view(*shape, -1)
        # What is read once for all answers has an axis of one answer.
        by_answer = {
            name: each.view(shape[0], -1, *each.shape[1:])
            for name, each in batch.pairs.reading.items()
        }
        logits, penalty = model(ids, batch.lengths, return_penalty=True, **by_answer)
        return logits.float(), penalty


def _chosen(example: Choices, scores: Sequence[float]) -> Choice:
    """The choice with the highest score, the first of equals."""
    place = scores.index(max(scores))
    shares = tuple(float(other == place) for other in range(len(scores)))
    return Choice(example.choices[place], place, shares)


def _overlap(answer: str, context: str) -> float:
    """The share of an answer's words that stand in the text, and how long a run of them does."""
    words, text = answer_words(answer), answer_words(context)
    if not words:
        return 0.0
    known, shared = Counter(text), Counter(words)
    share = (known & shared).total() / len(words)
    return share + 0.001 * len(words)


def _is_said(answer: str, context: str) -> bool:
    said = " ".join(answer_words(answer))
    return f" {said} " in f" {' '.join(answer_words(context))} "
