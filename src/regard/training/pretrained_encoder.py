"""A Transformer that writes, whose encoder is one that learned to read.

Its encoder's options are those of the reader, and its weights; what writes begins anew: Liu &
Lapata (2019), https://arxiv.org/abs/1908.08345, section 3.2.
"""

from collections.abc import Mapping

from torch import Tensor

from regard.config import JsonValue, build
from regard.errors import SettingError
from regard.models import EncoderConfig
from regard.tasks.recipe import RecipeTable
from regard.text import TokenizerConfig

_SAME = (
    *("model_dim", "num_heads", "ffn_dim", "dropout", "norm", "norm_kind", "norm_eps"),
    *("activation", "positions", "max_length"),
)
# What begins the names of an encoder's parameters, there and here.
_NAMES = {
    "embedding.": "source_embedding.",
    "embedding_norm.": "source_norm.",
    "layers.": "encoder.",
    "norm.": "encoder_norm.",
    "positions.": "positions.",
}


def as_writer(recipe: RecipeTable) -> RecipeTable:
    """The recipe of a reader as that of a writer whose encoder it is.

    Raises:
        SettingError: It reads words from their parts.
    """
    table = {name: value for name, value in recipe["model"].items() if name != "type"}
    config = build(EncoderConfig, table, where="model")
    if config.parts != "none":
        raise SettingError(
            "training.pretrained must name a run that reads words as they are; got one with "
            f"model.parts = {config.parts!r}."
        )
    begins = build(TokenizerConfig, recipe["tokenizer"], where="tokenizer").begins
    model: dict[str, JsonValue] = {name: getattr(config, name) for name in _SAME} | {
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
    """The weights of a reader by the names that they have in a writer.

    Every text is the first of its row, so that what says so is part of its tokens' embeddings. The
    target's begin as the source's.
    """
    found = {
        ours + name.removeprefix(theirs): tensor
        for name, tensor in weights.items()
        for theirs, ours in _NAMES.items()
        if name.startswith(theirs)
    }
    found["target_embedding.weight"] = weights["embedding.weight"]
    if "segments" in weights:
        found["source_embedding.weight"] = weights["embedding.weight"] + weights["segments"][0]
    return found
