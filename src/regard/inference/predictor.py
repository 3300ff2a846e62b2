"""A trained run in use: examples in, answers out; what it looks at."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, cast

import torch
from jaxtyping import Int
from torch import Tensor, nn
from typing_extensions import TypeVar

from regard.attention import AttentionCall, observe
from regard.config import JsonValue
from regard.decoding.step import State
from regard.devices import CPU, device_of, find_device, in_halves, moved
from regard.devices.kinds import AUTO
from regard.errors import DataError, RunError
from regard.inference.look import (
    MOST_MAPPED,
    MOST_WITHOUT_SUMMARIES,
    Look,
    attention_maps,
    attention_summaries,
    joined,
)
from regard.inference.once import Once
from regard.inference.preparation import Preparation, batch_tokens
from regard.inference.requests import request_of
from regard.inference.searcher import Searcher, SequenceSearch
from regard.layers.choices import Precision
from regard.models import Seq2Seq
from regard.runs.run import Run
from regard.runtime.precision import in_precision
from regard.runtime.preparing import warm_up
from regard.tasks import (
    TASKS,
    AnyTask,
    DecodingConfig,
    OnePassTask,
    Recipe,
    SequenceTask,
    recipe_from_table,
)
from regard.tasks.sequences import EncodedSequences
from regard.tasks.task import Answer, BatchT, EncodedT, ExampleT, Task
from regard.tasks.translations import Translation, Translations, pieces_of
from regard.text import BOS_ID, Pair, PairTokenizer, batched, normalize, pad_pairs

# What a task answers; of a run that is read from its folder it is not known what else that is.
AnswerT = TypeVar("AnswerT", bound=Answer, covariant=True, default=Answer)

# Tokens of a batch that is answered in one pass, padding included.
_BATCH_TOKENS = 8192


class Predictor(Generic[AnswerT]):
    """A model and its task, ready to answer.

    Args:
        model: Trained, or in training; put into evaluation mode at each use.
        task: The one it was trained for.

    Attributes:
        preparation: Makes the model ready for use, which answers whatever the amount of work.

    Example:
        >>> from regard.text.points import Point
        >>> recipe = recipe_from_table({"task": "regression", "model": {"is_learned": True}})
        >>> known = [Point((0.0,), 2.0, ("x",), ""), Point((1.0,), 4.0, ("x",), "")]
        >>> task = TASKS["regression"].task.learn(recipe, known)
        >>> predictor = Predictor(task.build_model(), task)
        >>> [answer.text() for answer in predictor.predict(["0.5"])], predictor.writes
        (['3'], False)
    """

    def __init__(
        self,
        model: nn.Module,
        task: Task[ExampleT, EncodedT, BatchT, AnswerT],
    ) -> None:
        self.model = model
        self.task: AnyTask = task
        self.preparation = Preparation()

    def warm_up(self) -> None:
        """Prepare the model before the first answer, and load compiled loops."""
        if isinstance(self.task, SequenceTask):
            self.translate(["."])
            return
        warm_up(self.preparation.of(self.model))

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        precision: Precision = "auto",
        device: str = AUTO,
        setting: str = "device",
    ) -> "Predictor":
        """The model in a run folder.

        Args:
            path: The folder, or a bundle.
            precision: What its weights are kept in: ``int8`` is smaller and, of large models,
                faster, and rounds; see :func:`regard.runtime.in_precision`.
            device: Where it works: ``auto`` takes a GPU if there is one, but for ``int8``, which
                only a CPU does; ``cpu``; ``cuda``, ``cuda:1``; or ``mps``.
            setting: What the device is called in messages.

        Raises:
            RunError: There is none, it is damaged, or a newer version of regard made it.
            SettingError: There is no such device, or it or the model cannot do this precision; or
                the model has settings that are no longer any.
        """
        is_on_cpu = precision == "int8" and device == AUTO
        found = CPU if is_on_cpu else find_device(device, setting=setting)
        run = Run.open(path)
        recipe = recipe_from_table(run.recipe)
        task = TASKS[recipe.task].task.load(recipe, run.tokenizer_folder)
        model = run.build(task.build_model)
        return cls(in_precision(model.to(found).eval(), precision), task)

    def __repr__(self) -> str:
        parameters = sum(parameter.numel() for parameter in self.model.parameters())
        return (
            f"Predictor(task={self.recipe.task!r}, model={self.recipe.model_type!r}, "
            f"parameters={parameters:,}, device={str(self.device)!r})"
        )

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
        """Whether its answers are texts, written token by token."""
        return self.task.is_written

    @property
    def decoding(self) -> DecodingConfig:
        """How outputs are searched for, where nothing else is asked, of a task that searches."""
        return self.recipe.settings(DecodingConfig)

    @property
    def sequence_task(self) -> SequenceTask:
        """The task, which writes a text for a text.

        Raises:
            RunError: It is one of another kind.
        """
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
        records: Sequence[object],
        *,
        decoding: DecodingConfig | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[AnswerT]:
        """The answer to each record, as ``Task.request`` takes them: a line of text, or a table.

        Args:
            records: What is asked: lines of text, objects, or rows of numbers or texts; the paths
                of picture files.
            decoding: The settings of the search, where one is needed; None takes the recipe's.
            progress: Called after each batch with the number of records in it.
        """
        examples = [
            self.task.request(self._request_of(record, place), f"record {place}")
            for place, record in enumerate(records, 1)
        ]
        return self.answers(examples, decoding=decoding, progress=progress)

    def _request_of(self, record: object, place: int) -> str | Mapping[str, JsonValue]:
        if isinstance(record, Path):
            from regard.tasks.image_classification import ImageClassification

            if isinstance(self.task, ImageClassification):
                return self.task.open(record)
        return request_of(record, place)

    def answers(
        self,
        examples: Sequence[object],
        *,
        decoding: DecodingConfig | None = None,
        attention: bool = False,
        layers: Sequence[int] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[AnswerT]:
        """The answer to each example.

        Args:
            examples: What is asked.
            decoding: The settings of the search, where one is needed; None takes the recipe's.
            attention: Whether to note what the best output's tokens looked at, of one that is
                searched for.
            layers: Whose attention that is, counted from 0; None takes all layers.
            progress: Called after each batch with the number of examples in it.
        """
        if not self.writes:
            assert isinstance(self.task, OnePassTask)
            return self._in_one_pass(self.task, examples, progress, with_loss=False)[0]
        wanted = _Wanted(decoding or self.decoding, attention, layers)
        sources = [pair.source for pair in cast("Sequence[Pair]", examples)]
        found = self._written(self.sequence_task, sources, wanted, progress)
        return cast("list[AnswerT]", found)

    def answers_and_loss(self, examples: Sequence[object]) -> tuple[list[AnswerT], float]:
        """The answer to each example in one pass, and the mean loss over all that is predicted."""
        assert isinstance(self.task, OnePassTask)
        return self._in_one_pass(self.task, examples, None, with_loss=True)

    def translate(
        self,
        texts: Sequence[str],
        *,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        n_best: int | None = None,
        decoding: DecodingConfig | None = None,
        attention: bool = False,
        layers: Sequence[int] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[list[Translation]]:
        """Translations of each text, best first.

        An empty text gives one empty translation. A text longer than training allowed is cut at
        sentence ends and translated in parts, best translation only; a prefix and required words
        are for the first part.

        Args:
            texts: What to translate, one sentence each.
            beam_size: Hypotheses kept at each step of a beam; 1 is greedy. None takes the
                settings', as the next two do.
            length_penalty: Higher gives longer outputs.
            n_best: Translations wanted of each text.
            decoding: The settings of the search; None takes the recipe's.
            attention: Whether to note what the best translation's tokens looked at, which costs
                next to nothing: see ``Translation.alignment``.
            layers: Whose attention that is, counted from 0; None takes all layers.
            progress: Called after each batch with the number of parts of texts in it.

        Raises:
            RunError: The run is none that writes a text for a text.
            SettingError: A setting is out of range or contradicts another, such as n_best larger
                than beam_size; a word cannot be spelled; or the attention is wanted of a model
                that has none to the source, or not in these layers.
        """
        settings = self._decoding(decoding, beam_size, length_penalty, n_best)
        wanted = _Wanted(settings, attention, layers)
        found = self._written(self.sequence_task, list(map(normalize, texts)), wanted, progress)
        return [list(each.found) for each in found]

    def translate_parts(
        self,
        parts: Sequence[str],
        is_first: Sequence[bool],
        *,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        n_best: int | None = None,
        attention: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> list[Translations]:
        """Translations of parts of texts, as the task cuts them: what ``translate`` does of each.

        Args:
            parts: What to translate.
            is_first: Which of them begin a text: a prefix and required words are for those.
            beam_size: As ``translate`` has it, and so are the others.
            length_penalty: See there.
            n_best: See there.
            attention: See there.
            progress: See there.

        Raises:
            RunError: As of ``translate``.
            SettingError: As of ``translate``.
        """
        task = self.sequence_task
        wanted = _Wanted(self._decoding(None, beam_size, length_penalty, n_best), attention, None)
        encoded = [task.encoded_part(*each) for each in zip(parts, is_first, strict=True)]
        return self._parts_written(task, encoded, wanted, progress)

    def _decoding(
        self,
        decoding: DecodingConfig | None,
        beam_size: int | None,
        length_penalty: float | None,
        n_best: int | None,
    ) -> DecodingConfig:
        """The settings of a search, some of them given anew."""
        given: dict[str, int | float | str | None] = {
            "length_penalty": length_penalty,
            "n_best": n_best,
        }
        if beam_size is not None:
            given |= {"method": "beam", "beam_size": beam_size}
        decoding = (
            self.sequence_task.recipe.settings(DecodingConfig) if decoding is None else decoding
        )
        return decoding.changed(**{k: v for k, v in given.items() if v is not None})

    def _written(
        self,
        task: SequenceTask,
        sources: Sequence[str],
        wanted: "_Wanted",
        progress: Callable[[int], None] | None,
    ) -> list[Translations]:
        """Outputs of each source, in parts where it is long."""
        cut = [task.encoded_parts(source) for source in sources]
        flat = [part for parts in cut for part in parts]
        found = iter(self._parts_written(task, flat, wanted, progress))
        return [
            task.joined(source, [next(found) for _ in parts])
            for source, parts in zip(sources, cut, strict=True)
        ]

    @torch.no_grad()
    def _parts_written(
        self,
        task: SequenceTask,
        encoded: Sequence[EncodedSequences],
        wanted: "_Wanted",
        progress: Callable[[int], None] | None,
    ) -> list[Translations]:
        """Outputs of each part of a source; none for one without tokens."""
        searcher = Searcher(wanted.decoding, task.tokenizer.target)
        search = SequenceSearch(searcher, attention=wanted.attention, layers=wanted.layers)
        found = [Translations.of_nothing(part.text) for part in encoded]
        filled = [place for place, part in enumerate(encoded) if len(part.source)]
        sizes = [(len(encoded[place].source) + 1) * searcher.width for place in filled]
        model = self.preparation.of(self.seq2seq)

        def write(places: Sequence[int]) -> None:
            batch = moved(task.collate([encoded[place] for place in places]), self.device)
            for place, answer in zip(places, task.predict(model, batch, search), strict=True):
                found[place] = answer

        most = batch_tokens(self.seq2seq, self.decoding.batch_tokens)
        for group in batched(sizes, most):
            in_halves(write, [filled[index] for index in group], self.device)
            if progress is not None:
                progress(len(group))
        return found

    @torch.no_grad()
    def _in_one_pass(
        self,
        task: OnePassTask[ExampleT, AnswerT],
        examples: Sequence[ExampleT],
        progress: Callable[[int], None] | None,
        *,
        with_loss: bool,
    ) -> tuple[list[AnswerT], float]:
        model, encoded = self.preparation.of(self.model), task.encode(examples)
        found: dict[int, AnswerT] = {}
        losses: list[tuple[float, int]] = []

        def answer_all(places: Sequence[int]) -> None:
            batch = moved(task.collate([encoded[place] for place in places]), self.device)
            asked = Once(model) if with_loss else model
            answers = task.predict(asked, batch)
            if with_loss:
                summed, count = task.loss(asked, batch)
                losses.append((float(summed), count))
            found.update(zip(places, answers, strict=True))

        most = batch_tokens(self.model, _BATCH_TOKENS)
        for places in batched(task.lengths(encoded).tolist(), most):
            in_halves(answer_all, places, self.device)
            if progress is not None:
                progress(len(places))
        total, terms = 0.0, 0
        for loss, count in losses:
            total, terms = total + loss, terms + count
        return [found[place] for place in range(len(encoded))], total / max(1, terms)

    @torch.no_grad()
    def look(self, source: str, output: Sequence[int] | str) -> Look:
        """Attention of the model for ``output``: one teacher-forced pass.

        A text longer than training allowed is looked at all the same, where the model can read it.

        Args:
            source: The source text.
            output: The output's text, or its token ids.

        Returns:
            The weights of all heads where source and output have at most 512 tokens; summaries
            of them where either has more than 64.

        Raises:
            DataError: The source is empty, or source or output longer than the model's positions.
        """
        source = normalize(source)
        target = self.tokenizer.target
        ids = list(target.encode(output) if isinstance(output, str) else output)
        source_ids = self.tokenizer.source.encode(source)
        if not source_ids:
            raise DataError("source must hold text to look at; got an empty line.")
        seen = self.observed(source_ids, ids)
        text, spans = target.decode_with_spans(ids)
        longest = max(len(source_ids), len(ids))
        return Look(
            source=source,
            output=text,
            source_pieces=self.tokenizer.source.pieces(source),
            output_pieces=pieces_of(text, spans, ids),
            maps=attention_maps(seen) if longest <= MOST_MAPPED else [],
            summaries=attention_summaries(seen) if longest > MOST_WITHOUT_SUMMARIES else [],
        )

    @torch.no_grad()
    def observed(
        self, source: Sequence[int], output: Sequence[int]
    ) -> dict[tuple[str, int], AttentionCall]:
        """Calls of ``attend`` for ``output``, by kind and layer.

        Args:
            source: Token ids, without their end.
            output: Token ids, without begin and end.

        Raises:
            DataError: One of them is longer than the model's positions.
        """
        # The begin that stands before an output, and the end of a source where one is read.
        self._check_length("source", len(source), int(self.sequence_task.data.source_end))
        self._check_length("output", len(output), 1)
        batch, lengths = self.padded([source])
        calls: list[AttentionCall] = []
        self.model.eval()
        with observe(calls.append):
            self.model(batch, lengths, torch.tensor([[BOS_ID, *output]], device=self.device))
        seen = joined(calls)
        if self.seq2seq.begins_source:
            # What an encoder reads besides, no token of the source stands for.
            return {place: each for place, each in seen.items() if place[0] != "encoder"}
        return seen

    def _check_length(self, name: str, length: int, signs: int) -> None:
        most = self.seq2seq.max_length
        if most is not None and length > most - signs:
            raise DataError(
                f"{name} must be at most {most - signs} tokens long to be looked at; got {length}. "
                "The model has no positions beyond: look at one sentence at a time."
            )

    def start(self, ids: list[list[int]]) -> State:
        """The model's state before the first token of each source's output.

        Args:
            ids: Of the sources, without their end.
        """
        state: State = self.seq2seq.start(*self.padded(ids))
        return state

    def padded(self, ids: Sequence[Sequence[int]]) -> tuple[Int[Tensor, "B S"], Int[Tensor, " B"]]:
        """Sources as the model reads them, on its device, and their lengths.

        Args:
            ids: Of the sources, without their end.
        """
        batch = pad_pairs(ids, [()] * len(ids), source_end=self.sequence_task.data.source_end)
        return moved((batch.source, batch.source_lengths), self.device)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """How outputs are searched for, and whether what they look at is noted, of which layers."""

    decoding: DecodingConfig
    attention: bool
    layers: Sequence[int] | None
