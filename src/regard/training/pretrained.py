"""Initialisation from a pretrained model: a tokenizer, and an encoder's or a decoder's weights.

Of a run, or of a checkpoint in Hugging Face's layout, in a folder or on the Hub. Where a text is to
be written, the encoder has the options and the weights of a reader, and the decoder begins anew:
Liu & Lapata (2019), https://arxiv.org/abs/1908.08345, section 3.2.
"""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor, nn

from regard.config import JsonValue, as_table, build
from regard.devices.kinds import ON_CPU
from regard.errors import DataError, RunError, SettingError
from regard.inference import Predictor
from regard.interop.checkpoints.encoders import encoder_of
from regard.interop.checkpoints.hub import fetch, is_hub_name
from regard.interop.checkpoints.layout import CONFIG
from regard.interop.checkpoints.models import WEIGHTS, PretrainedModel, load_checkpoint, read_config
from regard.models import READERS, Decoder, Encoder, MaskedLanguageModel
from regard.runs import Run, is_run
from regard.tasks import TASKS, Recipe
from regard.tasks.settings.recipe import RecipeTable
from regard.text import TokenizerConfig
from regard.text.tokenizers.checkpoint_pieces import borrow_pieces, mask_of
from regard.training.fine_tuning import fine_tuning
from regard.training.reader_parts import as_encoder, as_writer, is_table, pooler_of, reader_in
from regard.training.settings import TrainingConfig

# The pretraining task of each layout of checkpoints, and our model for it.
_TASKS = {
    **dict.fromkeys(
        ("albert", "bert", "distilbert", "electra", "roberta"),
        ("masked_language_modelling", "transformer"),
    ),
    **dict.fromkeys(
        ("gpt2", "gpt_neox", "llama", "mistral", "qwen2"), ("language_modelling", "decoder")
    ),
}
# The value in a recipe that needs a pretrained model.
_PLACEHOLDER = "?"
# The task whose outputs are written by a decoder of its own, on an encoder that has read.
_WRITING, _ENCODER = "generation", READERS["transformer"]
# The tokenizer in a run of running text, and settings that may differ from those of pretraining.
_TOKENIZER = "text"
_FREE = {"dropout", "attention_dropout"}
# Weights that models of pairs of texts have, and of single texts have not.
_FEATURES = "features.weight"
# Parameters of the head that predicts masked words, with a bias for each id.
_WORD_HEAD = {"transform.weight", "transform.bias", "norm.weight", "norm.bias", "bias"}
# The table of segments, a row for each text of a pair.
_SEGMENTS = "segments"


def _reader(checkpoint: PretrainedModel) -> Encoder | Decoder:
    """The part that reads text."""
    model: nn.Module = checkpoint.model
    return model if isinstance(model, Decoder) else encoder_of(model)


@dataclass(frozen=True)
class Pretrained:
    """The run or the checkpoint of others that a training begins with."""

    name: str
    revision: str | None = None

    @cached_property
    def path(self) -> Path:
        """The folder; one of the Hub is fetched when it is first needed."""
        if is_hub_name(self.name):
            return fetch(self.name, revision=self.revision)
        return Path(self.name)

    @property
    def commit(self) -> str | None:
        """The commit of a checkpoint of the Hub; None of a folder."""
        return self.path.name if is_hub_name(self.name) else None

    @property
    def task(self) -> str:
        """The task that it was trained for, without a look at its weights."""
        if is_run(self.path):
            return Run.open(self.path).task
        return _TASKS[self._layout()][0]

    def complete(self, recipe: Recipe, run: Run | None = None) -> Recipe:
        """The recipe, where it leaves them open with tokenizer and model as in pretraining."""
        # And with the settings of training, and dropout, that fit such an encoder.
        if recipe.task != _WRITING and TASKS[recipe.task].is_written:
            raise SettingError(
                f"training.pretrained must be left out for {recipe.task}; got {self.name!r}. "
                "Translators begin anew; summaries and answers are written from a document by "
                "generation-pretrained."
            )
        before = run.recipe if run is not None else self._reader_of(recipe.task)
        kind, there = TASKS[recipe.task], TASKS[before["task"]]
        settings = _set_by_recipe(recipe)
        type_before = str(before["model"]["type"])
        if kind.models.get(type_before) != there.models.get(type_before):
            continues = recipe.task == "language_modelling"
            named = "a decoder, such as a GPT-2" if continues else "an encoder, such as a BERT"
            raise SettingError(
                f"training.pretrained must name a run whose model reads text for {recipe.task}; "
                f"got one of {before['task']} with model.type = {type_before!r} in {self.name}. "
                f"Name {named}."
            )
        self._check("model", before["model"], _chosen(settings["model"], {"type"}))
        config = kind.models[type_before].config
        set_here = {name: value for name, value in settings["model"].items() if name != "type"}
        inherited = {name: value for name, value in before["model"].items() if name != "type"}
        self._check("model", inherited, _chosen(set_here, inherited.keys() - _FREE))
        fitting = fine_tuning(recipe.task, inherited.get("model_dim"))
        model = build(config, {**inherited, **fitting["model"], **set_here}, where="model")
        head = recipe.head
        if head is not None:
            table = {**as_table(head), **fitting["head"], **settings.get("head", {})}
            head = build(type(head), table, where="head")
        chosen = fitting["training"]
        if run is not None:  # of before a setting, it goes on without it
            chosen = _chosen(chosen, run.recipe["training"])
        return replace(
            recipe,
            model_type=type_before,
            model=model,
            head=head,
            tokenizer=self._tokenizer(recipe, before, settings["tokenizer"]),
            training={**chosen, **recipe.training, "pretrained": self.name},
        )

    def describe(self, recipe: Recipe, config: TrainingConfig) -> str:
        """Line that describes the pretrained encoder and the settings of its fine-tuning."""
        name = self.name if is_hub_name(self.name) else Path(self.name).name
        width = getattr(recipe.model, "model_dim", None)
        settings = {
            "learning rate": config.learning_rate,
            "of the encoder": config.encoder_rate,
            "weight decay": config.weight_decay,
            "dropout": getattr(recipe.model, "dropout", None),
            "dropout of the head": getattr(recipe.head, "dropout", None),
            "label smoothing": config.label_smoothing,
        }
        values = (
            f"{setting} {value:g}" for setting, value in settings.items() if value is not None
        )
        return f"begins with {name}, {width} wide: {', '.join(values)}"

    def vocabularies(self, recipe: Recipe) -> Path | None:
        """Folder of all vocabularies, for a task without a tokenizer apart from them; else None."""
        return None if recipe.tokenizer else Run.open(self.path).tokenizer_folder

    @torch.no_grad()
    def fill(self, model: nn.Module, recipe: Recipe, run: Run | None = None) -> None:
        """Copy the weights of the reader into that of a new model; nothing into a resumed one."""
        # Of the embeddings these are the rows of the tokenizer's ids; the task's other ones, such
        # as that of the mask, stay new. So do those of features of tokens, where pretraining had
        # none. Segments that pretraining never distinguished begin alike.
        if run is not None and run.newest_checkpoint() is not None:
            return
        reader = TASKS[recipe.task].models[recipe.model_type].load()
        writes = recipe.task == _WRITING
        weights, size = self._weights(Encoder if writes else reader)
        if writes:
            weights = as_encoder(weights)
        for name, tensor in reader_in(model, reader).state_dict().items():
            if name not in weights and (writes or name == _FEATURES):
                continue
            source, target = weights[name], tensor
            if is_table(name) and len(source) != len(target):
                source, target = source[:size], target[:size]
            if source.shape != target.shape:
                raise SettingError(
                    f"training.pretrained must name a run of the same vocabulary; got {self.name}, "
                    f"whose {name} is {list(source.shape)}, not {list(target.shape)}."
                )
            target.copy_(source)
        pooler = pooler_of(model)
        if pooler is not None and (learned := self.pooler_of()):
            pooler.load_state_dict(learned)
        if isinstance(model, MaskedLanguageModel):
            for name, tensor in self._word_head().items():
                model.get_parameter(name)[: len(tensor)] = tensor

    def _reader_of(self, task: str) -> RecipeTable:
        """The recipe of the pretrained run, as one of a task; a writer's encoder is a reader."""
        before = self._recipe()
        type_before = str(before["model"]["type"])
        if task != _WRITING or TASKS[before["task"]].models.get(type_before) != _ENCODER:
            return before
        return as_writer(before)

    def pooler_of(self) -> dict[str, Tensor]:
        """The weights of the pooler, if it has one that learned."""
        if is_run(self.path):
            before = self._predictor
            learned = getattr(before.task.recipe.data, "next_sentence", True)
            pooler = pooler_of(before.model) if learned else None
        else:
            pooler = getattr(self._checkpoint.model, "pooler", None)
            if any(name.startswith("pooler.") for name in self._checkpoint.absent):
                pooler = None
        return {} if pooler is None else pooler.state_dict()

    def _word_head(self) -> dict[str, Tensor]:
        """The weights that predict masked words from states, if they were learned."""
        of_run = is_run(self.path)
        model = self._predictor.model if of_run else self._checkpoint.model
        is_new = not of_run and _WORD_HEAD & {*self._checkpoint.absent}
        if not isinstance(model, MaskedLanguageModel) or is_new:
            return {}
        head: dict[str, Tensor] = {name: model.get_parameter(name) for name in _WORD_HEAD}
        return head if of_run else {**head, "bias": head["bias"][self._order]}

    def _weights(self, reader: type[nn.Module]) -> tuple[dict[str, Tensor], int | None]:
        """The weights of the reader, and how many ids its tokenizer has, if it has one."""
        if not is_run(self.path):
            return self._checkpoint_weights()
        before = self._predictor
        tokenizer = getattr(before.task, "tokenizer", None)
        size = None if tokenizer is None else tokenizer.vocab_size
        weights = reader_in(before.model, reader).state_dict()
        recipe = before.task.recipe
        has_met_pairs = getattr(recipe.data, "next_sentence", TASKS[recipe.task].beside)
        if _SEGMENTS in weights and not has_met_pairs:
            weights[_SEGMENTS] = weights[_SEGMENTS][:1].expand_as(weights[_SEGMENTS])
        return weights, size

    @torch.no_grad()
    def _checkpoint_weights(self) -> tuple[dict[str, Tensor], int | None]:
        """The weights of a checkpoint; tables in the order of our ids, then of the mask."""
        weights = {
            name: tensor[self._order] if is_table(name) else tensor
            for name, tensor in _reader(self._checkpoint).state_dict().items()
        }
        return weights, borrow_pieces(self.path).vocab_size

    @cached_property
    def _order(self) -> list[int]:
        """The checkpoint's id of each of ours, then that of the mask."""
        mask = mask_of(self.path)
        return [*borrow_pieces(self.path).theirs, *([] if mask is None else [mask])]

    def _tokenizer(
        self, recipe: Recipe, before: RecipeTable, changes: Mapping[str, JsonValue]
    ) -> TokenizerConfig | None:
        settings = TASKS[recipe.task].tokenizer
        if settings is None or "tokenizer" not in before:
            if recipe.task != before["task"] or changes:
                raise SettingError(
                    f"training.pretrained must name a run whose text is cut as {recipe.task} cuts "
                    f"it; got one of {before['task']} in {self.name}. Begin with one of "
                    f"{recipe.task}."
                )
            tokenizer: TokenizerConfig | None = recipe.tokenizer
            return tokenizer
        made = build(settings, {**before["tokenizer"], **changes}, where="tokenizer")
        self._check("tokenizer", before["tokenizer"], _chosen(as_table(made), changes.keys()))
        return made

    def _recipe(self) -> RecipeTable:
        """The recipe of the pretrained run, with the saved tokenizer and the begin of texts."""
        recipe = self._run() if is_run(self.path) else self._checkpoint_recipe()
        if TASKS[recipe["task"]].begins:
            recipe["tokenizer"] = {**recipe["tokenizer"], "begin": True}
        return recipe

    @cached_property
    def _predictor(self) -> Predictor:
        return Predictor.load(self.path, device=ON_CPU)

    @cached_property
    def _checkpoint(self) -> PretrainedModel:
        return load_checkpoint(self.path)

    def _checkpoint_recipe(self) -> RecipeTable:
        """Recipe settings of tokenizer and model that match the checkpoint."""
        task, model_type = _TASKS[self._layout()]
        reader, pieces = _reader(self._checkpoint), borrow_pieces(self.path)
        rows, last = len(reader.embedding.weight), max(pieces.theirs)
        if last >= rows:
            raise DataError(
                f"{self.path} must hold a tokenizer of the model's {rows:,} ids; got one with the "
                f"id {last:,}. Are both of one model?"
            )
        folder = {"type": "checkpoint", "folder": str(self.path)}
        return {
            "task": task,
            "model": {"type": model_type, **as_table(reader.config)},
            "tokenizer": {**folder, "vocab_size": pieces.vocab_size},
        }

    def _layout(self) -> str:
        """The layout of a checkpoint of others, of which something can begin."""
        if not any((self.path / name).is_file() for name in (CONFIG, WEIGHTS)):
            raise RunError(_describe_missing(self.name))
        layout = str(read_config(self.path).get("model_type"))
        if layout not in _TASKS:
            raise SettingError(
                f"training.pretrained must name a checkpoint of {', '.join(_TASKS)}; got one of "
                f"{layout} in {self.name}."
            )
        return layout

    def _run(self) -> RecipeTable:
        run = Run.open(self.path)
        if run.task not in TASKS or TASKS[run.task].is_written:
            raise RunError(
                f"training.pretrained must name the run of one reader; got one of {run.task} in "
                f"{self.name}. That of a masked language model has one."
            )
        recipe = run.recipe.copy()
        if "tokenizer" in recipe:
            folder = str(run.tokenizer_folder / _TOKENIZER)
            recipe["tokenizer"] = {**recipe["tokenizer"], "folder": folder}
        return recipe

    def _check(
        self, section: str, there: Mapping[str, JsonValue], here: Mapping[str, JsonValue]
    ) -> None:
        for name, value in here.items():
            before = there.get(name)
            if value != before:
                raise SettingError(
                    f"{section}.{name} must be {before!r}, as in {self.name}, which "
                    f"training.pretrained names; got {value!r}. Leave {section}.{name} out, or "
                    "begin with another run."
                )


def begin_with(recipe: Recipe, run: Run | None) -> tuple[Recipe, Pretrained | None]:
    """The recipe, complete, and the run that ``training.pretrained`` names; None if none."""
    name = recipe.training.get("pretrained")
    if name is None:
        return recipe, None
    if name == _PLACEHOLDER:
        raise SettingError(
            "training.pretrained must name what training begins with; got nothing. Name a run of "
            "masked_language_modelling, a folder with a checkpoint, or one of the Hugging Face "
            "Hub: --pretrained FOLDER, --pretrained hf:OWNER/NAME."
        )
    pretrained = named_pretrained(str(name), recipe.folder, run)
    return pretrained.complete(recipe, run), pretrained


def named_pretrained(name: str, folder: Path = Path(), run: Run | None = None) -> Pretrained:
    """Resolve a name in a folder; for a run that began with it, at the commit of then."""
    if is_hub_name(name):
        return Pretrained(name, None if run is None else run.card.get("pretrained_commit"))
    return Pretrained(os.path.realpath(folder / name))


def _describe_missing(name: str) -> str:
    """Error for a folder that holds nothing to begin with."""
    path = Path(name)
    if path.is_dir():
        found = "a folder without run.json, and without config.json and model.safetensors"
    else:
        found = "a file" if path.exists() else "no such folder"
    cure = f"Of the Hugging Face Hub: --pretrained hf:{path.name}." * (not path.exists())
    return (
        f"training.pretrained must name a run, or a folder with a checkpoint; got {name!r}, "
        f"{found}. {cure or 'Is it the folder above or below?'}"
    )


def _chosen(table: Mapping[str, JsonValue], names: Collection[str]) -> dict[str, JsonValue]:
    return {name: value for name, value in table.items() if name in names}


def _set_by_recipe(recipe: Recipe) -> Mapping[str, Mapping[str, JsonValue]]:
    """Settings of tokenizer, model and head in a recipe, as they were given if that is known."""
    if recipe.given is not None:
        return recipe.given
    table = recipe.table()
    empty: dict[str, JsonValue] = {}
    return {
        "tokenizer": table.get("tokenizer", empty),
        "model": table["model"],
        "head": table.get("head", empty),
    }
