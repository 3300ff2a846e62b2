"""Training a translator: what the loop needs of the translation task, and the run from start to end."""  # noqa: E501

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.config import as_table, build
from regard.errors import RunError
from regard.inference import Predictor, Run, is_run
from regard.metrics import bleu
from regard.tasks import Recipe, recipe_from_table
from regard.tasks.recipe import with_training
from regard.tasks.translation import build_model, learn_tokenizer, read_training, states_and_labels
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
from regard.training.loss import CHUNK_ROWS, backward_in_chunks, smoothed_cross_entropy
from regard.training.progress import ConsoleReporter, Reporter
from regard.training.settings import TrainingConfig
from regard.training.trainer import Trainer

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
    """

    def __init__(
        self,
        recipe: Recipe,
        tokenizer: PairTokenizer,
        train: Sequence[Pair],
        valid: Sequence[Pair],
        config: TrainingConfig,
        too_long: BadLines | None = None,
    ) -> None:
        self.recipe, self.tokenizer, self.config = recipe, tokenizer, config
        self.corpus = self._encode(train, too_long)
        self.epoch_corpus = self.corpus
        self.valid_pairs = list(valid)
        self.valid = self._encode(valid, too_long)
        self.valid_batches = self._plan(self.valid, seed=0)

    @property
    def model_dim(self) -> int:
        """The width that the paper's learning rate depends on."""
        model = self.recipe.model
        return int(getattr(model, "model_dim", 0) or model.hidden_dim)

    @property
    def num_samples(self) -> int:
        """Pairs in an epoch."""
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
        return {"loss": -1, "bleu": 1}

    def backward(self, model: nn.Module, batch: Batch) -> tuple[Tensor, int]:
        """The loss summed over real target tokens, and how many there are."""
        states, labels, auxiliary = states_and_labels(model, batch)
        loss = backward_in_chunks(
            states,
            labels,
            model.project,  # type: ignore[arg-type]
            auxiliary=auxiliary,
            smoothing=self.config.label_smoothing,
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
        return [found[0].text for found in predictor.translate(sources, beam_size=1)]

    def _encode(self, pairs: Sequence[Pair], too_long: BadLines | None) -> Corpus:
        data = self.recipe.data
        return encode_corpus(
            pairs,
            self.tokenizer,
            max_length=data.max_length,
            on_long=data.on_long,
            too_long=too_long,
        )

    def _batch(self, corpus: Corpus, plan: BatchPlan) -> Batch:
        return collate(corpus, plan.indices, source_end=self.recipe.data.source_end)

    def _plan(self, corpus: Corpus, *, seed: int) -> Batches:
        return Batches(
            corpus.source.lengths + int(self.recipe.data.source_end),
            corpus.target.lengths + 1,
            max_tokens=self.config.batch_tokens,
            seed=seed,
        )


@dataclass(frozen=True)
class Trained:
    """What a training leaves.

    Attributes:
        path: The run folder.
        predictor: The trained model in use.
        summary: Updates, tokens, seconds, validation figures.
    """

    path: Path
    predictor: Predictor
    summary: dict[str, Any]


def train(recipe: Recipe, path: str | Path, *, reporter: Reporter | None = None) -> Trained:
    """Train a translator into a run folder, or go on with one that was interrupted.

    Args:
        recipe: What to train on and how. Where the folder holds a run already, it must be the
            recipe of that run.
        path: The run folder, made if it does not exist.
        reporter: Who is told; None prints to the console.

    Raises:
        DataError: The text cannot be used.
        SettingError: A setting is unknown or out of range, or the vocabulary does not fit.
        RunError: The folder holds another recipe's run, is damaged, or is in use.
        TrainingError: The loss was not finite.
        Interrupted: Asked to stop; the same call goes on.
    """
    reporter = reporter or ConsoleReporter()
    path = Path(path)
    config = build(TrainingConfig, recipe.training, where="training")
    recipe = with_training(recipe, as_table(config))
    bad_lines = BadLines()
    too_long = BadLines()
    with ExitStack() as stack:
        run: Run | None = None
        if is_run(path):
            run = stack.enter_context(Run.open_for_training(path))
            recipe = _with_languages(recipe, run.recipe.get("data", {}))
            _check_same_recipe(run, recipe)
        pairs, valid = read_training(recipe, bad_lines=bad_lines)
        text = _fingerprint([*pairs, *valid])
        if run is None:
            recipe = _with_languages(recipe, _guessed_languages(pairs))
        elif run.text not in (None, text):
            raise RunError(
                f"{path} must go on with the text it began with; the sentence pairs have changed "
                "since. Restore them, or train the new ones into another folder: --run FOLDER."
            )
        is_learned = run is not None and run.has_tokenizer
        tokenizer = (
            load_pair_tokenizer(run.tokenizer_folder)
            if run is not None and is_learned
            else learn_tokenizer(recipe, pairs)
        )
        task = TranslationTraining(recipe, tokenizer, pairs, valid, config, too_long)
        torch.manual_seed(config.seed)
        model = build_model(recipe, tokenizer)
        if run is None:
            # Last, so that nothing is left behind by text or settings that cannot be used.
            run = stack.enter_context(Run.create(path, recipe.table(), recipe.task, text=text))
        if not is_learned:
            with run.new_tokenizer_folder() as folder:
                tokenizer.save(folder)
        reporter.started(_facts(recipe, task, model, bad_lines, too_long))
        summary = Trainer(run, model, task, config, reporter).fit()
        model.load_state_dict(run.load_model())
        model.eval()
    return Trained(path, Predictor(model, tokenizer, recipe), summary)


def resume(path: str | Path, *, reporter: Reporter | None = None) -> Trained:
    """Go on with the training of a run folder, by the recipe that it keeps."""
    return train(recipe_from_table(Run.open(path).recipe), path, reporter=reporter)


def _facts(
    recipe: Recipe,
    task: TranslationTraining,
    model: nn.Module,
    bad_lines: BadLines,
    too_long: BadLines,
) -> list[str]:
    """What is about to be trained, in lines for people."""
    parameters = sum(p.numel() for p in model.parameters())
    tokenizer = task.tokenizer
    sizes = (
        f"{tokenizer.source.vocab_size:,} shared"
        if tokenizer.is_shared
        else f"{tokenizer.source.vocab_size:,} and {tokenizer.target.vocab_size:,}"
    )
    facts = [
        f"{len(task.corpus):,} pairs to train on, {len(task.valid):,} to validate on",
        f"{recipe.tokenizer.type} tokenizer: {sizes} pieces",
        f"{recipe.model_type} with {parameters:,} parameters",
    ]
    languages = (recipe.data.source_language, recipe.data.target_language)
    if any(languages):
        facts.insert(1, " → ".join(language or "?" for language in languages))
    for counted, what in ((bad_lines, "lines that cannot be read"), (too_long, "pairs too long")):
        if counted.total:
            facts.append(f"left out {counted.total:,} {what}")
    return facts


def _fingerprint(pairs: Sequence[Pair]) -> str:
    """What tells these pairs from others: a checksum of their texts, in their order."""
    digest = hashlib.sha256()
    for pair in pairs:
        digest.update("\0".join((pair.source, *pair.references, "")).encode())
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


def _check_same_recipe(run: Run, recipe: Recipe) -> None:
    table = recipe.table()
    before_it = recipe_from_table(run.recipe)
    training = as_table(build(TrainingConfig, before_it.training, where="training"))
    kept = with_training(before_it, training).table()
    for section, settings in table.items():
        before = kept.get(section)
        if before == settings:
            continue
        if not isinstance(settings, dict) or not isinstance(before, dict):
            name, old, new = section, before, settings
        else:
            key = next(
                k for k in settings.keys() | before.keys() if settings.get(k) != before.get(k)
            )
            name, old, new = f"{section}.{key}", before.get(key), settings.get(key)
        raise RunError(
            f"{run.path} holds a run with other settings: {name} was {old!r}, now {new!r}. "
            "Choose another folder, or the settings of before."
        )
