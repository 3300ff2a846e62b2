"""Which tasks there are: what a recipe of each may say, and who does it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from regard import models
from regard.errors import SettingError
from regard.models import (
    LANGUAGE_MODELS,
    MODELS,
    PAIR_MODELS,
    PAIR_READERS,
    READERS,
    Architecture,
    ClassifierConfig,
    KernelRegressionConfig,
    MemoryNetworkConfig,
    SpanFinderConfig,
    TaggerConfig,
    VisionTransformerConfig,
)
from regard.tasks.classification import Classification, ClassificationData
from regard.tasks.decoding import DecodingConfig
from regard.tasks.generation import DocumentData, GenerationTask
from regard.tasks.image_classification import ImageClassification, PicturesData
from regard.tasks.language_modelling import LanguageModelling, TextData
from regard.tasks.masked_language_modelling import MaskedLanguageModelling, MaskedTextData
from regard.tasks.multiple_choice import ChoicesData, MultipleChoiceAnswering
from regard.tasks.pair_matching import PairMatching, PairsData
from regard.tasks.question_answering import QuestionAnswering, QuestionsData
from regard.tasks.recipe import DataConfig, Recipe
from regard.tasks.regression import Regression, RegressionConfig, RegressionData
from regard.tasks.sentence_selection import SentencesData, SentenceSelection
from regard.tasks.sequence_task import SequenceTask
from regard.tasks.tagging import Tagging, TaggingData
from regard.tasks.task import AnyTask, OnePassTask, Parts
from regard.tasks.translation import TranslationTask
from regard.tasks.word_answering import WordAnswering
from regard.text import BadLines, TokenizerConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskEntry:
    """What a task is made of.

    Attributes:
        data: The class of its ``[data]``.
        tokenizer: The class of its ``[tokenizer]``; None if it cuts no text.
        cuts: Whether it always cuts text; else only where a recipe has ``[tokenizer]``.
        models: Its architectures by ``model.type``: the first is the default.
        head: The class of its ``[head]``; None if the model needs none.
        decoding: The class of its ``[decoding]``; None if it searches for nothing.
        begins: Whether all that it reads has the begin first; else ``tokenizer.begin`` says so.
        beside: Whether it reads texts beside each other, which a model may tell apart.
        task: The class that turns text into tensors and back.
    """

    data: type[Any]
    tokenizer: type[Any] | None = TokenizerConfig
    cuts: bool = True
    models: Mapping[str, Architecture[Any]]
    head: type[Any] | None = None
    decoding: type[Any] | None = None
    begins: bool = False
    beside: bool = False
    task: type[AnyTask]

    @property
    def is_shown(self) -> bool:
        """Whether the task says how its examples are shown, or a search writes what is."""
        return not (issubclass(self.task, OnePassTask) and self.task.shown is OnePassTask.shown)

    @property
    def sections(self) -> tuple[str, ...]:
        """The tables that a recipe may have."""
        optional = {"tokenizer": self.tokenizer, "head": self.head, "decoding": self.decoding}
        names = ("data", "tokenizer", "model", "head", "training", "decoding")
        return tuple(name for name in names if optional.get(name, self.data) is not None)

    @property
    def is_written(self) -> bool:
        """Whether its answers are written token by token, not computed in one pass."""
        return issubclass(self.task, SequenceTask)


TASKS: dict[str, TaskEntry] = {
    "classification": TaskEntry(
        data=ClassificationData, models=READERS, head=ClassifierConfig, task=Classification
    ),
    "generation": TaskEntry(
        data=DocumentData, models=MODELS, decoding=DecodingConfig, task=GenerationTask
    ),
    "image_classification": TaskEntry(
        data=PicturesData,
        tokenizer=None,
        models={
            "vision_transformer": Architecture(
                VisionTransformerConfig, lambda: models.VisionTransformer
            )
        },
        task=ImageClassification,
    ),
    "language_modelling": TaskEntry(
        data=TextData, models=LANGUAGE_MODELS, decoding=DecodingConfig, task=LanguageModelling
    ),
    "masked_language_modelling": TaskEntry(
        data=MaskedTextData,
        models={"transformer": READERS["transformer"]},
        begins=True,
        task=MaskedLanguageModelling,
    ),
    "multiple_choice": TaskEntry(
        data=ChoicesData,
        models=PAIR_READERS,
        head=ClassifierConfig,
        begins=True,
        beside=True,
        task=MultipleChoiceAnswering,
    ),
    "pair_matching": TaskEntry(
        data=PairsData,
        models=PAIR_MODELS,
        head=ClassifierConfig,
        begins=True,
        beside=True,
        task=PairMatching,
    ),
    "question_answering": TaskEntry(
        data=QuestionsData,
        models=PAIR_READERS,
        head=SpanFinderConfig,
        begins=True,
        beside=True,
        task=QuestionAnswering,
    ),
    "regression": TaskEntry(
        data=RegressionData,
        tokenizer=None,
        models={
            "kernel_regression": Architecture(
                KernelRegressionConfig, lambda: models.KernelRegression
            )
        },
        head=RegressionConfig,
        task=Regression,
    ),
    "sentence_selection": TaskEntry(
        data=SentencesData,
        tokenizer=None,
        models={"memory_network": Architecture(MemoryNetworkConfig, lambda: models.MemoryNetwork)},
        task=SentenceSelection,
    ),
    "tagging": TaskEntry(
        data=TaggingData, cuts=False, models=READERS, head=TaggerConfig, task=Tagging
    ),
    "translation": TaskEntry(
        data=DataConfig, models=MODELS, decoding=DecodingConfig, task=TranslationTask
    ),
    "word_answering": TaskEntry(
        data=SentencesData,
        tokenizer=None,
        models={"memory_network": Architecture(MemoryNetworkConfig, lambda: models.MemoryNetwork)},
        task=WordAnswering,
    ),
}


def register_task(name: str, entry: TaskEntry) -> None:
    """Let recipes name a task from outside, as ``task``.

    It is then trained, asked, evaluated, looked into and checked as the package's own are; each
    process that opens a run of it registers it first.

    Args:
        name: What ``task`` says.
        entry: What it is made of.

    Raises:
        SettingError: The name is taken, or the class lacks something that a task must have.
    """
    if TASKS.get(name, entry) != entry:
        raise SettingError(f"name must be of no other task; got {name!r}. Choose another.")
    if missing := sorted(getattr(entry.task, "__abstractmethods__", ())):
        raise SettingError(f"{entry.task.__name__} must have {', '.join(missing)}; it has not.")
    TASKS[name] = entry


def read_parts(recipe: Recipe, *, bad_lines: BadLines | None = None) -> Parts[Any]:
    """The examples of a recipe's training, the same ones whenever they are asked for.

    Args:
        recipe: Of any task.
        bad_lines: Where lines left out are counted.

    Raises:
        DataError: The training text is not named, cannot be read, or is too short to hold some out.
    """
    return TASKS[recipe.task].task.read_parts(recipe, bad_lines=bad_lines)
