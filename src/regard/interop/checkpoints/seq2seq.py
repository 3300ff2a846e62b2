"""BART's layout and those of its relatives, which differ in norms, positions and tables."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeVar

import torch
from torch import Tensor, nn

from regard.config import JsonValue
from regard.errors import SettingError
from regard.interop.checkpoints.layout import (
    Layout,
    Settings,
    Table,
    TensorMap,
    expect,
    of_layers,
    require,
    size_of,
    weight_and_bias,
)
from regard.layers import LearnedPositions
from regard.models import Transformer, TransformerConfig

ValueT = TypeVar("ValueT")

# Epsilon that these families add to a variance.
NORM_EPS = 1e-5
_PARTS = {
    "attend.query_key_value": "self_attn.q_proj self_attn.k_proj self_attn.v_proj",
    "attend.output": "self_attn.out_proj",
    "attend_residual.norm": "self_attn_layer_norm",
    "feed.inner": "fc1",
    "feed.outer": "fc2",
    "feed_residual.norm": "final_layer_norm",
}
_CROSS_PARTS = {
    "cross_attend.query": "encoder_attn.q_proj",
    "cross_attend.key_value": "encoder_attn.k_proj encoder_attn.v_proj",
    "cross_attend.output": "encoder_attn.out_proj",
    "cross_attend_residual.norm": "encoder_attn_layer_norm",
}


@dataclass(frozen=True, slots=True)
class Family:
    """Differences between BART and its relatives."""

    name: Literal["bart", "blenderbot", "marian", "pegasus"]
    architecture: str
    norm: Literal["post", "pre"] = "post"  # "pre" has one more at the end of each side
    has_sinusoids: bool = False
    writes_sinusoids: bool = False  # they are in its files all the same
    embedding_norm: bool = False
    offset: int = 0  # rows of learned positions before the first
    is_one_table: bool = True  # of source, target and last layer, whatever its config says

    @property
    def layout(self) -> Layout:
        """Layout of its checkpoints."""
        return Layout(
            build=partial(_build, self),
            describe=partial(_describe, self),
            tensors=partial(_tensors, self),
            prefix="model.",
            optional=("output_bias", *(("positions",) if self.has_sinusoids else ())),
            copies=(
                "embed_tokens.weight",
                "lm_head.weight",
                *(("embed_positions.weight",) if self.has_sinusoids else ()),
            ),
            architecture=self.architecture,
        )

    @property
    def settings(self) -> Settings[TransformerConfig]:
        """Settings in its config."""
        required: dict[str, JsonValue] = {
            "static_position_embeddings": self.has_sinusoids,
            "normalize_before": self.norm == "pre",
            "add_final_layer_norm": self.norm == "pre",
            "extra_pos_embeddings": 2,
        }
        fixed: dict[str, JsonValue] = {
            "norm": self.norm,
            "norm_kind": "layer",
            "positions": "learned",
            "num_key_heads": None,
            "score": "scaled_dot",
            "window": None,
            "copy": False,
            "norm_eps": None,
            "source_begin": False,
            "values": "states",
            "embedding_norm": self.embedding_norm,
            "own_positions": not self.has_sinusoids,
        }
        if self.is_one_table:
            required |= {"share_encoder_decoder_embeddings": True, "tie_word_embeddings": True}
            fixed["tie_embeddings"] = "all"
        return Settings(
            config=TransformerConfig,
            sizes={
                "d_model": "model_dim",
                "encoder_attention_heads": "num_heads",
                "decoder_attention_heads": "num_heads",
                "encoder_ffn_dim": "ffn_dim",
                "decoder_ffn_dim": "ffn_dim",
                "encoder_layers": "num_encoder_layers",
                "decoder_layers": "num_decoder_layers",
                "max_position_embeddings": "max_length",
            },
            numbers={"dropout": ("dropout", 0.1)},
            activation=("activation_function", "gelu"),
            required=required,
            fixed=fixed,
        )


def marian_sinusoids(length: int, width: int) -> Tensor:
    """Marian's positions: all sines, then all cosines; ours alternate."""
    positions = torch.arange(length, dtype=torch.float64)[:, None]
    even = torch.arange(0, width, 2, dtype=torch.float64)
    angles = positions / 10000 ** (even / width)
    return torch.cat([angles.sin(), angles.cos()[:, : width // 2]], dim=1).float()


@torch.no_grad()
def as_written(model: Transformer, *, max_length: int | None = None) -> Transformer:
    """Rewrite a model in the options of these layouts; sinusoids stand sines first."""
    config, width = model.config, model.config.model_dim
    has_sinusoids = config.positions == "sinusoidal"
    longest = (has_sinusoids and max_length) or config.max_length
    twin = Transformer(
        replace(
            config,
            positions="learned",
            max_length=longest,
            own_positions=not has_sinusoids,
            output_bias=True,
            norm_eps=_unless(NORM_EPS, config.norm_eps),
            num_key_heads=_unless(config.num_heads, config.num_key_heads),
        ),
        source_vocab=len(model.source_embedding.weight),
        target_vocab=len(model.target_embedding.weight),
        shared_vocab=model.source_embedding is model.target_embedding,
    )
    weights = model.state_dict()
    weights.setdefault("output_bias", torch.zeros(len(model.target_embedding.weight)))
    if has_sinusoids:
        order = torch.cat([torch.arange(0, width, 2), torch.arange(1, width, 2)])
        weights = {name: _in_order(name, weight, order) for name, weight in weights.items()}
        weights["positions.table"] = marian_sinusoids(longest, width)
    else:
        weights.setdefault("target_positions.table", weights["positions.table"])
    twin.load_state_dict(weights)
    return twin.eval()


# Parameters that write a state: a row, or one number, for each of its numbers.
_WRITES = ("attend.output.", "cross_attend.output.", "feed.outer.", "norm.")
# Parameters that read a state, and tables of embeddings: a column for each of its numbers.
_READS = (
    "embedding.weight",
    "attend.query_key_value.weight",
    "cross_attend.query.weight",
    "cross_attend.key_value.weight",
    "feed.inner.weight",
)


def _in_order(name: str, weight: Tensor, order: Tensor) -> Tensor:
    """A parameter of a Transformer with the numbers of a state in another order."""
    owner = name.removesuffix("weight").removesuffix("bias")
    if owner.endswith(_WRITES):
        return weight[order]
    return weight[:, order] if name.endswith(_READS) or name == "output.weight" else weight


def _unless(usual: ValueT, value: ValueT | None) -> ValueT | None:
    """The value, or None if it is the usual one."""
    return None if value == usual else value


def _build(family: Family, table: Table) -> Transformer:
    config = family.settings.read(
        table,
        scale_embeddings=bool(table.get("scale_embedding", False)),
        output_bias=True,
        tie_embeddings=_tied(family, table),
    )
    vocab = size_of(table, "vocab_size")
    is_shared = config.tie_embeddings == "all"
    model = Transformer(
        config,
        source_vocab=vocab,
        target_vocab=vocab if is_shared else size_of(table, "decoder_vocab_size"),
        shared_vocab=is_shared,
    )
    # Lengths say where padding is; the table only needs its own pad id.
    model.target_embedding.pad_id = size_of(table, "pad_token_id")
    if family.has_sinusoids:
        assert isinstance(model.positions, LearnedPositions)
        model.positions.table.data = marian_sinusoids(config.max_length, config.model_dim)
    return model


def _tied(family: Family, table: Table) -> str:
    """Tied embeddings of a config."""
    if family.is_one_table or table.get("share_encoder_decoder_embeddings", True):
        require(table, "tie_word_embeddings", True)
        return "all"
    return "target" if table.get("tie_word_embeddings", True) else "none"


def _describe(family: Family, model: nn.Module) -> dict[str, JsonValue]:
    model = expect(model, Transformer)
    config = model.config
    table = family.settings.write(config)
    is_shared = model.source_embedding is model.target_embedding
    if family.is_one_table and not is_shared:
        raise SettingError(
            f"tokenizer.shared must be true in the layout {family.name!r}; got a vocabulary for "
            "each side. It has one table for both."
        )
    assert isinstance(model.positions, LearnedPositions)
    if family.has_sinusoids and not torch.equal(
        model.positions.table.detach().cpu(), marian_sinusoids(config.max_length, config.model_dim)
    ):
        raise SettingError(
            f"layout {family.name!r} must have positions that are not learned, sines first; got "
            "others. Train with model.positions.table.requires_grad_(False)."
        )
    table |= {
        "vocab_size": len(model.source_embedding.weight),
        "scale_embedding": config.scale_embeddings,
        "pad_token_id": model.target_embedding.pad_id,
    }
    if not family.is_one_table:
        table |= {
            "decoder_vocab_size": len(model.target_embedding.weight),
            "share_encoder_decoder_embeddings": is_shared,
            "tie_word_embeddings": config.tie_embeddings != "none",
        }
    return table


def _tensors(family: Family, model: nn.Module) -> Iterator[TensorMap]:
    model = expect(model, Transformer)
    config = model.config
    is_shared = model.source_embedding is model.target_embedding
    if is_shared:
        yield TensorMap("target_embedding.weight", ("model.shared.weight",))
    else:
        for side, ours in (("encoder", "source"), ("decoder", "target")):
            yield TensorMap(f"{ours}_embedding.weight", (f"model.{side}.embed_tokens.weight",))
    if model.output is not model.target_embedding:
        yield TensorMap("output.weight", ("lm_head.weight",))
    yield TensorMap("output_bias", ("final_logits_bias",), has_axis=True)
    sides = {"encoder": config.num_encoder_layers, "decoder": config.num_decoder_layers}
    for side, num_layers in sides.items():
        if family.writes_sinusoids or not family.has_sinusoids:
            has_target_table = side == "decoder" and not family.has_sinusoids
            ours = "target_positions.table" if has_target_table else "positions.table"
            theirs = (f"model.{side}.embed_positions.weight",)
            yield TensorMap(ours, theirs, offset=family.offset)
        if family.embedding_norm:
            norm = "source_norm" if side == "encoder" else "target_norm"
            yield from weight_and_bias(norm, f"model.{side}.layernorm_embedding")
        parts = _PARTS | (_CROSS_PARTS if side == "decoder" else {})
        yield from of_layers(num_layers, side, f"model.{side}.layers", parts)
        if family.norm == "pre":
            yield from weight_and_bias(f"{side}_norm", f"model.{side}.layer_norm")


SEQ2SEQ: dict[str, Layout] = {
    family.name: family.layout
    for family in (
        Family("bart", "BartForConditionalGeneration", embedding_norm=True, offset=2),
        Family("blenderbot", "BlenderbotForConditionalGeneration", norm="pre"),
        Family("marian", "MarianMTModel", has_sinusoids=True, is_one_table=False),
        Family(
            "pegasus",
            "PegasusForConditionalGeneration",
            norm="pre",
            has_sinusoids=True,
            writes_sinusoids=True,
        ),
    )
}
