"""Models in use, whatever their kind: records in; answers, scores and attention out."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, TypedDict, TypeVar, Unpack

import torch
from torch import nn

from regard.checks import choose
from regard.config import JsonValue
from regard.devices import device_of
from regard.errors import DataError, RunError, SettingError
from regard.inference.examples import document
from regard.inference.preparation import Preparation
from regard.inference.requests import records_in, typed_record
from regard.interop.pages.neurons import fitting
from regard.runtime.preparing import warm_up
from regard.tasks import AnyTask, DecodingConfig, Recipe
from regard.tasks.task import Answer
from regard.text import Line
from regard.text.phrasebook import Phrase
from regard.viewer import Document, Example, NotebookPage, show
from regard.viewer.example import Share
from regard.viewer.options import EVERYTHING, LookOptions
from regard.viewer.parts import RowSource

TaskT = TypeVar("TaskT", bound=AnyTask)
SEARCHED = tuple(field.name for field in fields(DecodingConfig))


class Request(NamedTuple):
    """A record as a model reads it."""

    example: Any
    parts: Sequence[Any]
    unknown: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer of a model to a text; labels and tokens with their probabilities, likeliest first."""

    text: str = ""  # the output, the continuation or the label; empty of a model that says nothing
    labels: tuple[Share, ...] = ()
    next_tokens: tuple[Share, ...] = ()  # of a masked word, those in its place
    unknown: tuple[str, ...] = ()  # words or characters that are not in a run's vocabulary

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        return asdict(self)


class Answering(TypedDict, total=False):
    """Options of a search, and of the fields of its answers; see ``Predictor.translate``."""

    decoding: DecodingConfig | None
    attention: bool
    layers: Sequence[int] | None
    progress: Callable[[int], None] | None


class InUse(ABC):
    """A model in use: a run, or one of Hugging Face's."""

    model: nn.Module
    answers_name: ClassVar[str] = ""

    @property
    @abstractmethod
    def job(self) -> str:
        """Name of its task; "attention" of a model that says nothing."""

    @property
    @abstractmethod
    def explains(self) -> bool:
        """Whether its answers are explained."""

    @abstractmethod
    def look(
        self, texts: object, options: LookOptions = ..., *, explain: bool = True
    ) -> NotebookPage:
        """A page of its attention, and of explanations of its answer."""

    @abstractmethod
    def reply(self, text: str, example: Example) -> Reply:
        """Its answer to the text of an example."""

    def unused(self, *, explain: bool) -> set[str]:
        """Options of looks that have no effect on it."""
        return {"beam_size"} if explain else {"beam_size", *_EXPLAINING}

    def parts(self, text: str, target: str | None) -> list[str]:
        """The parts of a text that are looked into one by one."""
        return [text]

    def about(self) -> dict[str, JsonValue]:
        """Summary for a list of models."""
        return {
            "task": self.job,
            "model": type(self.model).__name__,
            "parameters": sum(p.numel() for p in self.model.parameters()),
            "source_language": None,
            "target_language": None,
            "beam_size": None,
            "max_tokens": None,
            "explains": self.explains,
        }


_EXPLAINING = ("target", "against", "attribute", "neurons", "scores", "circuits")


class RunInUse(InUse, Generic[TaskT]):
    """A trained model with its task.

    Args:
        model: Trained, or in training; put into evaluation mode at each use.
        task: The one it was trained for.

    Attributes:
        work: Name of its work beside a progress bar.
        nothing: Answer to a line that holds none, or cannot be read.
        no_score: Score of such a line.
        at_once: Lines that are answered together; None is as many as come.
        has_rows: Whether exact rows of its attention are asked for one by one.
        useless: Settings of the search without a use in it, by name, each with the reason.
        served: Settings of the search that a server has in place of the recipe's.
        no_attention: Why its answers come without attention; None where they can have it.
        scored_by: Settings of the search that scores depend on.
    """

    answers_name: ClassVar[str] = "answers"
    work: ClassVar[str] = "answering"
    nothing: ClassVar[Answer | None] = None
    no_score: ClassVar[Answer | None] = None
    at_once: ClassVar[int | None] = None
    has_rows: ClassVar[bool] = False
    useless: ClassVar[Mapping[str, str]] = {}
    served: ClassVar[Mapping[str, JsonValue]] = {}
    no_attention: ClassVar[str | None] = "which has no source to look at"
    scored_by: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, model: nn.Module, task: TaskT) -> None:
        self.model, self.task = model, task
        self.preparation = Preparation()

    @property
    def job(self) -> str:
        return self.recipe.task

    @property
    def recipe(self) -> Recipe:
        """Recipe that the run was trained by."""
        return self.task.recipe

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return device_of(self.model)

    @property
    def translator(self) -> Any:
        """Itself, if it writes a text for a text; else a RunError."""
        raise RunError(
            f"run must be the run of a translator; it is one of {self.job}. "
            "Ask it in Python: Predictor.load(RUN).predict(TEXTS); or with regard predict."
        )

    @abstractmethod
    def parse(self, record: str | Mapping[str, JsonValue], where: str) -> Request:
        """The request in a text or a JSON record."""

    @abstractmethod
    def parse_line(self, line: Line, ending: str) -> Request | None:
        """The request in a line of a file; None of a line that holds none."""

    @abstractmethod
    def parse_scored(self, line: Line, ending: str) -> Request | None:
        """Return the scored part of a line of a file; None of a line that holds nothing."""

    @abstractmethod
    def answer_parts(self, parts: Sequence[Any], **options: Unpack[Answering]) -> Sequence[Answer]:
        """The answer to each part of requests."""

    @abstractmethod
    def answer_examples(
        self, examples: Sequence[Any], **options: Unpack[Answering]
    ) -> Sequence[Answer]:
        """The answer to each example, as metrics take it; of running text, its −log p."""

    @abstractmethod
    def score(
        self, requests: Sequence[Request], *, decoding: DecodingConfig | None = None
    ) -> Sequence[Answer]:
        """Score each request's text: its log-probability under the model."""

    @abstractmethod
    def examples(
        self, text: object, where: str, options: LookOptions, gold: Phrase | None, *, explain: bool
    ) -> Iterable[Example]:
        """Attention of the model while it answers one text; with explanations, if wanted."""

    def parse_value(self, value: object, where: str) -> Request:
        """The request of a value as programs have them."""
        return self.parse(typed_record(value, where), where)

    def answer(self, requests: Sequence[Request], **options: Unpack[Answering]) -> Sequence[Answer]:
        """The answer to each request."""
        parts = [part for request in requests for part in request.parts]
        answers = iter(self.answer_parts(parts, **options))
        return [self.join(request, [next(answers) for _ in request.parts]) for request in requests]

    def join(self, request: Request, answers: Sequence[Any]) -> Answer:
        """The answer to a request from those to its parts."""
        (answer,) = answers
        return answer  # type: ignore[no-any-return]

    def streams(self, decoding: DecodingConfig | None) -> bool:
        """Whether an answer can be written as it comes."""
        return False

    def stream(self, request: Request, decoding: DecodingConfig | None = None) -> Iterator[str]:
        """The answer, piece by piece as it is written."""
        raise RunError(f"run must be of a language model to be streamed; it is one of {self.job}.")

    def warm_up(self) -> None:
        """Prepare the model before the first answer, and load compiled loops."""
        warm_up(self.preparation.of(self.model))

    @classmethod
    def search(cls, recipe: Recipe, settings: Mapping[str, JsonValue]) -> DecodingConfig | None:
        """Settings of a search over those of a recipe; None where nothing is searched for."""
        for name in settings:
            choose("the setting of decoding", name, dict.fromkeys(SEARCHED))
            if recipe.decoding is None:
                raise useless(name, recipe, "nothing is searched for")
            if name in cls.useless:
                raise useless(name, recipe, cls.useless[name])
        return recipe.settings(DecodingConfig).changed(**settings) if recipe.decoding else None

    def evaluated_search(self, settings: Mapping[str, JsonValue]) -> DecodingConfig | None:
        """Settings of the search by which examples are answered; None without a search."""
        for name in settings:
            raise useless(name, self.recipe, "nothing is searched for")
        return None

    def check_attention(self, *, attention: bool, layers: Sequence[int] | None) -> None:
        """Raise SettingError if attention is asked for where there is no source to look at."""
        if self.no_attention and (attention or layers is not None):
            name = "attention" if attention else "layers"
            raise SettingError(
                f"{name} must be left out for a run of {self.job}, {self.no_attention}."
            )
        if layers is not None and not attention:
            raise SettingError("layers must go with attention; got them without.")

    def look(
        self,
        texts: object,
        options: LookOptions = EVERYTHING,
        *,
        explain: bool = True,
        gold: Phrase | None = None,
    ) -> NotebookPage:
        """A page of its attention for each text, in parts where it is long."""
        sources = records_in(texts)
        self.check_target(options.target, len(sources))
        made = [
            example
            for number, text in enumerate(sources, 1)
            for example in self.examples(text, _where(text, number), options, gold, explain=explain)
        ]
        if not made:
            raise DataError("texts must hold text to look at; got none.")
        page = self.document(fitting(made, options.neurons) if explain else made)
        return show(page, rows=self.rows(page))

    def check_target(self, target: str | None, count: int) -> None:
        """Raise DataError if one target cannot be of so many texts. Unless said, it can."""

    def rows(self, shown: Document) -> RowSource | None:
        """Source of exact attention rows of a document; None where it holds all."""
        return None

    def document(self, examples: Sequence[Example], *, title: str | None = None) -> Document:
        """Examples as one document, with the description of the model."""
        return document(self.model, self.recipe, examples, title=title)

    def notes(self, texts: Sequence[object], options: LookOptions) -> list[str]:
        """Lines to print below the texts that a terminal shows."""
        return []

    def about(self) -> dict[str, JsonValue]:
        longest = getattr(self.recipe.data, "max_length", None)
        return {**super().about(), "model": self.recipe.model_type, "max_tokens": longest}


def useless(name: str, recipe: Recipe, why: str) -> SettingError:
    """Error for a setting without a use in a search."""
    return SettingError(f"{name} must be left out for a run of {recipe.task}; {why}.")


def _where(text: object, number: int) -> str:
    return str(text) if isinstance(text, Path) else f"text {number}"
