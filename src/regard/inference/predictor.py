"""A trained run in use from Python, whatever its job: records in, answers out."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Unpack, cast

import torch
from torch import nn
from typing_extensions import TypeVar

from regard.config import JsonValue
from regard.devices.kinds import AUTO, Precision
from regard.errors import DataError, SettingError
from regard.fields import described
from regard.inference.loading import in_use, load_run
from regard.inference.look import Look, attention_to_source
from regard.inference.requests import record_of, records_in
from regard.inference.sequences import Sequences
from regard.inference.use import Answering, RunInUse
from regard.models import Seq2Seq
from regard.tasks import AnyTask, DecodingConfig, SequenceTask
from regard.tasks.sequences.translations import Translations
from regard.tasks.task import Answer, BatchT, EncodedT, ExampleT, Task
from regard.text import Pair, PairTokenizer, normalize
from regard.text.reading.encodings import encoded_as
from regard.text.reading.sources import as_files
from regard.viewer.options import LookKeywords, LookOptions

if TYPE_CHECKING:
    from regard.inference.evaluation.report import AnswerReport, TextReport
    from regard.viewer import NotebookPage

# Answers of a task; of a run that is read from its folder their class is unknown.
AnswerT = TypeVar("AnswerT", bound=Answer, covariant=True, default=Answer)


class Predictor(Generic[AnswerT]):
    """A trained run in use, whatever its job.

    Args:
        model: Trained, or in training; put into evaluation mode at each use.
        task: The one it was trained for.

    Attributes:
        use: The model in use, by its kind.
        preparation: Makes the model ready for use, which answers whatever the amount of work.
        recipe: The one that the run was trained by.

    Example:
        >>> from regard.tasks import TASKS, recipe_from_table
        >>> from regard.text.reading.points import Point
        >>> recipe = recipe_from_table({"task": "regression", "model": {"is_learned": True}})
        >>> known = [Point((0.0,), 2.0, ("x",), ""), Point((1.0,), 4.0, ("x",), "")]
        >>> task = TASKS["regression"].task.learn(recipe, known)
        >>> predictor = Predictor(task.build_model(), task)
        >>> [answer.text() for answer in predictor.predict(["0.5", {"x": 0.5}])], predictor.writes
        (['3', '3'], False)
    """

    def __init__(self, model: nn.Module, task: Task[ExampleT, EncodedT, BatchT, AnswerT]) -> None:
        self.use: RunInUse[AnyTask] = in_use(model, task)
        self.model, self.task, self.recipe = model, self.use.task, task.recipe
        self.preparation = self.use.preparation

    @classmethod
    def load(
        cls, path: str | Path, *, precision: Precision = "auto", device: str = AUTO
    ) -> "Predictor":
        """The model of a run: see :func:`load`."""
        use = load_run(path, precision=precision, device=device)
        return cls(use.model, use.task)

    def __repr__(self) -> str:
        parameters = sum(parameter.numel() for parameter in self.model.parameters())
        return (
            f"Predictor(task={self.recipe.task!r}, model={self.recipe.model_type!r}, "
            f"parameters={parameters:,}, device={str(self.device)!r})"
        )

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return self.use.device

    @property
    def writes(self) -> bool:
        """Whether its predictions are texts, written token by token."""
        return self.recipe.decoding is not None

    @property
    def is_seq2seq(self) -> bool:
        """Whether it writes a text for a text: a translation, a summary, an answer."""
        return self.task.is_written

    @property
    def decoding(self) -> DecodingConfig:
        """Settings of the search, of a run that writes."""
        return self.recipe.settings(DecodingConfig)

    @property
    def sequence_task(self) -> SequenceTask:
        """The task, which writes a text for a text; a RunError of one of another kind."""
        task: SequenceTask = self.use.translator.task
        return task

    @property
    def seq2seq(self) -> Seq2Seq:
        """The model, of a run that writes a text for a text."""
        model: Seq2Seq = self.use.translator.seq2seq
        return model

    @property
    def tokenizer(self) -> PairTokenizer:
        """Tokenizer of sources and targets, of a sequence-to-sequence run."""
        return self.sequence_task.tokenizer

    def warm_up(self) -> None:
        """Prepare the model before the first answer, and load compiled loops."""
        self.use.warm_up()

    def predict(
        self,
        records: object,
        *,
        progress: Callable[[int], None] | None = None,
        attention: bool = False,
        layers: Sequence[int] | None = None,
        **decoding: JsonValue,
    ) -> list[AnswerT]:
        """The answer to each text, or record as in JSONL; ``text()`` is its text.

        A language model continues each text.

        Args:
            records: One text or record, or several: texts, records, rows of numbers, an array with
                a row for each, or a data frame; of pictures, paths of files too.
            progress: Called now and then with the number of those answered since.
            attention: Whether to align the best output's tokens with the source, of a run that
                writes a text for a text: see ``Hypothesis.alignment``.
            layers: Whose attention that is, counted from 0; None takes all layers.
            decoding: Settings of the search over those of the recipe: ``beam_size=1``; ``regard
                settings decoding`` lists them.

        Raises:
            DataError: One asks nothing that can be answered.
            SettingError: A setting is unknown or out of range, or nothing is searched for.
        """
        search = self.use.search(self.recipe, decoding)
        self.use.check_attention(attention=attention, layers=layers)
        requests = [
            self.use.parse_value(record, f"record {number}")
            for number, record in enumerate(records_in(records), 1)
        ]
        answers = self.use.answer(
            requests, decoding=search, attention=attention, layers=layers, progress=progress
        )
        return cast("list[AnswerT]", answers)

    def answers(self, examples: Sequence[object], **options: Unpack[Answering]) -> list[AnswerT]:
        """The answer to each example, as metrics take it; of running text, its −log p."""
        return cast("list[AnswerT]", self.use.answer_examples(examples, **options))

    def stream(self, prompt: str, decoding: DecodingConfig | None = None) -> Iterator[str]:
        """The continuation of a prompt by a language model, piece by piece as it is written."""
        return self.use.stream(self.use.parse(prompt, "prompt"), decoding)

    def translate(
        self,
        texts: str | Sequence[str],
        *,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        n_best: int | None = None,
        **options: Unpack[Answering],
    ) -> list[Translations]:
        """Translations of each text, best first.

        An empty text gives one empty translation. A text longer than training allowed is cut at
        sentence ends and translated in parts, best translation only; a prefix is for
        the first part.

        Args:
            texts: One text to translate, or several.
            beam_size: Hypotheses kept at each step of a beam; 1 is greedy. None takes the
                settings', as the next two do.
            length_penalty: Higher gives longer outputs.
            n_best: Translations wanted of each text.
            decoding: The settings of the search; None takes the recipe's.
            attention: Whether to align the best translation's tokens with the source, by one more
                pass over them: see ``Hypothesis.alignment``.
            layers: Whose attention that is, counted from 0; None takes all layers.
            progress: Called after each batch with the number of parts of texts in it.

        Raises:
            RunError: The run is none that writes a text for a text.
            SettingError: A setting is out of range or contradicts another; a word cannot be
                spelled; or the model has no attention, or not in these layers.
        """
        use: Sequences = self.use.translator
        search = {"beam_size": beam_size, "length_penalty": length_penalty, "n_best": n_best}
        changes: dict[str, object] = {k: v for k, v in search.items() if v is not None}
        if beam_size is not None:
            changes["method"] = "beam"
        options["decoding"] = (options.get("decoding") or use.decoding).changed(**changes)
        sources = [record_of(text, f"text {n}") for n, text in enumerate(records_in(texts), 1)]
        if not all(isinstance(source, str) for source in sources):
            raise DataError("texts must be texts; got a record. Ask predict for its answer.")
        pairs = [Pair(normalize(str(source)), "", (), "") for source in sources]
        return use.answer_examples(pairs, **options)

    def evaluate(
        self,
        data: object = None,
        *,
        progress: Callable[[int], None] | None = None,
        **decoding: JsonValue,
    ) -> "AnswerReport | TextReport":
        """Measure the quality of the answers to data: ``regard evaluate``.

        Figures with intervals, beside baselines without a model, and examples: ``print`` it.

        Args:
            data: With right answers, in the form of the training text: a file, or a translator's
                two; records, rows, an array, a pair (inputs, targets) or a data frame. None takes
                the test data that training held out, or the recipe's test text.
            progress: Called now and then with the number of those answered since.
            decoding: Settings of the search over those of the recipe, of a run that writes a text
                for a text.

        Raises:
            DataError: The data cannot be read, or there is none.
            SettingError: A setting is unknown or out of range, or nothing is searched for.
        """
        from regard.inference.evaluation.evaluate import measure, read_data

        search = self.use.evaluated_search(decoding)
        reading = nullcontext(list[Path]()) if data is None else as_files(data)
        with encoded_as(self.recipe.encoding), reading as files:
            examples = read_data(self.task, files)
        answers = self.answers(examples.examples, decoding=search, progress=progress)
        return measure(self, examples, answers)

    @described(LookKeywords, defaults=dict.fromkeys(LookKeywords.__annotations__))
    def look(self, texts: object, **options: Unpack[LookKeywords]) -> "NotebookPage":
        """Attention of the model over texts, and why it answers so: a page, for a cell or a file.

        Args:
            texts: One text or record or several, as ``predict`` takes them; of pictures paths of
                files, too.
            options: Attention and explanations to show: see ``regard.viewer.LookOptions``. A target
                of a translator is an output of the one text.

        Raises:
            DataError: A text cannot be read at once, or there is a target that cannot be.
            SettingError: The model has no such layer or head, or its answers are not explained.
        """
        chosen = LookOptions(**options)
        unused = self.use.unused(explain=True)
        for name, value in chosen.given().items():
            if name in unused:
                is_beam = name == "beam_size"
                whose = "which has no beam" if is_beam else "whose answers are not explained"
                raise SettingError(
                    f"{name} must be left out for a run of {self.recipe.task}, {whose}; "
                    f"got {value!r}."
                )
        return self.use.look(texts, chosen)

    def attention(self, source: str, output: Sequence[int] | str) -> Look:
        """Attention of the model to ``source`` for ``output``: see ``attention_to_source``."""
        return attention_to_source(self.seq2seq, self.sequence_task, source, output)


def load(run: str | Path, *, precision: Precision = "auto", device: str = AUTO) -> Predictor:
    """The trained model of a run folder or bundle, ready to answer and to be looked into.

    Args:
        run: The folder or the bundle, or the name of a bundle that comes with the package. Of one
            that is in training the newest checkpoint counts.
        precision: Type of its weights: ``int8`` is smaller, and rounds.
        device: Where it works: ``auto`` takes a GPU if there is one, but for ``int8``, which only a
            CPU does; ``cpu``; ``cuda``, ``cuda:1``; or ``mps``.

    Raises:
        RunError: There is none, it is damaged, or a newer version of regard made it.
        SettingError: There is no such device, or it or the model cannot do this precision.

    Example:
        The translator that comes with the package:

        >>> load("tatoeba-zh-en").predict("我爱中国")[0].text()
        'I love China.'
    """
    return Predictor.load(run, precision=precision, device=device)
