"""Adapter of a task to the training loop: batches, validation, sample outputs."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Generic, TypeAlias, TypeVar, cast

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor, nn

from regard.checks import counted
from regard.devices import device_of
from regard.devices.memory import build_in_memory
from regard.devices.moving import Ahead
from regard.errors import DataError, SettingError
from regard.inference import Predictor
from regard.inference.evaluation.evaluate import beside_main_baselines
from regard.inference.one_pass import OnePass
from regard.models import Classifier
from regard.models.interfaces import DividesLogits
from regard.tasks import OnePassTask, SequenceTask, Task
from regard.tasks.sequences.translations import Translations
from regard.tasks.streaming import Stored
from regard.tasks.task import AnswerT, BatchT, EncodedT, ExampleT
from regard.text import BadLines, Batches, Pair
from regard.text.batches import WINDOW
from regard.text.languages import length_unit, side_script
from regard.text.normalization import split_words
from regard.training.calibration import Scales, fit_scales, fit_temperature
from regard.training.distributed.world import WHOLE_BATCH, BatchShard
from regard.training.precision import freed_memory_returned
from regard.training.settings import TrainingConfig

ItemT = TypeVar("ItemT")

# Tokens of a batch where the recipe sets none and the memory is unknown.
DEFAULT_BATCH = 4096
# Batches of an epoch among which the largest is looked for.
_LOOKED_AT = 5000
# Batches of an epoch whose examples are counted.
_COUNTED = 100
# Outputs shown at each validation.
_SAMPLES = 3
# A validation after every epoch is on one example for so many of training, but on some at least;
# and of those that are written, fewer.
_TRAINED_FOR_ONE, _LEAST_VALID = 10, 200
_TRAINED_FOR_ONE_WRITTEN, _LEAST_WRITTEN = 40, 100


class TaskTraining(Generic[ExampleT, EncodedT, BatchT, AnswerT]):
    """Batches, validation and samples of a task; ``stored`` is the text where it is on disk."""

    def __init__(
        self,
        task: Task[ExampleT, EncodedT, BatchT, AnswerT],
        train: Sequence[ExampleT],
        valid: Sequence[ExampleT],
        config: TrainingConfig,
        too_long: BadLines | None = None,
        stored: Stored[EncodedT] | None = None,
    ) -> None:
        if config.r_drop and not task.is_written:
            raise SettingError(
                f"training.r_drop must be 0 for {task.recipe.task}; got {config.r_drop}. It is of "
                "tasks that write a text for a text, such as translation."
            )
        self.task, self.config, self.valid = task, config, list(valid)
        too_long = BadLines() if too_long is None else too_long
        self.corpus: Sequence[EncodedT]
        if stored is None:
            self.corpus, self._valid_corpus = task.encode_parts(
                train, self.valid, too_long=too_long
            )
        else:
            _, self._valid_corpus = task.encode_parts(self.valid, self.valid, too_long=BadLines())
            self.corpus = stored
        is_encoded = task.is_written or stored is not None
        counted = (self.corpus, self._valid_corpus) if is_encoded else (train, valid)
        self.batch_tokens = DEFAULT_BATCH if config.batch_tokens == "auto" else config.batch_tokens
        self.num_examples, self.num_valid = map(len, counted)
        self._epoch_corpus = self.corpus
        # Training examples of the baselines.
        self._train: Sequence[ExampleT] = () if task.is_written else train
        self._most_valid = max(1, len(self.valid), self.num_valid)
        if config.validate_every == "auto":
            self._most_valid = max(_LEAST_VALID, self.num_examples // _TRAINED_FOR_ONE)

    @property
    def model_dim(self) -> int:
        """The width that the paper's learning rate depends on."""
        model = self.task.recipe.model
        return int(getattr(model, "model_dim", 0) or getattr(model, "hidden_dim", 0) or 512)

    @property
    def num_samples(self) -> int:
        """Samples of an epoch: examples, or windows of them."""
        return len(self.corpus)

    @property
    def size_line(self) -> str:
        """The numbers of training and validation examples, in a line for people."""
        learned, valid = self.task.unit, ""
        if isinstance(self.corpus, Stored) and not self.task.is_written:
            learned, valid = "windows of text", f" {learned}"
        return (
            f"{self.num_examples:,} {learned} to train on, {self.num_valid:,}{valid} to validate on"
        )

    @property
    def valid_size(self) -> str:
        """Number and unit of the validation examples: ``48 texts``."""
        return counted(self.num_valid, self.task.unit)

    @property
    def sample_size(self) -> str:
        """Number and unit of those that a validation is on: ``200 of 872 texts``."""
        most = self._most_valid
        count = len(range(0, self.num_valid, -(-self.num_valid // most)))
        return self.valid_size if count == self.num_valid else f"{count:,} of {self.valid_size}"

    def describe_perplexity(self) -> list[str]:
        """Note on unknown words and perplexity, where a vocabulary is of words."""
        tokenizer = getattr(self.task, "tokenizer", None)
        tokenizer = getattr(tokenizer, "target", tokenizer)
        settings = self.task.recipe.tokenizer
        has_perplexity = self.task.is_written or "perplexity" in self.task.metrics
        if tokenizer is None or settings is None or settings.type != "words" or not has_perplexity:
            return []
        texts = [
            line
            for example in self.valid[:_LOOKED_AT]
            for line in getattr(example, "lines", [getattr(example, "target", "")])
        ]
        incomparable = "not to be compared with that of subwords"
        if length_unit(side_script(texts)) == "characters":
            return [f"perplexity is that of characters, as words are not spaced: {incomparable}"]
        words = Counter(word for text in texts for word in split_words(text) if word != " ")
        spelled = sum(n for word, n in words.items() if len(tokenizer.encode(word)) > 1)
        unknown = f"{spelled / max(1, words.total()):.1%} of those validated on are"
        spelling = f", and of characters where a word is unknown, as {unknown}" if spelled else ""
        return [f"perplexity is that of whole words{spelling}: {incomparable}"]

    @property
    def metrics(self) -> Mapping[str, int]:
        """Names that ``training.metric`` may take."""
        return {"loss": -1, **self.task.metrics}

    def begin_epoch(self, epoch: int) -> None:
        """Have the text as the task reads it in this epoch."""
        self._epoch_corpus = self.task.of_epoch(self.corpus, seed=self.config.seed, epoch=epoch)

    def batches(
        self, epoch: int, cursor: int, share: BatchShard = WHOLE_BATCH
    ) -> Iterator[tuple[BatchT | None, int]]:
        """The rest of an epoch's batches, or a shard of each, each with the cursor after it."""
        # Noise is drawn from seed, epoch and cursor, so that a resumed run draws the same.
        plans = self._plan(self._epoch_corpus, seed=self.config.seed).epoch(epoch, cursor)
        for index, plan in enumerate(plans):
            seeds = np.random.SeedSequence([self.config.seed, epoch, plan.cursor])
            generator = torch.Generator().manual_seed(int(seeds.generate_state(1)[0]))
            chosen = [self._epoch_corpus[index] for index in plan.indices.tolist()]
            if share.is_all:
                yield self.task.collate(chosen, generator=generator), plan.cursor
                continue
            costs = np.atleast_2d(self.task.lengths(chosen)).sum(axis=0)
            rows = share.rows(index % share.accumulate, costs)
            has = rows.start < rows.stop
            part = self.task.collate_part(chosen, rows, generator=generator) if has else None
            yield part, plan.cursor

    def update_batches(
        self, epoch: int, cursor: int, shard: BatchShard, *, with_empty: bool
    ) -> Iterator[tuple[tuple[BatchT | None, ...], int]]:
        """The batches of each update of the rest of an epoch, and the cursor after them."""
        group: list[BatchT | None] = []
        count = 0
        for batch, reached in self.batches(epoch, cursor, shard):
            count += 1
            if batch is not None or with_empty:
                group.append(batch)
            if count == shard.accumulate or reached == self.num_samples:
                yield tuple(group), reached
                group, count = [], 0

    def backward(
        self, model: nn.Module, batch: BatchT, *, smoothing: float, scale: float
    ) -> tuple[Tensor, int]:
        """The loss summed over predictions, and their number."""
        # Only tasks that write take it: see ``__init__``.
        options = {"r_drop": self.config.r_drop} if self.config.r_drop else {}
        return self.task.backward(model, batch, smoothing=smoothing, scale=scale, **options)

    @torch.no_grad()
    @freed_memory_returned()
    def validate(self, model: nn.Module, *, by_sample: bool = False) -> dict[str, float]:
        """The mean loss over the validation examples or a sample of them, and the metrics."""
        most = self._most_valid if by_sample else max(1, len(self.valid), self.num_valid)
        corpus = _evenly(self._valid_corpus, most)
        if not self.task.is_written:
            examples = _evenly(self.valid, most)
            answers, loss = OnePass(
                model, cast("OnePassTask[Any, Any]", self.task)
            ).answers_and_loss(examples, corpus)
            return {"loss": loss, **self.task.score(answers, examples)}
        total, tokens = 0.0, 0
        plans = self._plan(corpus, seed=0).epoch(0)
        collate = self.task.collate
        batches = (collate([corpus[index] for index in plan.indices.tolist()]) for plan in plans)
        for batch in Ahead(batches, device_of(model)):
            loss_sum, terms = self.task.loss(model, batch)
            total, tokens = total + float(loss_sum), tokens + terms
        loss = total / tokens
        figures = {"loss": loss, "perplexity": float(torch.tensor(loss).exp())}
        most_written = self.config.validation_pairs
        if by_sample and self.config.validate_every == "auto":
            few = max(_LEAST_WRITTEN, self.num_examples // _TRAINED_FOR_ONE_WRITTEN)
            most_written = min(most_written, few)
        scored = self.valid[:most_written]
        if scored:
            figures |= self.task.score(self._outputs(model, scored), scored)
        return figures

    @torch.no_grad()
    def calibrate(self, model: nn.Module) -> float | Scales | None:
        """Scale a classifier's logits so that its probabilities fit the validation examples."""
        if not isinstance(model, DividesLogits) or not isinstance(self.task, OnePassTask):
            return None
        rows, right = self._distributions(model)
        if not rows:
            return None
        if isinstance(model, Classifier) and model.ngrams is not None:
            model.ngrams.scale.zero_()
            scales = fit_scales(self._distributions(model)[0], rows, right)
            model.scale_logits(network=scales.network, ngrams=scales.ngrams)
            return scales
        temperature = fit_temperature(rows, right)
        model.divide_logits(temperature)
        return temperature

    def _distributions(self, model: nn.Module) -> tuple[list[Sequence[float]], list[int]]:
        """The probabilities of the validation examples that have a true answer, and its index."""
        task = cast("OnePassTask[Any, Any]", self.task)
        answers, _ = OnePass(model, task).answers_and_loss(self.valid, self._valid_corpus)
        every = map(task.distribution, answers, self.valid)
        distributions = [distribution for distribution in every if distribution is not None]
        return [row for row, _ in distributions], [index for _, index in distributions]

    def beside_baselines(self, figures: Mapping[str, float]) -> str | None:
        """A sentence that compares figures with the best baseline's; None if there is none."""
        valid, task = self.valid, self.task
        outputs: Mapping[str, Sequence[Any]] = {}
        if isinstance(task, OnePassTask) and self._train:
            outputs = task.baselines(self._train, valid)
        elif isinstance(task, SequenceTask) and "bleu" in figures:
            valid = valid[: self.config.validation_pairs]
            sources = [pair.source for pair in cast("list[Pair]", valid)]
            texts: Mapping[str, Sequence[str]] = {"the source itself": sources}
            with suppress(DataError):  # the text may be gone since it was read
                texts = task.baselines(task.recipe, "valid") or texts
            outputs = {n: list(map(Translations.of_text, sources, t)) for n, t in texts.items()}
        scores = {name: task.score(answers, valid) for name, answers in outputs.items()}
        return beside_main_baselines(task, figures, scores)

    def samples(self, model: nn.Module) -> list[str]:
        """A few validation examples and the model's answers."""
        step = max(1, len(self.valid) // _SAMPLES)
        examples = self.valid[::step][:_SAMPLES]
        answers = self._outputs(model, examples)
        return [
            self.task.show(example, answer)
            for example, answer in zip(examples, answers, strict=True)
        ]

    def build_model(self) -> nn.Module:
        """The recipe's model with new weights."""
        # The shortest example is tried, so that settings which do not go together are an error
        # before anything is written.
        model = build_in_memory(self.task.build_model)
        if self.task.is_written:
            return model
        lengths = self._lengths_at(self.corpus)(self._looked_at())
        shortest = int(self._looked_at()[lengths.max(axis=0).argmin()])
        with torch.no_grad():
            batch = self.task.collate([self.corpus[shortest]])
            self.task.loss(model.eval(), batch, smoothing=self.config.label_smoothing)
        self.task.initialise(model, self.corpus)
        return model.train()

    @property
    def examples_a_batch(self) -> float:
        """Mean number of examples in the first batches of the first epoch."""
        plans = islice(self._plan(self.corpus, seed=self.config.seed).epoch(0), _COUNTED)
        return float(np.mean([len(plan.indices) for plan in plans]))

    @property
    def num_tokens(self) -> int:
        """Tokens of the text to learn from, on its longer side."""
        looked_at = self._looked_at()
        tokens = self._lengths_at(self.corpus)(looked_at).max(axis=0).sum()
        return int(tokens * (self.num_samples / len(looked_at)))

    def largest(self, tokens: int) -> Iterator[BatchT]:
        """Batches that may take most memory: most tokens in all, most rows, the longest."""
        batches = self._plan(self.corpus, seed=self.config.seed, tokens=tokens)
        plans = [plan.indices for plan in islice(batches.epoch(0), _LOOKED_AT)]
        lengths_at = self._lengths_at(self.corpus)
        sizes = [(len(indices), *lengths_at(indices).max(axis=1).tolist()) for indices in plans]
        wholes = [rows * sum(longest) for rows, *longest in sizes]
        rows, longest = [size[0] for size in sizes], [max(size[1:]) for size in sizes]
        for number in {int(np.argmax(of)) for of in (wholes, rows, longest)}:
            yield self.task.collate([self.corpus[index] for index in plans[number].tolist()])

    def _looked_at(self) -> Int64[np.ndarray, " n"]:
        """The samples that stand for all: where they are on disk, some from all over them."""
        step = len(self.corpus) // WINDOW if isinstance(self.corpus, Stored) else 0
        return np.arange(0, len(self.corpus), max(1, step))

    def _lengths_at(
        self, corpus: Sequence[EncodedT]
    ) -> Callable[[Int64[np.ndarray, " n"]], Int64[np.ndarray, "sides n"]]:
        """Cost of samples in ``training.batch_tokens``, on one side or on both."""
        if isinstance(corpus, Stored):
            return corpus.lengths_at
        lengths = np.atleast_2d(self.task.lengths(corpus))
        return lambda indices: lengths[:, indices]

    def _outputs(self, model: nn.Module, examples: Sequence[ExampleT]) -> list[AnswerT]:
        """Predict examples, greedily where text is generated."""
        decoding = self.task.recipe.decoding
        plain = None if decoding is None else decoding.plain()
        return Predictor(model, self.task).answers(examples, decoding=plain)

    def _plan(self, corpus: Sequence[EncodedT], *, seed: int, tokens: int | None = None) -> Batches:
        most = tokens or self.batch_tokens
        if isinstance(corpus, Stored):
            return Batches.of_stored(len(corpus), corpus.lengths_at, max_tokens=most, seed=seed)
        lengths = np.atleast_2d(self.task.lengths(corpus))
        return Batches(lengths[0], lengths[-1], max_tokens=most, seed=seed)


def _evenly(examples: Sequence[ItemT], most: int) -> Sequence[ItemT]:
    """Up to ``most`` of the examples, spread evenly over them."""
    step = -(-len(examples) // most)
    return [examples[index] for index in range(0, len(examples), step)] if step > 1 else examples


AnyTraining: TypeAlias = TaskTraining[Any, Any, Any, Any]
