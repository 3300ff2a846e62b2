"""Tasks whose answers are computed in one pass, not searched for: labels, tags, spans."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import DataError
from regard.progress import progress
from regard.tasks.checking import CheckedExample, ExamplesReport, check_examples
from regard.tasks.held_out import LEAST_FOR_TEST, Parts, evenly, hold_out_by_hash, valid_share
from regard.tasks.recipe import Recipe, RecipeTable
from regard.tasks.showing import Said, Shown
from regard.tasks.task import AnswerT, BatchT, EncodedT, ExampleT, Table, Task
from regard.text import BadLines, Line, PairTokenizer
from regard.text.lines import readable
from regard.text.records import object_of, record_in


class OnePassTask(Task[ExampleT, EncodedT, BatchT, AnswerT]):
    """A task whose answers are computed in one pass, not searched for: labels, tags, spans.

    Attributes:
        are_texts: Whether examples are texts, which have a length.
        least_for_test: Fewer different texts than these hold none out to test on.

    Example:
        >>> class Spelling(OnePassTask[str, str, str, str]):
        ...     unit = "words"
        >>> train, valid = Spelling.hold_out(Recipe(), [f"word {n}" for n in range(10)])
        >>> len(train), valid, Spelling.is_written
        (9, ['word 0'], False)
    """

    are_texts: ClassVar[bool] = True
    least_for_test: ClassVar[int] = LEAST_FOR_TEST

    @staticmethod
    @abstractmethod
    def subject(example: ExampleT, /) -> str:
        """The text that an example is about, which others may be about too; else all it says."""

    @staticmethod
    @abstractmethod
    def checked(example: ExampleT, /) -> CheckedExample:
        """Texts and labels of an example, to be checked before training."""

    @abstractmethod
    def predict(self, model: nn.Module, batch: BatchT) -> list[AnswerT]:
        """Predict each example."""

    @abstractmethod
    def example_score(self, answer: AnswerT, example: ExampleT) -> float:
        """How right one answer is, from 0 to 1: what the best and the worst are chosen by."""

    @abstractmethod
    def baselines(
        self, train: Sequence[ExampleT], examples: Sequence[ExampleT]
    ) -> dict[str, list[AnswerT]]:
        """Answers that take no model, by the name of how they are made."""

    @abstractmethod
    def tables(self, answers: Sequence[AnswerT], examples: Sequence[ExampleT]) -> list[Table]:
        """Where the figures come from: by label, by length, what was taken for what."""

    @classmethod
    def hold_out(
        cls, recipe: Recipe, examples: Sequence[ExampleT]
    ) -> tuple[list[ExampleT], list[ExampleT]]:
        """The examples to train on and those to validate on, where the recipe names no others.

        Those are a few spread evenly over the text.

        Raises:
            DataError: There are fewer than ten.
        """
        places = set(evenly(range(len(examples)), unit=cls.unit, share=valid_share(recipe)))
        held = [example for place, example in enumerate(examples) if place in places]
        return [example for place, example in enumerate(examples) if place not in places], held

    def shown(self, example: ExampleT, encoded: EncodedT, answer: AnswerT) -> Shown | None:
        """The texts people are shown, their tokens, and which calls of attention belong to them.

        None shows what was asked and ``answer.text()``, and the attention between the words of the
        text where there is a query and a key for each.

        Raises:
            DataError: The text is too long to be read at once.
        """
        return None

    def said(self, model: nn.Module, example: ExampleT, encoded: EncodedT, answer: AnswerT) -> Said:
        """The answer in words and numbers, and what the model says of each token that is shown."""
        return Said()

    @classmethod
    def read_parts(cls, recipe: Recipe, *, bad_lines: BadLines | None = None) -> Parts[ExampleT]:
        """The examples of a training, the same ones whenever they are asked for.

        Raises:
            DataError: The training text is not named, cannot be read, or is too short to hold some
                out.
        """
        train = cls.read(recipe, "train", bad_lines=bad_lines)
        if not train:
            raise DataError("data.train must name the training text; got nothing.")
        test: list[ExampleT] = []
        if recipe.holds_out_test:
            train, test = hold_out_by_hash(train, cls.subject, least=cls.least_for_test)
        valid = cls.read(recipe, "valid", bad_lines=bad_lines)
        if not valid:
            train, valid = cls.hold_out(recipe, train)
        return Parts(train, valid, test)

    @classmethod
    def check(
        cls,
        recipe: Recipe,
        *,
        examples: int = 3,
        tokenizer: PairTokenizer | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> ExamplesReport:
        """Check the examples: see ``check_examples``."""

        def read(split: str, bad_lines: BadLines) -> list[CheckedExample]:
            return [cls.checked(each) for each in cls.read(recipe, split, bad_lines=bad_lines)]

        return check_examples(read, unit=cls.unit, examples=examples, are_texts=cls.are_texts)

    @classmethod
    def fingerprint(cls, example: ExampleT) -> str:
        """All that it says."""
        # Run folders keep it: with another name of class or field, no training begun goes on.
        return repr(example)

    @classmethod
    def settled(
        cls, recipe: Recipe, kept: RecipeTable | None, examples: Sequence[ExampleT]
    ) -> Recipe:
        """The recipe as it is: nothing is left open."""
        return recipe

    def asked(self, line: Line, ending: str) -> ExampleT | None:
        """Parse a line into an example: text, or an object as in JSONL; None for an empty line.

        Raises:
            DataError: It asks nothing that can be answered, or is too long.
        """
        example = self.question(line, ending)
        if example is not None:
            self.encode([example])  # it may be too long
        return example

    def question(self, line: Line, ending: str) -> ExampleT | None:
        """Parse a line as ``asked`` does, without checking its length.

        Raises:
            DataError: It asks nothing that can be answered.
        """
        text = readable(line)
        if not text.strip():
            return None
        record = object_of(text, line.where) if ending == ".jsonl" else record_in(text)
        return self.request(record, line.where)

    def encode_parts(
        self,
        train: Sequence[ExampleT],
        valid: Sequence[ExampleT],
        *,
        too_long: BadLines,
    ) -> tuple[Sequence[EncodedT], Sequence[EncodedT]]:
        """Ids of the training examples, and of the validation examples.

        Raises:
            DataError: No example is left to learn from, or one cannot be validated on.
        """
        with progress("encoding"):
            encoded = self.encode(train, training=True, too_long=too_long)
        if not encoded:
            reasons = [message for found in too_long.examples.values() for message in found]
            cure = reasons[0] if reasons else "Raise data.max_length."
            raise DataError(
                f"data.train must hold {self.unit} that are not too long; got none. {cure}"
            )
        return encoded, self.encode(valid)

    def of_epoch(self, encoded: Sequence[EncodedT], *, seed: int, epoch: int) -> Sequence[EncodedT]:
        """Return the same examples in every epoch."""
        return encoded

    def backward(
        self, model: nn.Module, batch: BatchT, *, smoothing: float, scale: float = 1.0
    ) -> tuple[Float[Tensor, ""], int]:
        """The loss, detached, and its terms; its gradient, times ``scale``, is added."""
        loss, terms = self.loss(model, batch, smoothing=smoothing)
        (loss if scale == 1 else loss * scale).backward()  # type: ignore[no-untyped-call]
        return loss.detach(), terms
