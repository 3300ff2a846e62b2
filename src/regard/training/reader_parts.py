"""Parts of models that read text, and a reader as the encoder of a writer."""

from collections.abc import Mapping

from torch import Tensor, nn

from regard.config import JsonValue, build
from regard.errors import SettingError
from regard.models import EncoderConfig
from regard.tasks.settings.recipe import RecipeTable
from regard.text import TokenizerConfig

# Options that an encoder has in a reader and in a writer.
_OF_BOTH = (
    *("model_dim", "num_heads", "ffn_dim", "dropout", "norm", "norm_kind", "norm_eps"),
    *("activation", "positions", "max_length"),
)


# Prefixes of an encoder's parameters, in a reader and in a writer.
_NAMES = {
    "embedding.": "source_embedding.",
    "embedding_norm.": "source_norm.",
    "layers.": "encoder.",
    "norm.": "encoder_norm.",
    "positions.": "positions.",
}


def is_table(name: str) -> bool:
    """Whether a parameter of a reader has a row for each id."""
    return name.endswith("embedding.weight") or name == "output.weight"


def pooler_of(model: nn.Module) -> nn.Linear | None:
    """Pooler of the first state, before a last layer."""
    poolers = (getattr(part, "pooler", None) for part in model.modules())
    return next((pooler for pooler in poolers if isinstance(pooler, nn.Linear)), None)


def reader_in(model: nn.Module, kind: type[nn.Module]) -> nn.Module:
    """The part of a model that reads the text."""
    parts = [part for part in model.modules() if isinstance(part, kind)]
    if len(parts) != 1:
        raise SettingError(
            f"training.pretrained must be left out for a model with {len(parts)} readers; it "
            "fills the one that reads the text."
        )
    return parts[0]


def as_writer(recipe: RecipeTable) -> RecipeTable:
    """The recipe of a reader as that of a writer whose encoder it is."""
    table = {name: value for name, value in recipe["model"].items() if name != "type"}
    config = build(EncoderConfig, table, where="model")
    for name, plain in (("parts", "none"), ("embedding_dim", None)):
        if (got := getattr(config, name)) != plain:
            raise SettingError(
                "training.pretrained must name a model whose states are as wide as its embeddings, "
                f"and which reads words alone, for generation; got model.{name} = {got!r}."
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


def as_encoder(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
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
