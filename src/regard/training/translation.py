"""Training a translator: what the loop needs of sentence pairs."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.inference import Predictor
from regard.metrics import bleu, rouge_l
from regard.tasks import Recipe
from regard.tasks.generation import DocumentData
from regard.tasks.generation.documents import cut_to, told_reading
from regard.tasks.translation import build_model, learn_tokenizer, states_and_labels
from regard.text import (
    BadLines,
    Batch,
    Batches,
    BatchPlan,
    Corpus,
    Pair,
    PairTokenizer,
    collate,
    encode_corpus,
    load_pair_tokenizer,
    resample,
)
from regard.text.guessing import guess_language
from regard.training.encoded import Corpora, EncodedText
from regard.training.loss import CHUNK_ROWS, backward_in_chunks, smoothed_cross_entropy
from regard.training.settings import TrainingConfig

# Outputs shown at each validation.
_SAMPLES = 3


class TranslationTraining:
    """Batches, validation and samples of a translation corpus.

    Args:
        recipe: Whose settings hold.
        tokenizer: Of both languages.
        train: Pairs to learn from.
        valid: Pairs to validate on.
        config: The training settings.
        too_long: Where pairs beyond the maximum length are counted.
        encoded: Encodes the pairs, or has them from the run; None encodes.
    """

    unit = "pairs"
    counted = "tokens"

    @classmethod
    def fingerprint(cls, pair: Pair) -> str:
        """What tells a pair from others."""
        return "\0".join((pair.source, *pair.references, ""))

    @classmethod
    def settled(
        cls, recipe: Recipe, kept: Mapping[str, Any] | None, pairs: Sequence[Pair]
    ) -> Recipe:
        """The recipe with languages where it names none: the run's, or guessed from the text.

        They decide how outputs are scored.
        """
        return _with_languages(recipe, _guessed_languages(pairs) if kept is None else kept["data"])

    @classmethod
    def learn(cls, recipe: Recipe, pairs: Sequence[Pair]) -> PairTokenizer:
        """The tokenizer, learned from the training pairs."""
        return learn_tokenizer(recipe, pairs)

    @classmethod
    def load(cls, recipe: Recipe, folder: Path) -> PairTokenizer:
        """The tokenizer that a run keeps."""
        return load_pair_tokenizer(folder)

    def __init__(
        self,
        recipe: Recipe,
        tokenizer: PairTokenizer,
        train: Sequence[Pair],
        valid: Sequence[Pair],
        config: TrainingConfig,
        too_long: BadLines | None = None,
        encoded: EncodedText | None = None,
    ) -> None:
        self.recipe, self.tokenizer, self.config = recipe, tokenizer, config
        corpora = self._corpora(train, valid, too_long, encoded or EncodedText())
        self.corpus, self.valid = corpora["train"], corpora["valid"]
        self.epoch_corpus = self.corpus
        self.valid_pairs = list(valid)
        self.valid_batches = self._plan(self.valid, seed=0)

    @property
    def model_dim(self) -> int:
        """The width that the paper's learning rate depends on."""
        model = self.recipe.model
        return int(getattr(model, "model_dim", 0) or getattr(model, "hidden_dim", 0) or 512)

    @property
    def num_samples(self) -> int:
        """Pairs in an epoch."""
        return len(self.corpus)

    @property
    def num_examples(self) -> int:
        """Pairs to learn from."""
        return len(self.corpus)

    def begin_epoch(self, epoch: int) -> None:
        """Cut the text anew where the tokenizer draws its segmentations."""
        self.epoch_corpus = resample(
            self.corpus, self.tokenizer, seed=self.config.seed, epoch=epoch
        )

    def batches(self, epoch: int, cursor: int) -> Iterator[tuple[Batch, int]]:
        """The rest of an epoch's batches, each with the cursor after it."""
        plans = self._plan(self.epoch_corpus, seed=self.config.seed)
        for plan in plans.epoch(epoch, cursor):
            yield self._batch(self.epoch_corpus, plan), plan.cursor

    @property
    def metrics(self) -> Mapping[str, int]:
        """What ``training.metric`` may name."""
        of_documents = {"rouge_l": 1} if isinstance(self.recipe.data, DocumentData) else {}
        return {"loss": -1, "bleu": 1, **of_documents}

    def backward(self, model: nn.Module, batch: Batch, *, smoothing: float) -> tuple[Tensor, int]:
        """The loss summed over real target tokens, and how many there are."""
        states, labels, auxiliary = states_and_labels(model, batch)
        loss = backward_in_chunks(
            states,
            labels,
            model.project,  # type: ignore[arg-type]
            auxiliary=auxiliary,
            smoothing=smoothing,
        )
        return loss, len(labels)

    @torch.no_grad()
    def validate(self, model: nn.Module) -> dict[str, float]:
        """Cross-entropy per target token in nats, perplexity, and BLEU of greedy outputs."""
        total, tokens = 0.0, 0
        for plan in self.valid_batches.epoch(0):
            states, labels, _ = states_and_labels(model, self._batch(self.valid, plan))
            for start in range(0, len(labels), CHUNK_ROWS):
                rows = slice(start, start + CHUNK_ROWS)
                logits = model.project(states[rows])  # type: ignore[operator]
                total += float(smoothed_cross_entropy(logits, labels[rows]))
            tokens += len(labels)
        loss = total / tokens
        figures = {"loss": loss, "perplexity": float(torch.tensor(loss).exp())}
        pairs = self.valid_pairs[: self.config.validation_pairs]
        if pairs:
            outputs = self._translate(model, [pair.source for pair in pairs])
            references = [pair.references for pair in pairs]
            language = self.recipe.data.target_language
            figures["bleu"] = bleu(outputs, references, target_language=language).value
            if "rouge_l" in self.metrics:
                figures["rouge_l"] = rouge_l(outputs, references).value
        return figures

    def samples(self, model: nn.Module) -> list[str]:
        """A few validation sentences, what the model makes of them, and the reference."""
        step = max(1, len(self.valid_pairs) // _SAMPLES)
        pairs = self.valid_pairs[::step][:_SAMPLES]
        outputs = self._translate(model, [pair.source for pair in pairs])
        return [
            f"{pair.source} → {output}  (reference: {pair.target})"
            for pair, output in zip(pairs, outputs, strict=True)
        ]

    def _translate(self, model: nn.Module, sources: Sequence[str]) -> list[str]:
        predictor = Predictor(model, self.tokenizer, self.recipe)
        found = predictor.translate(sources, decoding=self.recipe.decoding.plain())
        return [translations[0].text for translations in found]

    def _corpora(
        self,
        train: Sequence[Pair],
        valid: Sequence[Pair],
        too_long: BadLines | None,
        encoded: EncodedText,
    ) -> Corpora:
        def encode(too_long: BadLines | None) -> Corpora:
            return {
                "train": self._encode(train, too_long),
                "valid": self._encode(valid, too_long),
            }

        if self.tokenizer.is_sampling:  # each epoch is encoded anew, from text
            return encode(too_long)
        data = self.recipe.data
        made_of = {
            "train": _checksum(train),
            "valid": _checksum(valid),
            "max_length": data.max_length,
            "on_long": data.on_long,
            "documents": isinstance(data, DocumentData),
        }
        return encoded.corpora(made_of, encode, too_long)

    def _encode(self, pairs: Sequence[Pair], too_long: BadLines | None) -> Corpus:
        data = self.recipe.data
        if isinstance(data, DocumentData):
            pairs = [self._cut(pair, data.max_length, too_long) for pair in pairs]
        return encode_corpus(
            pairs,
            self.tokenizer,
            max_length=data.max_length,
            on_long=data.on_long,
            too_long=too_long,
        )

    def _cut(self, pair: Pair, longest: int, too_long: BadLines | None) -> Pair:
        source = cut_to(pair.source, self.tokenizer.source, longest)
        if len(source) < len(pair.source) and too_long is not None:
            too_long.add("document cut", f"{pair.where}: cut to {longest} tokens.")
        return replace(pair, source=source)

    def _batch(self, corpus: Corpus, plan: BatchPlan) -> Batch:
        return collate(corpus, plan.indices, source_end=self.recipe.data.source_end)

    def _plan(self, corpus: Corpus, *, seed: int) -> Batches:
        return Batches(
            corpus.source.lengths + int(self.recipe.data.source_end),
            corpus.target.lengths + 1,
            max_tokens=self.config.batch_tokens,
            seed=seed,
        )

    def build_model(self) -> nn.Module:
        """The recipe's model with new weights."""
        model: nn.Module = build_model(self.recipe, self.tokenizer)
        return model

    def predictor(self, model: nn.Module) -> Predictor:
        """The model in use."""
        return Predictor(model, self.tokenizer, self.recipe)

    def facts(self) -> list[str]:
        """What was learned from the text, in lines for people."""
        tokenizer = self.tokenizer
        sizes = (
            f"{tokenizer.source.vocab_size:,} shared"
            if tokenizer.is_shared
            else f"{tokenizer.source.vocab_size:,} and {tokenizer.target.vocab_size:,}"
        )
        facts = [f"{self.recipe.tokenizer.type} tokenizer: {sizes} pieces"]
        languages = (self.recipe.data.source_language, self.recipe.data.target_language)
        if any(languages):
            facts.insert(0, " → ".join(language or "?" for language in languages))
        if isinstance(self.recipe.data, DocumentData):
            facts.append(told_reading(self.recipe.data))
        return facts


def _checksum(pairs: Sequence[Pair]) -> str:
    """What tells these sources and targets from others; references are not encoded."""
    digest = hashlib.sha256()
    for pair in pairs:
        lengths = f"{len(pair.source)} {len(pair.target)} "
        digest.update((lengths + pair.source + pair.target).encode())
    return digest.hexdigest()


def _guessed_languages(pairs: Sequence[Pair]) -> dict[str, str | None]:
    return {
        "source_language": guess_language([pair.source for pair in pairs]),
        "target_language": guess_language([pair.target for pair in pairs]),
    }


def _with_languages(recipe: Recipe, languages: Mapping[str, Any]) -> Recipe:
    """The recipe with these languages where it names none: they decide how outputs are scored."""
    data = recipe.data
    return replace(
        recipe,
        data=replace(
            data,
            source_language=data.source_language or languages.get("source_language"),
            target_language=data.target_language or languages.get("target_language"),
        ),
    )
