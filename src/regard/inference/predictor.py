"""A trained run in use: records in, answers out; how good they are; what it looked at."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypedDict, Unpack, cast

import torch
from torch import nn
from typing_extensions import TypeVar

from regard.checks import check_choice, choose
from regard.config import JsonValue
from regard.devices import CPU, device_of, find_device
from regard.devices.kinds import AUTO, Precision
from regard.errors import RunError, SettingError
from regard.inference.look import Look, attention_to_source
from regard.inference.preparation import Preparation, answer_in_one_pass, batch_tokens
from regard.inference.requests import records_in, request_of_value
from regard.inference.search.searcher import Searcher
from regard.inference.search.sequences import aligned, search
from regard.inference.search.windows import WindowedSearch
from regard.models import LanguageModel, Seq2Seq
from regard.runs.run import Run
from regard.runtime.preparing import in_precision, warm_up
from regard.tasks import (
    TASKS,
    AnyTask,
    DecodingConfig,
    OnePassTask,
    Recipe,
    SequenceTask,
    recipe_from_table,
)
from regard.tasks.running_text.language_modelling import LanguageModelling
from regard.tasks.sequences.sequence_task import EncodedSequences
from regard.tasks.sequences.translations import Translations
from regard.tasks.task import Answer, BatchT, EncodedT, ExampleT, Task
from regard.text import Pair, PairTokenizer, normalize
from regard.text.reading.encodings import encoded_as
from regard.text.reading.sources import as_files

if TYPE_CHECKING:
    from regard.inference.evaluation.report import AnswerReport, TextReport
    from regard.viewer import NotebookPage

# Answers of a task; of a run that is read from its folder it is not known what else they are.
AnswerT = TypeVar("AnswerT", bound=Answer, covariant=True, default=Answer)


class AnswerOptions(TypedDict, total=False):
    """How answers are searched for, and what comes with them; see ``Predictor.translate``."""

    decoding: DecodingConfig | None
    attention: bool
    layers: Sequence[int] | None
    progress: Callable[[int], None] | None


class Predictor(Generic[AnswerT]):
    """A trained run in use, whatever its job.

    Args:
        model: Trained, or in training; put into evaluation mode at each use.
        task: The one it was trained for.

    Attributes:
        preparation: Makes the model ready for use, which answers whatever the amount of work.

    Example:
        >>> from regard.text.reading.points import Point
        >>> recipe = recipe_from_table({"task": "regression", "model": {"is_learned": True}})
        >>> known = [Point((0.0,), 2.0, ("x",), ""), Point((1.0,), 4.0, ("x",), "")]
        >>> task = TASKS["regression"].task.learn(recipe, known)
        >>> predictor = Predictor(task.build_model(), task)
        >>> [answer.text() for answer in predictor.predict(["0.5", {"x": 0.5}])], predictor.writes
        (['3', '3'], False)
    """

    def __init__(self, model: nn.Module, task: Task[ExampleT, EncodedT, BatchT, AnswerT]) -> None:
        self.model = model
        self.task: AnyTask = task
        self.preparation = Preparation()

    @classmethod
    def load(
        cls, path: str | Path, *, precision: Precision = "auto", device: str = AUTO
    ) -> "Predictor":
        """The model of a run: see :func:`load`."""
        is_on_cpu = precision == "int8" and device == AUTO
        torch_device = CPU if is_on_cpu else find_device(device)
        run = Run.open(path)
        recipe = recipe_from_table(run.recipe)
        task = TASKS[recipe.task].task.load(recipe, run.tokenizer_folder)
        model = run.build(task.build_model)
        return cls(in_precision(model.to(torch_device).eval(), precision), task)

    def __repr__(self) -> str:
        parameters = sum(parameter.numel() for parameter in self.model.parameters())
        return (
            f"Predictor(task={self.recipe.task!r}, model={self.recipe.model_type!r}, "
            f"parameters={parameters:,}, device={str(self.device)!r})"
        )

    def warm_up(self) -> None:
        """Prepare the model before the first answer, and load compiled loops."""
        if self.is_seq2seq:
            self.translate(["."])
        elif self.writes:
            self.predict(".", max_tokens=1)
        else:
            warm_up(self.preparation.of(self.model))

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return device_of(self.model)

    @property
    def recipe(self) -> Recipe:
        """Recipe that the run was trained by."""
        return self.task.recipe

    @property
    def writes(self) -> bool:
        """Whether its predictions are texts, written token by token."""
        return self.recipe.decoding is not None

    @property
    def is_seq2seq(self) -> bool:
        """Whether it writes a text for a text: a translation, a summary, an answer."""
        return isinstance(self.task, SequenceTask)

    @property
    def decoding(self) -> DecodingConfig:
        """Settings of the search, of a run that writes."""
        return self.recipe.settings(DecodingConfig)

    @property
    def sequence_task(self) -> SequenceTask:
        """The task, which writes a text for a text; a RunError of one of another kind."""
        if not isinstance(self.task, SequenceTask):
            raise RunError(
                f"run must be the run of a translator; it is one of {self.recipe.task}. "
                "Ask it in Python: Predictor.load(RUN).predict(TEXTS); or with regard predict."
            )
        return self.task

    @property
    def seq2seq(self) -> Seq2Seq:
        """The model, of a run that writes a text for a text."""
        assert isinstance(self.model, Seq2Seq)
        return self.model

    @property
    def tokenizer(self) -> PairTokenizer:
        """Tokenizer of sources and targets, of a sequence-to-sequence run."""
        return self.sequence_task.tokenizer

    def predict(
        self,
        records: object,
        *,
        progress: Callable[[int], None] | None = None,
        **decoding: JsonValue,
    ) -> list[AnswerT]:
        """The answer to each text, or record as in JSONL; ``text()`` is what people read of it.

        A language model continues each text.

        Args:
            records: One text or record, or several: texts, records, rows of numbers, an array with
                a row for each, or a data frame; of pictures, paths of files too.
            progress: Called now and then with the number of those answered since.
            decoding: Settings of the search over those of the recipe: ``beam_size=1``. The line
                of ``regard settings decoding`` says of each what it does.

        Raises:
            DataError: One asks nothing that can be answered.
            SettingError: A setting is unknown or out of range, or nothing is searched for.
        """
        search = self.search(decoding)
        requests = [
            request_of_value(self.task, each, f"record {number}")
            for number, each in enumerate(records_in(records), 1)
        ]
        return self.predictions(requests, decoding=search, progress=progress)

    def search(self, settings: Mapping[str, JsonValue]) -> DecodingConfig | None:
        """Settings of the search, some of them over those of the recipe; None without a search."""
        if not self.writes:
            self._refuse_search(settings)
            return None
        known = {field.name: field for field in fields(DecodingConfig)}
        for name in settings:
            choose("the setting of decoding", name, known)
        return self.decoding.changed(**settings)

    def _refuse_search(self, settings: Mapping[str, JsonValue]) -> None:
        for name in settings:
            raise SettingError(
                f"{name} must be left out for a run of {self.recipe.task}; nothing is searched for."
            )

    def predictions(
        self, requests: Sequence[object], **options: Unpack[AnswerOptions]
    ) -> list[AnswerT]:
        """The prediction for each request: see ``answers``; of a language model, continuations."""
        if isinstance(self.task, LanguageModelling):
            search = self._windowed(self.task, options.get("decoding"))
            prompts = cast("Sequence[str]", requests)
            return cast("list[AnswerT]", search(prompts, progress=options.get("progress")))
        return self.answers(requests, **options)

    def streams(self, decoding: DecodingConfig | None) -> bool:
        """Whether an answer can be written as it comes: one of a language model, without a beam."""
        if decoding is None or self.is_seq2seq:
            return False
        return decoding.method != "beam" and decoding.n_best == 1

    def stream(self, prompt: str, decoding: DecodingConfig | None = None) -> Iterator[str]:
        """The continuation of a prompt by a language model, piece by piece as it is written."""
        if not isinstance(self.task, LanguageModelling):
            raise RunError(
                f"run must be of a language model to be streamed; it is one of {self.recipe.task}."
            )
        return self._windowed(self.task, decoding).stream(prompt)

    def _windowed(self, task: LanguageModelling, decoding: DecodingConfig | None) -> WindowedSearch:
        decoding = decoding or self.decoding
        assert isinstance(self.model, LanguageModel)
        most = batch_tokens(self.model, decoding.batch_tokens)
        ready = self.preparation.of(self.model)
        return WindowedSearch(self.model, ready, task, decoding, most)

    def answers(
        self, examples: Sequence[object], **options: Unpack[AnswerOptions]
    ) -> list[AnswerT]:
        """The answer to each example, as metrics take it; of running text, its −log p."""
        if isinstance(self.task, OnePassTask):
            ready, progress = self.preparation.of(self.model), options.get("progress")
            return answer_in_one_pass(self.task, self.model, ready, examples, progress=progress)[0]
        sources = [pair.source for pair in cast("Sequence[Pair]", examples)]
        return cast("list[AnswerT]", self._translate(sources, **options))

    def answers_and_loss(self, examples: Sequence[object]) -> tuple[list[AnswerT], float]:
        """The answer to each example in one pass, and the mean loss over all that is predicted."""
        assert isinstance(self.task, OnePassTask)
        ready = self.preparation.of(self.model)
        return answer_in_one_pass(self.task, self.model, ready, examples, with_loss=True)

    def translate(
        self,
        texts: Sequence[str],
        *,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        n_best: int | None = None,
        **others: Unpack[AnswerOptions],
    ) -> list[Translations]:
        """Translations of each text, best first.

        An empty text gives one empty translation. A text longer than training allowed is cut at
        sentence ends and translated in parts, best translation only; a prefix is for
        the first part.

        Args:
            texts: What to translate, one sentence each.
            beam_size: Hypotheses kept at each step of a beam; 1 is greedy. None takes the
                settings', as the next two do.
            length_penalty: Higher gives longer outputs.
            n_best: Translations wanted of each text.
            decoding: The settings of the search; None takes the recipe's.
            attention: Whether to work out what the best translation's tokens looked at, by one
                more pass over them: see ``Hypothesis.alignment``.
            layers: Whose attention that is, counted from 0; None takes all layers.
            progress: Called after each batch with the number of parts of texts in it.

        Raises:
            RunError: The run is none that writes a text for a text.
            SettingError: A setting is out of range or contradicts another; a word cannot be
                spelled; or the model has no attention, or not in these layers.
        """
        options = {"beam_size": beam_size, "length_penalty": length_penalty, "n_best": n_best}
        changes: dict[str, object] = {k: v for k, v in options.items() if v is not None}
        if beam_size is not None:
            changes["method"] = "beam"
        search = others.get("decoding") or self.sequence_task.recipe.settings(DecodingConfig)
        others["decoding"] = search.changed(**changes)
        return self._translate(list(map(normalize, texts)), **others)

    def translate_parts(
        self, parts: Sequence[EncodedSequences], **options: Unpack[AnswerOptions]
    ) -> list[Translations]:
        """As ``translate``, of parts of texts, as ``SequenceTask.encoded_parts`` cuts them."""
        task = self.sequence_task
        most = batch_tokens(self.seq2seq, self.decoding.batch_tokens)
        outputs = search(
            self.preparation.of(self.seq2seq),
            task,
            Searcher(options.get("decoding") or self.decoding, task.tokenizer.target),
            parts,
            device=self.device,
            batch_tokens=most,
            progress=options.get("progress"),
        )
        if not options.get("attention"):
            return outputs
        layers = options.get("layers")
        return aligned(self.seq2seq, task, parts, outputs, layers=layers, batch_tokens=most)

    def _translate(
        self, sources: Sequence[str], **options: Unpack[AnswerOptions]
    ) -> list[Translations]:
        """Outputs of each source, in parts where it is long."""
        task = self.sequence_task
        cut = [task.encoded_parts(source) for source in sources]
        flat = [part for parts in cut for part in parts]
        outputs = iter(self.translate_parts(flat, **options))
        return [
            task.joined(source, [next(outputs) for _ in parts])
            for source, parts in zip(sources, cut, strict=True)
        ]

    def evaluate(
        self,
        data: object = None,
        *,
        progress: Callable[[int], None] | None = None,
        **decoding: JsonValue,
    ) -> "AnswerReport | TextReport":
        """Measure the quality of the answers to data: ``regard evaluate``.

        Figures with intervals, what takes no model beside them, and examples to read: ``print`` it.

        Args:
            data: With right answers, in the form of the training text: a file, or a translator's
                two; records, rows, an array, a pair (inputs, targets) or a data frame. None takes
                what the training held out to test on, or the recipe's test text.
            progress: Called now and then with the number of those answered since.
            decoding: Settings of the search over those of the recipe, of a run that writes a text
                for a text.

        Raises:
            DataError: The data cannot be read, or there is none.
            SettingError: A setting is unknown or out of range, or nothing is searched for.
        """
        from regard.inference.evaluation.evaluate import measure, read_data

        if not self.is_seq2seq:
            self._refuse_search(decoding)
        search = self.search(decoding) if self.is_seq2seq else None
        reading = nullcontext(list[Path]()) if data is None else as_files(data)
        with encoded_as(self.recipe.encoding), reading as files:
            examples = read_data(self.task, files)
        answers = self.answers(examples.examples, decoding=search, progress=progress)
        return measure(self, examples, answers)

    def look(
        self,
        texts: str | Sequence[str],
        *,
        target: str | None = None,
        against: str | None = None,
        attribute: Sequence[str] | None = None,
        layers: Sequence[int] | None = None,
        heads: Sequence[int] | None = None,
        neurons: Sequence[tuple[int, int]] | None = None,
    ) -> "NotebookPage":
        """Attention of the model over texts, and why it answers so: a page, for a cell or a file.

        Args:
            texts: One text or several, as ``predict`` takes them.
            target: What to explain; None explains the model's own answer. The output of one text
                to a translator; a next word, a word for the mask, a class or a tag of others.
            against: What the target is held against: why it, and not this.
            attribute: Methods of ``regard.attribute``; none if empty. None takes those that take
                little time.
            layers: Which layers are shown, counted from 0; None is all.
            heads: Which heads; None is all.
            neurons: Heads, as (layer, head), whose queries and keys the page has. None is all where
                they take at most 1.5 MB, else none.

        Raises:
            DataError: A text cannot be read at once, or there is a target that cannot be.
            SettingError: The model has no such layer or head, or its answers are not explained.
        """
        from regard.inference.explanation import is_explained
        from regard.inference.looking import look_into, rows_of
        from regard.interop.pages.explaining import Why
        from regard.viewer import show

        options = {"target": target, "against": against, "attribute": attribute}
        for name, value in options.items():
            if value is not None and not is_explained(self.task):
                raise SettingError(
                    f"{name} must be left out for a run of {self.recipe.task}, whose answers are "
                    f"not explained; got {value!r}."
                )
        output, word = (target, None) if self.is_seq2seq else (None, target)
        why = Why(target=word, against=against, methods=attribute, neurons=neurons)
        document = look_into(self, texts, target=output, layers=layers, heads=heads, why=why)
        return show(document, rows=rows_of(self, document) if self.is_seq2seq else None)

    def attention(self, source: str, output: Sequence[int] | str) -> Look:
        """Attention of the model to ``source`` for ``output``: see ``attention_to_source``."""
        return attention_to_source(self.seq2seq, self.sequence_task, source, output)


def load(run: str | Path, *, precision: Precision = "auto", device: str = AUTO) -> Predictor:
    """The trained model of a run folder or bundle, ready to answer and to be looked into.

    Args:
        run: The folder, or the bundle. Of one that is in training the newest checkpoint counts.
        precision: What its weights are kept in: ``int8`` is smaller, and rounds.
        device: Where it works: ``auto`` takes a GPU if there is one, but for ``int8``, which only a
            CPU does; ``cpu``; ``cuda``, ``cuda:1``; or ``mps``.

    Raises:
        RunError: There is none, it is damaged, or a newer version of regard made it.
        SettingError: There is no such device, or it or the model cannot do this precision.

    Example:
        Of a run that ``regard demo`` trains: ``load("regard-demo").predict("我爱中国")[0].text()``;

        >>> load("regard-demo/none")
        Traceback (most recent call last):
        regard.errors.RunError: regard-demo/none must be a run folder; got nothing there. ...
    """
    check_choice("precision", precision, Precision)  # before anything is read
    return Predictor.load(run, precision=precision, device=device)
