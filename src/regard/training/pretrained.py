"""Beginning with what was learned before: a tokenizer, and the weights of what reads text.

Of a run, or of a checkpoint in Hugging Face's layout. Where a text is to be written, the encoder
has the options and the weights of a reader, and what writes begins anew: Liu & Lapata (2019),
https://arxiv.org/abs/1908.08345, section 3.2.
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
from regard.interop.checkpoints.layout import CONFIG
from regard.interop.checkpoints.models import WEIGHTS, PretrainedModel, load_checkpoint
from regard.models import READERS, Decoder, Encoder, EncoderConfig
from regard.runs import Run, is_run
from regard.tasks import TASKS, Recipe
from regard.tasks.settings.recipe import RecipeTable
from regard.text import TokenizerConfig
from regard.text.tokenizers.checkpoint_pieces import borrow_pieces, mask_of

# What a checkpoint of each layout was trained to do, and the model of ours that it is.
_TASKS = {
    "bert": ("masked_language_modelling", "transformer"),
    "roberta": ("masked_language_modelling", "transformer"),
    "gpt2": ("language_modelling", "decoder"),
}
# What a recipe says that is of no use without it.
_PLACEHOLDER = "?"
# The task whose outputs are written by a decoder of its own, on an encoder that has read.
_WRITING, _ENCODER = "generation", READERS["transformer"]
# What a run keeps of running text, and settings that may differ from those of pretraining.
_TOKENIZER = "text"
_FREE = {"dropout", "attention_dropout"}
# What pairs of texts have and texts by themselves have not.
_FEATURES = "features.weight"
# What tells texts beside each other apart, one row each.
_SEGMENTS = "segments"
# Options that an encoder has in a reader and in a writer.
_OF_BOTH = (
    *("model_dim", "num_heads", "ffn_dim", "dropout", "norm", "norm_kind", "norm_eps"),
    *("activation", "positions", "max_length"),
)
# What begins the names of an encoder's parameters, in a reader and in a writer.
_NAMES = {
    "embedding.": "source_embedding.",
    "embedding_norm.": "source_norm.",
    "layers.": "encoder.",
    "norm.": "encoder_norm.",
    "positions.": "positions.",
}


def _reader(checkpoint: PretrainedModel) -> Encoder | Decoder:
    """The part that reads text."""
    model: nn.Module = checkpoint.model
    return model if isinstance(model, Decoder) else encoder_of(model)


@dataclass(frozen=True)
class Pretrained:
    """The run or the checkpoint of others that a training begins with, by its absolute path."""

    path: Path

    def complete(self, recipe: Recipe, run: Run | None = None) -> Recipe:
        """The recipe with tokenizer and model as in pretraining where it leaves them open."""
        if recipe.task != _WRITING and TASKS[recipe.task].is_written:
            raise SettingError(
                f"training.pretrained must be left out for {recipe.task}; got {str(self.path)!r}."
            )
        before = run.recipe if run is not None else self._reader_of(recipe.task)
        kind, there = TASKS[recipe.task], TASKS[before["task"]]
        settings = _set_by_recipe(recipe)
        type_before = str(before["model"]["type"])
        self._check("model", before["model"], _chosen(settings["model"], {"type"}))
        if kind.models.get(type_before) != there.models.get(type_before):
            raise SettingError(
                f"training.pretrained must name a run whose model reads text for {recipe.task}; "
                f"got one of {before['task']} with model.type = {type_before!r} in {self.path}. "
                f"A model here is one of {', '.join(sorted(kind.models))}."
            )
        config = kind.models[type_before].config
        own = {name: value for name, value in settings["model"].items() if name != "type"}
        inherited = {name: value for name, value in before["model"].items() if name != "type"}
        self._check("model", inherited, _chosen(own, inherited.keys() - _FREE))
        model = build(config, {**inherited, **own}, where="model")
        recipe = replace(recipe, model_type=type_before, model=model)
        recipe = replace(recipe, tokenizer=self._tokenizer(recipe, before, settings["tokenizer"]))
        return replace(recipe, training={**recipe.training, "pretrained": str(self.path)})

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
        known, size = self._weights(Encoder if writes else reader)
        if writes:
            known = _as_encoder(known)
        for name, tensor in _only(model, reader).state_dict().items():
            if name not in known and (writes or name == _FEATURES):
                continue
            source, target = known[name], tensor
            if name.endswith("embedding.weight") and len(source) != len(target):
                source, target = source[:size], target[:size]
            if source.shape != target.shape:
                raise SettingError(
                    f"training.pretrained must name a run of the same vocabulary; got {self.path}, "
                    f"whose {name} is {list(source.shape)}, not {list(target.shape)}."
                )
            target.copy_(source)
        pooler = _pooler(model)
        if pooler is not None and (learned := self._pooler()):
            pooler.load_state_dict(learned)

    def _reader_of(self, task: str) -> RecipeTable:
        """The recipe of what to begin with, as one of a task; a writer's encoder is a reader."""
        before = self._recipe()
        type_before = str(before["model"]["type"])
        if task != _WRITING or TASKS[before["task"]].models.get(type_before) != _ENCODER:
            return before
        return _as_writer(before)

    def _pooler(self) -> dict[str, Tensor]:
        """The weights of the pooler, if it has one that learned."""
        if is_run(self.path):
            before = self._predictor
            learned = getattr(before.task.recipe.data, "next_sentence", True)
            pooler = _pooler(before.model) if learned else None
        else:
            pooler = getattr(self._checkpoint.model, "pooler", None)
            if any(name.startswith("pooler.") for name in self._checkpoint.absent):
                pooler = None
        return {} if pooler is None else pooler.state_dict()

    def _weights(self, reader: type[nn.Module]) -> tuple[dict[str, Tensor], int | None]:
        """The weights of the reader, and how many ids its tokenizer has, if it has one."""
        if not is_run(self.path):
            return self._checkpoint_weights()
        before = self._predictor
        tokenizer = getattr(before.task, "tokenizer", None)
        size = None if tokenizer is None else tokenizer.vocab_size
        known = _only(before.model, reader).state_dict()
        if _SEGMENTS in known and not _distinguishes_segments(before.task.recipe):
            known[_SEGMENTS] = known[_SEGMENTS][:1].expand_as(known[_SEGMENTS])
        return known, size

    @torch.no_grad()
    def _checkpoint_weights(self) -> tuple[dict[str, Tensor], int | None]:
        """Those of a checkpoint; embeddings in the order of our ids, then of the mask."""
        reader, pieces = _reader(self._checkpoint), borrow_pieces(self.path)
        order, mask = list(pieces.theirs), mask_of(self.path)
        order += [] if mask is None else [mask]
        table = reader.embedding.weight
        weights = {
            name: tensor[order] if tensor.data_ptr() == table.data_ptr() else tensor
            for name, tensor in reader.state_dict().items()
        }
        return weights, pieces.vocab_size

    def _tokenizer(
        self, recipe: Recipe, before: RecipeTable, changes: Mapping[str, JsonValue]
    ) -> TokenizerConfig | None:
        settings = TASKS[recipe.task].tokenizer
        if settings is None or "tokenizer" not in before:
            if recipe.task != before["task"] or changes:
                raise SettingError(
                    f"training.pretrained must name a run whose text is cut as {recipe.task} cuts "
                    f"it; got one of {before['task']} in {self.path}. Begin with one of "
                    f"{recipe.task}."
                )
            tokenizer: TokenizerConfig | None = recipe.tokenizer
            return tokenizer
        made = build(settings, {**before["tokenizer"], **changes}, where="tokenizer")
        self._check("tokenizer", before["tokenizer"], _chosen(as_table(made), changes.keys()))
        return made

    def _recipe(self) -> RecipeTable:
        """That of what to begin with; its tokenizer is the saved one, and says how texts begin."""
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
        if not any((self.path / name).is_file() for name in (CONFIG, WEIGHTS)):
            raise RunError(
                f"training.pretrained must name the folder of a run; got {str(self.path)!r}, which "
                "holds none, and no checkpoint with config.json and model.safetensors. "
                "Train one first: regard train masked-language-model-words TEXT."
            )
        layout = self._checkpoint.layout
        if layout not in _TASKS:
            raise SettingError(
                f"training.pretrained must name a checkpoint of {', '.join(_TASKS)}; got one of "
                f"{layout} in {self.path}, which regard.interop.load_checkpoint reads."
            )
        task, model_type = _TASKS[layout]
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

    def _run(self) -> RecipeTable:
        run = Run.open(self.path)
        if run.task not in TASKS or TASKS[run.task].is_written:
            raise RunError(
                f"training.pretrained must name the run of one reader; got one of {run.task} in "
                f"{self.path}. That of a masked language model has one."
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
                    f"{section}.{name} must be {before!r}, as in {self.path}, which "
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
            "masked_language_modelling, or a folder with BERT or RoBERTa: "
            "--set training.pretrained=FOLDER. With none instead, everything is learned anew."
        )
    pretrained = Pretrained(Path(os.path.realpath(recipe.folder / str(name))))
    return pretrained.complete(recipe, run), pretrained


def _chosen(table: Mapping[str, JsonValue], names: Collection[str]) -> dict[str, JsonValue]:
    return {name: value for name, value in table.items() if name in names}


def _set_by_recipe(recipe: Recipe) -> Mapping[str, Mapping[str, JsonValue]]:
    """Settings of tokenizer and model in a recipe, as they were given if that is known."""
    if recipe.given is not None:
        return recipe.given
    table = recipe.table()
    return {"tokenizer": table.get("tokenizer", {}), "model": table["model"]}


def _distinguishes_segments(recipe: Recipe) -> bool:
    """Whether training met texts beside each other."""
    return bool(getattr(recipe.data, "next_sentence", TASKS[recipe.task].beside))


def _pooler(model: nn.Module) -> nn.Linear | None:
    """Pooler of the first state, before a last layer."""
    poolers = (getattr(part, "pooler", None) for part in model.modules())
    return next((each for each in poolers if isinstance(each, nn.Linear)), None)


def _only(model: nn.Module, kind: type[nn.Module]) -> nn.Module:
    """The part of a model that reads the text."""
    parts = [part for part in model.modules() if isinstance(part, kind)]
    if len(parts) != 1:
        raise SettingError(
            f"training.pretrained must be left out for a model with {len(parts)} readers; it "
            "fills the one that reads the text."
        )
    return parts[0]


def _as_writer(recipe: RecipeTable) -> RecipeTable:
    """The recipe of a reader as that of a writer whose encoder it is."""
    table = {name: value for name, value in recipe["model"].items() if name != "type"}
    config = build(EncoderConfig, table, where="model")
    if config.parts != "none":
        raise SettingError(
            "training.pretrained must name a run that reads words as they are; got one with "
            f"model.parts = {config.parts!r}."
        )
    begins = build(TokenizerConfig, recipe["tokenizer"], where="tokenizer").begins
    model: dict[str, JsonValue] = {name: getattr(config, name) for name in _OF_BOTH} | {
        "type": "transformer",
        "num_encoder_layers": config.num_layers,
        "tie_embeddings": "target",
        "scale_embeddings": False,
        "embedding_norm": True,
        "own_positions": config.positions == "learned",
        "source_begin": begins,
    }
    return {"task": "generation", "model": model, "tokenizer": recipe["tokenizer"]}


def _as_encoder(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a reader by the names that they have in a writer."""
    # Every text is the first of its row, so that its segment is part of its tokens' embeddings. The
    # target's begin as the source's.
    renamed = {
        ours + name.removeprefix(theirs): tensor
        for name, tensor in weights.items()
        for theirs, ours in _NAMES.items()
        if name.startswith(theirs)
    }
    renamed["target_embedding.weight"] = weights["embedding.weight"]
    if "segments" in weights:
        renamed["source_embedding.weight"] = weights["embedding.weight"] + weights["segments"][0]
    return renamed
