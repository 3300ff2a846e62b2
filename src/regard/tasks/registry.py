"""Registry of tasks: the settings and the class of each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

import regard.models as models
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
from regard.tasks.held_out import Parts
from regard.tasks.settings import data as settings
from regard.tasks.settings.data import TextData
from regard.tasks.settings.decoding import DecodingConfig
from regard.tasks.settings.recipe import DataConfig, DocumentData, Recipe
from regard.text import BadLines, TokenizerConfig

if TYPE_CHECKING:
    from torch.nn import Module

    from regard.tasks.task import AnyTask
else:  # inspection of annotations at run time needs no more
    AnyTask = Module = object


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskEntry:
    """Parts of a task.

    Attributes:
        data: The class of its ``[data]``.
        tokenizer: That of its ``[tokenizer]``; None if it cuts no text.
        cuts: Whether it always cuts text; else only where a recipe has ``[tokenizer]``.
        models: Its architectures by ``model.type``, the default first.
        head: The class of its ``[head]``; None without one.
        decoding: That of its ``[decoding]``; None without a search.
        begins: Whether all texts are read with the begin first; else ``tokenizer.begin`` says so.
        beside: Whether texts are read together, which a model may tell apart.
        load: Returns the class of the task, which needs torch.

    Example:
        >>> entry = TASKS["image_classification"]
        >>> entry.sections, entry.is_written, list(entry.models)
        (('data', 'model', 'training'), False, ['vision_transformer'])
        >>> entry.task.__name__
        'ImageClassification'
    """

    data: type[object]
    tokenizer: type[TokenizerConfig] | None = TokenizerConfig
    cuts: bool = True
    models: Mapping[str, Architecture[Module]]
    head: type[object] | None = None
    decoding: type[DecodingConfig] | None = None
    begins: bool = False
    beside: bool = False
    load: Callable[[], type[AnyTask]]

    @property
    def task(self) -> type[AnyTask]:
        """The class that turns text into tensors and back."""
        return self.load()

    @property
    def is_shown(self) -> bool:
        """Whether the task draws its examples, or a search writes its outputs."""
        from regard.tasks.one_pass_task import OnePassTask

        return not (issubclass(self.task, OnePassTask) and self.task.draw is OnePassTask.draw)

    @property
    def sections(self) -> tuple[str, ...]:
        """The tables that a recipe may have."""
        optional = {"tokenizer": self.tokenizer, "head": self.head, "decoding": self.decoding}
        names = ("data", "tokenizer", "model", "head", "training", "decoding")
        return tuple(name for name in names if optional.get(name, self.data) is not None)

    @property
    def is_written(self) -> bool:
        """Whether its answers are written token by token, not computed in one pass."""
        return self.task.is_written


def _class(module: str, name: str) -> Callable[[], type[AnyTask]]:
    """Import a task, and with it torch, when it is first needed."""

    def load() -> type[AnyTask]:
        task: type[AnyTask] = getattr(import_module(f"regard.tasks.{module}"), name)
        return task

    return load


_MEMORY_NETWORKS: Mapping[str, Architecture[Module]] = {
    "memory_network": Architecture(MemoryNetworkConfig, lambda: models.MemoryNetwork)
}

TASKS: dict[str, TaskEntry] = {
    "classification": TaskEntry(
        data=settings.ClassificationData,
        models=READERS,
        head=ClassifierConfig,
        load=_class("labels.classification", "Classification"),
    ),
    "generation": TaskEntry(
        data=DocumentData,
        models=MODELS,
        decoding=DecodingConfig,
        load=_class("sequences.generation", "GenerationTask"),
    ),
    "image_classification": TaskEntry(
        data=settings.PicturesData,
        tokenizer=None,
        models={
            "vision_transformer": Architecture(
                VisionTransformerConfig, lambda: models.VisionTransformer
            )
        },
        load=_class("labels.image_classification", "ImageClassification"),
    ),
    "language_modelling": TaskEntry(
        data=TextData,
        models=LANGUAGE_MODELS,
        decoding=DecodingConfig,
        load=_class("running_text.language_modelling", "LanguageModelling"),
    ),
    "masked_language_modelling": TaskEntry(
        data=settings.MaskedTextData,
        models={"transformer": READERS["transformer"]},
        begins=True,
        load=_class("running_text.masked_language_modelling", "MaskedLanguageModelling"),
    ),
    "multiple_choice": TaskEntry(
        data=settings.ChoicesData,
        models=PAIR_READERS,
        head=ClassifierConfig,
        begins=True,
        beside=True,
        load=_class("questions.multiple_choice", "MultipleChoiceAnswering"),
    ),
    "pair_matching": TaskEntry(
        data=settings.PairsData,
        models=PAIR_MODELS,
        head=ClassifierConfig,
        begins=True,
        beside=True,
        load=_class("questions.pair_matching", "PairMatching"),
    ),
    "question_answering": TaskEntry(
        data=settings.QuestionsData,
        models=PAIR_READERS,
        head=SpanFinderConfig,
        begins=True,
        beside=True,
        load=_class("questions.question_answering", "QuestionAnswering"),
    ),
    "regression": TaskEntry(
        data=settings.RegressionData,
        tokenizer=None,
        models={
            "kernel_regression": Architecture(
                KernelRegressionConfig, lambda: models.KernelRegression
            )
        },
        head=settings.RegressionConfig,
        load=_class("labels.regression", "Regression"),
    ),
    "sentence_extraction": TaskEntry(
        data=settings.ExtractionData,
        models=READERS,
        head=TaggerConfig,
        load=_class("labels.sentence_extraction", "SentenceExtraction"),
    ),
    "sentence_selection": TaskEntry(
        data=settings.SentencesData,
        tokenizer=None,
        models=_MEMORY_NETWORKS,
        load=_class("questions.sentence_selection", "SentenceSelection"),
    ),
    "tagging": TaskEntry(
        data=settings.TaggingData,
        cuts=False,
        models=READERS,
        head=TaggerConfig,
        load=_class("labels.tagging", "Tagging"),
    ),
    "translation": TaskEntry(
        data=DataConfig,
        models=MODELS,
        decoding=DecodingConfig,
        load=_class("sequences.translation", "TranslationTask"),
    ),
}


def register_task(name: str, entry: TaskEntry) -> None:
    """Let recipes name a task from outside, as ``task``.

    It is then trained, asked, evaluated, looked into and checked as the package's own are; each
    process that opens a run of it registers it first.

    Raises:
        SettingError: The name is taken, or the class lacks something that a task must have.

    Example:
        >>> from dataclasses import replace
        >>> from regard.tasks.sequences.translation import TranslationTask
        >>> class Glossing(TranslationTask):
        ...     unit = "glosses"
        >>> register_task("glossing", replace(TASKS["translation"], load=lambda: Glossing))
        >>> TASKS.pop("glossing").task.unit  # found by its name, and taken out again
        'glosses'
        >>> register_task("tagging", TASKS["translation"])
        Traceback (most recent call last):
        regard.errors.SettingError: name must be of no other task; got 'tagging'. Choose another.
    """
    task = entry.load()
    if name in TASKS and TASKS[name].load() != task:
        raise SettingError(f"name must be of no other task; got {name!r}. Choose another.")
    if missing := sorted(getattr(task, "__abstractmethods__", ())):
        raise SettingError(f"{task.__name__} must have {', '.join(missing)}; it has not.")
    TASKS[name] = entry


def read_parts(recipe: Recipe, *, bad_lines: BadLines | None = None) -> Parts[object]:
    """The examples of a recipe's training, the same ones whenever they are asked for.

    Raises:
        DataError: The training text is not named, cannot be read, or is too short to hold some out.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> data = {"example": "sine", "points": 20}
        >>> parts = read_parts(recipe_from_table({"task": "regression", "data": data}))
        >>> len(parts.train), len(parts.valid), len(parts.test)
        (20, 50, 0)
    """
    return TASKS[recipe.task].task.read_parts(recipe, bad_lines=bad_lines)
