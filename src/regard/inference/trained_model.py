"""A trained run in use, whatever its job: texts in, answers out, and what it looked at."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import cast

from regard.choices import check_choice, choose
from regard.config import JsonValue
from regard.devices.kinds import AUTO
from regard.errors import DataError, SettingError
from regard.inference.evaluation import evaluate_task, evaluate_written, read_examples
from regard.inference.generator import Continuations, Generator
from regard.inference.looking import look_into, rows_of
from regard.inference.predictor import Predictor
from regard.inference.report import AnswerReport, TextReport
from regard.inference.requests import request_of
from regard.layers.choices import Precision
from regard.tasks import DecodingConfig, Parts, Recipe, SequenceTask
from regard.tasks.task import Answer
from regard.tasks.translations import Translations
from regard.text import Pair
from regard.text.in_memory import as_files, listed
from regard.text.records import record_in
from regard.viewer import NotebookPage, show

Texts = str | Sequence[str]
_TARGET_ONLY = "target must be left out for a run of {}; it is for translators."


class TrainedModel:
    """A trained run in use, whatever its job.

    Attributes:
        predictor: What answers; it has more ways of asking.

    Example:
        >>> from regard.tasks import TASKS, recipe_from_table
        >>> from regard.text.points import Point
        >>> recipe = recipe_from_table({"task": "regression", "model": {"is_learned": True}})
        >>> known = [Point((0.0,), 2.0, ("x",), ""), Point((1.0,), 4.0, ("x",), "")]
        >>> task = TASKS["regression"].task.learn(recipe, known)
        >>> model = TrainedModel(Predictor(task.build_model(), task))
        >>> [answer.text() for answer in model.predict(["0.5", {"x": 0.5}])]
        ['3', '3']
    """

    def __init__(self, predictor: Predictor) -> None:
        self.predictor = predictor

    def __repr__(self) -> str:
        return repr(self.predictor).replace("Predictor", "TrainedModel", 1)

    @property
    def recipe(self) -> Recipe:
        """Recipe that the run was trained by."""
        return self.predictor.recipe

    def predict(
        self,
        asked: object,
        *,
        progress: Callable[[int], None] | None = None,
        **decoding: JsonValue,
    ) -> list[Answer]:
        """The answer to each text, or record as in JSONL; ``text()`` is what people read of it.

        A language model goes on with each text.

        Args:
            asked: One text or record, or several: texts, records, rows of numbers, an array with a
                row for each, or a data frame; of pictures, paths of files too.
            progress: Called now and then with the number of those answered since.
            decoding: Settings of the search over those of the recipe: ``beam_size=1``. The line
                of ``regard settings decoding`` says of each what it does.

        Raises:
            DataError: One asks nothing that can be answered.
            SettingError: A setting is unknown or out of range, or nothing is searched for.
        """
        if isinstance(asked, str | Path | Mapping | int | float):
            records: list[object] = [asked]
        else:
            records = list(asked if isinstance(asked, list | tuple) else listed(asked))
        if self.recipe.task == "language_modelling":
            return self._continued(records, decoding)
        if not self.predictor.writes:
            self._check_decoding(decoding)
        search = self._search(decoding) if self.predictor.writes else None
        given = [record_in(each) if isinstance(each, str) else each for each in records]
        return self.predictor.predict(given, decoding=search, progress=progress)

    def evaluate(
        self,
        data: object = None,
        *,
        progress: Callable[[int], None] | None = None,
        **decoding: JsonValue,
    ) -> AnswerReport | TextReport:
        """Measure how good the answers to data are: ``regard evaluate``.

        Figures with intervals, what takes no model beside them, and examples to read: ``print`` it.

        Args:
            data: With right answers, in the form of the training text: a file, or a translator's
                two; records, rows, an array, a pair (inputs, targets) or a data frame. None takes
                what the training held out to test on, or the recipe's test text.
            progress: Called now and then with the number of those answered since.
            decoding: Settings of the search over those of the recipe, of a model that writes.

        Raises:
            DataError: The data cannot be read, or there is none.
            SettingError: A setting is unknown or out of range, or nothing is searched for.
        """
        task = self.predictor.task
        parts: Parts[object] = Parts((), ())
        if self.recipe.training.get("corpus") != "disk":
            with suppress(DataError):  # the training text may be gone
                parts = task.read_parts(self.recipe)
        if data is None:
            examples = parts.test or task.read(self.recipe, "test")
        else:
            with as_files(data) as files:
                examples = read_examples(task, files)
        if not examples:
            raise DataError("data must be given: the run's recipe names no text to test on.")
        if not isinstance(task, SequenceTask):
            self._check_decoding(decoding)
            return evaluate_task(self.predictor, examples, parts.train, progress=progress)
        pairs = cast("Sequence[Pair]", examples)
        search = self._search(decoding)
        answers = self.predictor.answers(pairs, decoding=search, progress=progress)
        return evaluate_written(
            task,
            [cast(Translations, answer).best.text for answer in answers],
            pairs,
            training_targets=[cast(Pair, each).target for each in parts.train],
        )

    def look(
        self,
        texts: Texts,
        *,
        target: str | None = None,
        layers: Sequence[int] | None = None,
        heads: Sequence[int] | None = None,
    ) -> NotebookPage:
        """Attention of the model over texts: a page, for a notebook's cell or a file.

        Args:
            texts: One text or several, as ``predict`` takes them.
            target: The output to explain, of one text to a translator; None explains its own.
            layers: Which layers are shown, counted from 0; None is all.
            heads: Which heads; None is all.

        Raises:
            DataError: There is no text, one is too long to be read at once, or a target is for
                several.
            SettingError: The model has no such layer or head, or writes nothing that a target
                could be.
        """
        if target is not None and not self.predictor.writes:
            raise SettingError(_TARGET_ONLY.format(self.recipe.task))
        found = look_into(self.predictor, texts, target=target, layers=layers, heads=heads)
        return show(found, rows=rows_of(self.predictor, found) if self.predictor.writes else None)

    def _check_decoding(self, decoding: Mapping[str, JsonValue]) -> None:
        """Raise SettingError if there are settings of a search."""
        if decoding:
            raise SettingError(
                f"{next(iter(decoding))} must be left out for a run of {self.recipe.task}; nothing "
                "is searched for."
            )

    def _search(self, decoding: Mapping[str, JsonValue]) -> DecodingConfig:
        """The settings of a search, some of them given anew."""
        known = {field.name: field for field in fields(DecodingConfig)}
        for name in decoding:
            choose("the setting of decoding", name, known)
        return self.predictor.decoding.changed(**decoding)

    def _continued(
        self, prompts: Sequence[object], decoding: Mapping[str, JsonValue]
    ) -> list[Answer]:
        texts = []
        for place, prompt in enumerate(prompts, 1):
            request = request_of(prompt, place)
            text = request if isinstance(request, str) else request.get("text")
            if not isinstance(text, str):
                raise DataError(f"record {place} must have a text to go on with; got {request}.")
            texts.append(text)
        generator = Generator.of(self.predictor)
        found = generator.continuations_of(texts, self._search(decoding))
        return [Continuations(text, tuple(each)) for text, each in zip(texts, found, strict=True)]


def load(run: str | Path, *, precision: Precision = "auto", device: str = AUTO) -> TrainedModel:
    """The trained model of a run folder or bundle, ready to answer and to be looked into.

    Args:
        run: The folder, or the bundle. Of one that is in training the newest checkpoint counts.
        precision: What its weights are kept in: ``int8`` is smaller, and rounds.
        device: Where it works: ``auto`` takes a GPU if there is one; ``cpu``; ``cuda``, ``cuda:1``;
            or ``mps``.

    Raises:
        RunError: There is none, it is damaged, or a newer version of regard made it.
        SettingError: There is no such device, or it or the model cannot do this precision.

    Example:
        Of a run that answers by the two points it knows:

        >>> import tempfile
        >>> from regard.runs import Run
        >>> from regard.tasks import TASKS, recipe_from_table
        >>> from regard.text.points import Point
        >>> recipe = recipe_from_table({"task": "regression", "model": {"is_learned": True}})
        >>> known = [Point((0.0,), 2.0, ("x",), ""), Point((1.0,), 4.0, ("x",), "")]
        >>> task, home = TASKS["regression"].task.learn(recipe, known), Path(tempfile.mkdtemp())
        >>> with Run.create(home / "run", recipe.table(), recipe.task) as run:
        ...     with run.new_tokenizer_folder() as folder:
        ...         task.save(folder)
        ...     run.finish(task.build_model().state_dict())
        >>> load(home / "run", device="cpu").predict("0.5")[0].text()
        '3'
    """
    check_choice("precision", precision, Precision)  # before anything is read
    return TrainedModel(Predictor.load(run, precision=precision, device=device))
