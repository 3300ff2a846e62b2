"""Tasks that write a text for a text, token by token: their batches and answers."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int, Int32, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from regard.config import JsonValue
from regard.decoding import Hypothesis
from regard.decoding.hypothesis import Alignment, check_numbers
from regard.errors import DataError, SettingError
from regard.layers.heads import Packing
from regard.models import MODELS, Seq2Seq
from regard.tasks.oddities import CheckedExample
from regard.tasks.sequences.chunked_loss import (
    CHUNK_ROWS,
    backward_in_chunks,
    smoothed_cross_entropy,
)
from regard.tasks.sequences.translations import Translations
from regard.tasks.settings.recipe import Recipe, RecipeTable, SequenceData
from regard.tasks.streaming import Samples
from regard.tasks.task import Task
from regard.text import (
    UNK_ID,
    BadLines,
    Batch,
    Corpus,
    Line,
    Pair,
    PairTokenizer,
    TokenizerConfig,
    encode_corpus,
    load_pair_tokenizer,
    pad_pairs,
    resample,
    train_pair_tokenizer,
)
from regard.text.batches import Ids
from regard.text.languages import guess_language
from regard.text.tokenizers.pieces import unknown_pieces

# Characters of a source that an example shows.
_SHOWN = 160


@dataclass(frozen=True, slots=True, eq=False)
class EncodedSequences:
    """A source as the model reads it at once, and its target, as ids without begin and end."""

    source: Sequence[int] | Int32[np.ndarray, " S"]
    target: Sequence[int] | Int32[np.ndarray, " T"] = ()  # none where it is asked for
    text: str = ""  # the source itself, where its answer is asked for
    is_first: bool = True  # the beginning of a text, which alone has a prefix


@dataclass(frozen=True, slots=True, eq=False)
class SequenceBatch:
    """Padded sources and targets, and the samples that the rows were made of."""

    padded: Batch
    encoded: Sequence[EncodedSequences]


class EncodedCorpus(Samples[EncodedSequences]):
    """A corpus as a sequence of its pairs."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus

    def __len__(self) -> int:
        return len(self.corpus)

    def sample(self, index: int) -> EncodedSequences:
        return EncodedSequences(self.corpus.source[index], self.corpus.target[index])


class SequenceTask(Task[Pair, EncodedSequences, SequenceBatch, Translations]):
    """A text for a text, written token by token by a sequence-to-sequence model."""

    is_written: ClassVar[bool] = True
    unit: ClassVar[str] = "pairs"
    loss_unit = "tokens"

    def __init__(self, recipe: Recipe, tokenizer: PairTokenizer) -> None:
        self.recipe, self.tokenizer = recipe, tokenizer
        self.data = recipe.settings(SequenceData)

    @abstractmethod
    def parts(self, text: str) -> list[str]:
        """Parts of a long source, each of a length that training has seen."""

    @abstractmethod
    def parse_pair(self, line: Line, ending: str) -> Pair:
        """A source and a target of it that is given, of a line that is not empty.

        Raises:
            DataError: One of them is missing.
        """

    @classmethod
    @abstractmethod
    def baselines(cls, recipe: Recipe, split: str) -> dict[str, list[str]] | None:
        """Outputs that take no model, by how they are made; None takes the source itself."""

    @staticmethod
    def checked(example: Pair) -> CheckedExample:
        return CheckedExample((example.source,), (), example.where, example.references)

    @classmethod
    def fingerprint(cls, example: Pair) -> str:
        """The source and all right targets."""
        return "\0".join((example.source, *example.references, ""))

    @classmethod
    def resolved(
        cls, recipe: Recipe, saved: RecipeTable | None, examples: Sequence[Pair]
    ) -> Recipe:
        """The recipe with languages where it names none, for scores: the run's, or guessed."""
        data: Any = recipe.data
        languages: Mapping[str, JsonValue] = {} if saved is None else saved["data"]
        if saved is None:
            languages = {
                f"{side}_language": guess_language([getattr(pair, side) for pair in examples])
                for side in ("source", "target")
            }
        codes = {
            name: getattr(data, name) or languages.get(name)
            for name in ("source_language", "target_language")
        }
        return replace(recipe, data=replace(data, **codes))

    @classmethod
    def learn(cls, recipe: Recipe, examples: Sequence[Pair]) -> "SequenceTask":
        sources, targets = ([getattr(e, side) for e in examples] for side in ("source", "target"))
        return cls(recipe, train_pair_tokenizer(sources, targets, recipe.settings(TokenizerConfig)))

    @classmethod
    def load(cls, recipe: Recipe, folder: Path) -> "SequenceTask":
        return cls(recipe, load_pair_tokenizer(folder))

    def save(self, folder: Path) -> None:
        self.tokenizer.save(folder)

    def build_model(self) -> Seq2Seq:
        """The recipe's model; SettingError if it cannot take the longest text of the recipe."""
        tokenizer = self.tokenizer
        architecture = MODELS[self.recipe.model_type].load()
        model = architecture(
            self.recipe.model,
            source_vocab=tokenizer.source.vocab_size,
            target_vocab=tokenizer.target.vocab_size,
            shared_vocab=tokenizer.is_shared,
        )
        limit, longest = model.max_length, self.data.max_length + 1  # the end is a token too
        if limit is not None and limit < longest:
            raise SettingError(
                f"model.max_length must be above data.max_length = {longest - 1}; got {limit}."
            )
        return model

    def describe(self) -> list[str]:
        tokenizer, data = self.tokenizer, self.data
        sizes = f"{tokenizer.source.vocab_size:,} and {tokenizer.target.vocab_size:,}"
        if tokenizer.is_shared:
            sizes = f"{tokenizer.source.vocab_size:,} shared"
        lines = [f"{self.recipe.settings(TokenizerConfig).type} tokenizer: {sizes} pieces"]
        if data.source_language or data.target_language:
            lines.insert(0, f"{data.source_language or '?'} → {data.target_language or '?'}")
        return lines

    def encode(
        self, examples: Iterable[Pair], *, training: bool = False, too_long: BadLines | None = None
    ) -> Sequence[EncodedSequences]:
        """Ids of each pair to learn from; else of each part of the sources that are asked about."""
        if not training:
            return [part for example in examples for part in self.encoded_parts(example.source)]
        return EncodedCorpus(self.encode_corpus(list(examples), too_long))

    def encode_parts(
        self, train: Sequence[Pair], valid: Sequence[Pair], *, too_long: BadLines
    ) -> tuple[EncodedCorpus, EncodedCorpus]:
        encoded = [EncodedCorpus(self.encode_corpus(pairs, too_long)) for pairs in (train, valid)]
        return encoded[0], encoded[1]

    def encode_corpus(self, pairs: Sequence[Pair], too_long: BadLines | None) -> Corpus:
        """Pairs to learn from, as ids in flat arrays; DataError if none is left."""
        data = self.data
        corpus = encode_corpus(pairs, self.tokenizer, max_length=data.max_length, too_long=too_long)
        if not len(corpus):
            raise DataError(
                f"data.max_length must let in at least one pair; got {data.max_length}, and all "
                f"of {len(pairs)} pairs are longer."
                if pairs
                else "data must hold at least one pair; got none."
            )
        return corpus

    def encoded_parts(self, source: str) -> list[EncodedSequences]:
        """The source, tokenised once; of a longer one than training has seen, its ``parts``."""
        encode = self.tokenizer.source.encode
        ids = encode(source)
        if len(ids) <= self.data.max_length:
            return [EncodedSequences(ids, (), source)]
        return [
            EncodedSequences(encode(part), (), part, is_first=index == 0)
            for index, part in enumerate(self.parts(source))
        ]

    def unknown(self, example: Pair, encoded: Sequence[EncodedSequences]) -> list[str]:
        lacking = [part.text for part in encoded if UNK_ID in part.source]
        return unknown_pieces(self.tokenizer.source, lacking)

    def of_epoch(
        self, encoded: Sequence[EncodedSequences], *, seed: int, epoch: int
    ) -> Sequence[EncodedSequences]:
        if not self.tokenizer.is_sampling:
            return encoded
        assert isinstance(encoded, EncodedCorpus)
        return EncodedCorpus(resample(encoded.corpus, self.tokenizer, seed=seed, epoch=epoch))

    def lengths(self, encoded: Sequence[EncodedSequences]) -> Int64[np.ndarray, "2 n"]:
        if isinstance(encoded, EncodedCorpus):
            source, target = encoded.corpus.source.lengths, encoded.corpus.target.lengths
        else:
            source = np.array([len(pair.source) for pair in encoded], dtype=np.int64)
            target = np.array([len(pair.target) for pair in encoded], dtype=np.int64)
        return np.stack([source + int(self.data.source_end), target + 1])

    def collate(
        self, encoded: Sequence[EncodedSequences], *, generator: torch.Generator | None = None
    ) -> SequenceBatch:
        """A padded batch; with a generator, nothing else."""
        padded = pad_pairs(
            [pair.source for pair in encoded],
            [pair.target for pair in encoded],
            source_end=self.data.source_end,
        )
        return SequenceBatch(padded, encoded)

    def pad_sources(self, ids: Sequence[Ids]) -> tuple[Int[Tensor, "B S"], Int[Tensor, " B"]]:
        """Sources as a model reads them, of ids without their end, and their lengths."""
        batch = pad_pairs(ids, [()] * len(ids), source_end=self.data.source_end)
        return batch.source, batch.source_lengths

    def loss(
        self, model: nn.Module, batch: SequenceBatch, *, smoothing: float = 0.0
    ) -> tuple[Float[Tensor, ""], int]:
        """The loss summed over real target tokens, and how many there are; without gradients."""
        assert isinstance(model, Seq2Seq)
        states, labels, _ = states_and_labels(model, batch.padded)
        total = torch.zeros((), dtype=torch.float64, device=states.device)
        for start in range(0, len(labels), CHUNK_ROWS):
            rows = slice(start, start + CHUNK_ROWS)
            logits = model.project(states[rows])
            total += smoothed_cross_entropy(logits, labels[rows], smoothing=smoothing)
        return total, len(labels)

    def backward(
        self,
        model: nn.Module,
        batch: SequenceBatch,
        *,
        smoothing: float,
        scale: float = 1.0,
        r_drop: float = 0.0,
    ) -> tuple[Float[Tensor, ""], int]:
        """The loss and its terms, its gradient added in chunks, so that no logits exist whole.

        With ``r_drop``, the model reads the batch twice, with different dropout, and its terms
        count once: see ``backward_in_chunks``.
        """
        assert isinstance(model, Seq2Seq)
        padded = batch.padded.twice() if r_drop else batch.padded
        states, labels, auxiliary = states_and_labels(model, padded)
        loss = backward_in_chunks(
            states,
            labels,
            model.project,
            auxiliary=auxiliary,
            smoothing=smoothing,
            r_drop=r_drop,
            scale=scale,
        )
        return loss, len(labels) // (2 if r_drop else 1)

    def decoded(self, read: EncodedSequences, hypotheses: Sequence[Hypothesis]) -> Translations:
        """The outputs of a search for a source as the model read it, best first, with texts."""
        decode = self.tokenizer.target.decode
        outputs = (replace(one, text=decode(one.tokens)) for one in hypotheses)
        return Translations(read.text, tuple(outputs))

    def aligned(
        self, read: EncodedSequences, outputs: Translations, weights: Float[Tensor, "T S"]
    ) -> Translations:
        """The outputs, the best with the attention of its tokens over the source."""
        best = replace(
            outputs.best,
            alignment=Alignment(
                read.text,
                outputs.best.tokens,
                weights,
                len(read.source),
                self.tokenizer,
                is_copying=bool(getattr(self.recipe.model, "copy", False)),
            ),
        )
        return replace(outputs, hypotheses=(best, *outputs[1:]))

    def joined(self, source: str, parts: Sequence[Translations]) -> Translations:
        """The translations of a text from those of its parts: of several, the best of each."""
        if len(parts) == 1:
            return parts[0]
        best = [part.best for part in parts]
        space = "" if self.data.target_language in ("zh", "ja") else " "
        whole = Hypothesis(
            tokens=tuple(token for part in best for token in part.tokens),
            score=sum(part.score for part in best),
            log_prob=sum(part.log_prob for part in best),
            is_finished=all(part.is_finished for part in best),
            text=space.join(part.text for part in best),
        )
        return Translations(source, (whole,), parts=len(parts))

    def show(self, example: Pair, answer: Translations) -> str:
        source = example.source
        if len(source) > _SHOWN:
            source = f"{source[: _SHOWN - 1]}…"
        return f"{source} → {answer.best.text}  (reference: {example.target})"


def states_and_labels(
    model: nn.Module, batch: Batch
) -> tuple[Float[Tensor, "R C"], Int[Tensor, " R"], Float[Tensor, ""] | None]:
    """One state and one label per real target token, and the model's auxiliary loss."""
    states, auxiliary = model(
        batch.source, batch.source_lengths, batch.target_in, batch.target_lengths
    )
    packing = Packing(batch.target_lengths, batch.labels.shape[1])
    return packing.pack(states), packing.pack(batch.labels), auxiliary


@torch.no_grad()
def token_costs(model: Seq2Seq, batch: Batch) -> Float[Tensor, " R"]:
    """−log p of every real target token and end, row after row, teacher-forced."""
    states, labels, _ = states_and_labels(model, batch)
    parts = zip(torch.split(states, CHUNK_ROWS), torch.split(labels, CHUNK_ROWS), strict=True)
    costs = [F.cross_entropy(model.project(s).float(), t, reduction="none") for s, t in parts]
    total = torch.cat(costs)
    check_numbers(total)
    return total


def longest_output(source_lengths: Int[Tensor, " B"], max_ratio: float) -> Int[Tensor, " B"]:
    """The most tokens an output may have: a multiple of its source's, and ten more."""
    return (source_lengths * max_ratio).long() + 10
