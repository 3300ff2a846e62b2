"""The layouts of BERT's relatives that are read: ALBERT, DistilBERT and ELECTRA."""

from collections.abc import Iterator, Mapping

from torch import nn

from regard.interop.checkpoints.encoders import BERT_PARTS, BERT_SETTINGS, embeddings, masked_head
from regard.interop.checkpoints.layout import (
    ACTIVATIONS,
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
from regard.models import EncoderConfig, MaskedLanguageModel

_DISTILBERT = Settings(
    config=EncoderConfig,
    sizes={
        "dim": "model_dim",
        "n_heads": "num_heads",
        "n_layers": "num_layers",
        "hidden_dim": "ffn_dim",
        "max_position_embeddings": "max_length",
    },
    numbers={
        "dropout": ("dropout", 0.1),
        "attention_dropout": ("attention_dropout", 0.1),
    },
    required={"activation": "gelu"},
    fixed={**BERT_SETTINGS.fixed, "num_segments": 0, "norm_eps": 1e-12},
)
_DISTILBERT_PARTS = {
    "attend.query_key_value": "attention.q_lin attention.k_lin attention.v_lin",
    "attend.output": "attention.out_lin",
    "attend_residual.norm": "sa_layer_norm",
    "feed.inner": "ffn.lin1",
    "feed.outer": "ffn.lin2",
    "feed_residual.norm": "output_layer_norm",
}
_ALBERT_PARTS = {
    "attend.query_key_value": "attention.query attention.key attention.value",
    "attend.output": "attention.dense",
    "attend_residual.norm": "attention.LayerNorm",
    "feed.inner": "ffn",
    "feed.outer": "ffn_output",
    "feed_residual.norm": "full_layer_layer_norm",
}
_ALBERT_LAYER = "albert.encoder.albert_layer_groups.0.albert_layers.0"
_MOST_LAYERS = 24  # of the largest ALBERT


def _build_distilbert(table: Table) -> nn.Module:
    return _masked(_DISTILBERT.read(table), table)


def _build_electra(table: Table) -> nn.Module:
    width = size_of(table, "embedding_size")
    is_narrow = width != size_of(table, "hidden_size")
    return _masked(BERT_SETTINGS.read(table, embedding_dim=width if is_narrow else None), table)


def _build_albert(table: Table) -> nn.Module:
    for name in ("num_hidden_groups", "inner_group_num"):
        require(table, name, 1)
    activation = str(table.get("hidden_act", "gelu_new"))
    config = BERT_SETTINGS.read(
        {
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
            **table,
            "hidden_act": "gelu" if activation in ACTIVATIONS else activation,
        },
        embedding_dim=size_of(table, "embedding_size"),
        activation=ACTIVATIONS.get(activation),
    )
    return _masked(config, table)


def _masked(config: EncoderConfig, table: Table) -> nn.Module:
    pad_id = size_of({"pad_token_id": 0, **table}, "pad_token_id")
    return MaskedLanguageModel(config, vocab_size=size_of(table, "vocab_size"), pad_id=pad_id)


def _distilbert_tensors(model: nn.Module) -> Iterator[TensorMap]:
    count = expect(model, MaskedLanguageModel).encoder.config.num_layers
    yield from embeddings("encoder", "distilbert.embeddings")
    layers = "distilbert.transformer.layer"
    yield from of_layers(count, "encoder.layers", layers, _DISTILBERT_PARTS)
    yield from masked_head("vocab_transform", "vocab_layer_norm", "vocab_projector.bias")


def _electra_tensors(model: nn.Module) -> Iterator[TensorMap]:
    """ELECTRA's generator; of its discriminator, the reader of the text."""
    count = expect(model, MaskedLanguageModel).encoder.config.num_layers
    yield from embeddings("encoder", "electra.embeddings")
    yield from weight_and_bias("encoder.widen", "electra.embeddings_project")
    yield from of_layers(count, "encoder.layers", "electra.encoder.layer", BERT_PARTS)
    head = "generator_predictions"
    yield from masked_head(f"{head}.dense", f"{head}.LayerNorm", "generator_lm_head.bias")


def _albert_tensors(model: nn.Module) -> Iterator[TensorMap]:
    """ALBERT's names; each layer of ours begins as the one that all of its share."""
    count = expect(model, MaskedLanguageModel).encoder.config.num_layers
    yield from embeddings("encoder", "albert.embeddings")
    yield from weight_and_bias("encoder.widen", "albert.encoder.embedding_hidden_mapping_in")
    for layer in range(count):
        for ours, theirs in _ALBERT_PARTS.items():
            names = (f"{_ALBERT_LAYER}.{part}" for part in theirs.split())
            yield from weight_and_bias(f"encoder.layers.{layer}.{ours}", *names)
    yield from weight_and_bias("pooler", "albert.pooler")
    yield from masked_head("predictions.dense", "predictions.LayerNorm", "predictions.bias")


_HEADS = ("transform", "norm", "bias", "pooler", "next_sentence")
BERT_RELATIVES: Mapping[str, Layout] = {
    "albert": Layout(
        build=_build_albert,
        tensors=_albert_tensors,
        prefix="albert.",
        optional=_HEADS,
        copies=("position_ids", "decoder.weight", "decoder.bias"),
        sharing=_MOST_LAYERS,
    ),
    "distilbert": Layout(
        build=_build_distilbert,
        tensors=_distilbert_tensors,
        prefix="distilbert.",
        optional=_HEADS,
        copies=("position_ids", "vocab_projector.weight"),
    ),
    "electra": Layout(
        build=_build_electra,
        tensors=_electra_tensors,
        prefix="electra.",
        optional=_HEADS,
        copies=("position_ids", "generator_lm_head.weight"),
    ),
}
