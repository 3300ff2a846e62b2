"""The layouts of encoders, BERT and RoBERTa, with the heads that stand on them."""

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import replace
from functools import partial

import torch
from torch import nn

from regard.config import JsonValue
from regard.errors import SettingError
from regard.interop.checkpoints.layout import (
    SIZES,
    Layout,
    Settings,
    Table,
    TensorMap,
    expect,
    of_layers,
    size_of,
    weight_and_bias,
)
from regard.layers.positions import SinusoidalPositions, sinusoidal
from regard.models import (
    Classifier,
    ClassifierConfig,
    Encoder,
    EncoderConfig,
    MaskedLanguageModel,
    Tagger,
    TaggerConfig,
)

BERT_SETTINGS = Settings(
    config=EncoderConfig,
    sizes={**SIZES, "type_vocab_size": "num_segments"},
    numbers={
        "hidden_dropout_prob": ("dropout", 0.1),
        "attention_probs_dropout_prob": ("attention_dropout", 0.1),
        "layer_norm_eps": ("norm_eps", 1e-12),
    },
    required={
        "position_embedding_type": "absolute",
        "is_decoder": False,
        "hidden_act": "gelu",
        "tie_word_embeddings": True,
    },
    fixed={
        "norm": "post",
        "norm_kind": "layer",
        "activation": "gelu",
        "positions": "learned",
        "parts": "none",
        "embedding_dim": None,
    },
)
BERT_PARTS = {
    "attend.query_key_value": "attention.self.query attention.self.key attention.self.value",
    "attend.output": "attention.output.dense",
    "attend_residual.norm": "attention.output.LayerNorm",
    "feed.inner": "intermediate.dense",
    "feed.outer": "output.dense",
    "feed_residual.norm": "output.LayerNorm",
}
_CLASSIFIER, _TAGGER = "BertForSequenceClassification", "BertForTokenClassification"


def encoder_of(model: nn.Module) -> Encoder:
    """Return the encoder inside a model that is an encoder with a head."""
    if isinstance(model, Tagger | Classifier):
        return expect(model.reader, Encoder)
    return expect(model, MaskedLanguageModel).encoder


@torch.no_grad()
def as_learned(model: nn.Module, *, max_length: int) -> nn.Module:
    """Rewrite a model in BERT's layout: tables of segments and of ``max_length`` positions."""
    encoder = encoder_of(model)
    config, table = encoder.config, encoder.embedding
    has_sinusoids = isinstance(encoder.positions, SinusoidalPositions)
    if config.num_segments and not has_sinusoids:
        return model
    reader = Encoder(
        replace(
            config,
            positions="learned",
            max_length=max_length if has_sinusoids else config.max_length,
            num_segments=config.num_segments or 1,
        ),
        vocab_size=len(table.weight),
        pad_id=table.pad_id or 0,
    )
    weights = encoder.state_dict()
    weights.setdefault("segments", torch.zeros(1, config.model_dim))
    if has_sinusoids:
        weights["embedding.weight"] = table.weight * table.scale
        weights["positions.table"] = sinusoidal(torch.arange(max_length), config.model_dim)
    reader.load_state_dict(weights)
    twin = copy(model)
    name = "encoder" if isinstance(model, MaskedLanguageModel) else "reader"
    twin._modules = {**model._modules, name: reader}
    return twin.eval()


def _build(table: Table) -> nn.Module:
    pad_id = size_of(table, "pad_token_id")
    first = pad_id + 1 if table["model_type"] == "roberta" else 0
    most = size_of(table, "max_position_embeddings") - first
    config = BERT_SETTINGS.read({**table, "max_position_embeddings": most})
    vocab = size_of(table, "vocab_size")
    named = table.get("architectures")
    architecture = named[0] if isinstance(named, list) and named else None
    if architecture == _TAGGER:
        reader = Encoder(config, vocab_size=vocab, pad_id=pad_id)
        return Tagger(TaggerConfig(), reader, num_tags=_labels(table))
    if architecture == _CLASSIFIER:
        reader = Encoder(config, vocab_size=vocab, pad_id=pad_id)
        head = ClassifierConfig(pooling="first", pooler=True)
        return Classifier(head, reader, num_classes=_labels(table))
    return MaskedLanguageModel(config, vocab_size=vocab, pad_id=pad_id)


def _labels(table: Table) -> int:
    """Number of labels; two where a config is silent, as in transformers."""
    names = table.get("id2label")
    return len(names) if isinstance(names, Mapping) else 2


def _describe(model: nn.Module, *, is_roberta: bool) -> dict[str, JsonValue]:
    encoder = _checked_encoder(model, is_roberta=is_roberta)
    config, pad_id = encoder.config, _padding(encoder)
    table: dict[str, JsonValue] = {
        **BERT_SETTINGS.write(config),
        "vocab_size": len(encoder.embedding.weight),
        "hidden_act": "gelu",
        "max_position_embeddings": config.max_length + (pad_id + 1 if is_roberta else 0),
        "pad_token_id": pad_id,
    }
    if isinstance(model, Tagger):
        return {**table, "architectures": [_TAGGER], "classifier_dropout": model.config.dropout}
    if isinstance(model, Classifier):
        return {**table, "architectures": [_CLASSIFIER], "classifier_dropout": model.config.dropout}
    return table


def _checked_encoder(model: nn.Module, *, is_roberta: bool) -> Encoder:
    """Return the encoder of a model whose head the layout has."""
    if is_roberta:
        return expect(model, MaskedLanguageModel).encoder
    if isinstance(model, Tagger) and model.crf is not None:
        raise SettingError("head.crf must be off in this layout; got true. It has no place for it.")
    if isinstance(model, Classifier):
        head = model.config
        if (head.pooling, head.pooler) != ("first", True):
            raise SettingError(
                "head.pooling must be 'first' and head.pooler true in this layout; "
                f"got {head.pooling!r} and {head.pooler}. It has no place for what differs."
            )
    return encoder_of(model)


def _tensors(model: nn.Module, *, is_roberta: bool) -> Iterator[TensorMap]:
    encoder = _checked_encoder(model, is_roberta=is_roberta)
    prefix = "roberta" if is_roberta else "bert"
    is_headed = isinstance(model, Tagger | Classifier)
    ours, offset = "reader" if is_headed else "encoder", _padding(encoder) + 1 if is_roberta else 0
    yield from embeddings(ours, f"{prefix}.embeddings", offset)
    count = encoder.config.num_layers
    yield from of_layers(count, f"{ours}.layers", f"{prefix}.encoder.layer", BERT_PARTS)
    if is_headed:
        yield from weight_and_bias("pooler", f"{prefix}.pooler.dense")
        yield from weight_and_bias("output", "classifier")
    elif is_roberta:
        yield from masked_head("lm_head.dense", "lm_head.layer_norm", "lm_head.bias")
    else:
        head = "cls.predictions"
        theirs = (f"{head}.transform.dense", f"{head}.transform.LayerNorm", f"{head}.bias")
        yield from masked_head(*theirs)
        yield from weight_and_bias("pooler", f"{prefix}.pooler.dense")
        yield from weight_and_bias("next_sentence", "cls.seq_relationship")


def embeddings(ours: str, theirs: str, offset: int = 0) -> Iterator[TensorMap]:
    """Map the tables of words, positions and segments, and their norm."""
    positions = (f"{theirs}.position_embeddings.weight",)
    yield TensorMap(f"{ours}.embedding.weight", (f"{theirs}.word_embeddings.weight",))
    yield TensorMap(f"{ours}.positions.table", positions, offset=offset)
    yield TensorMap(f"{ours}.segments", (f"{theirs}.token_type_embeddings.weight",))
    yield from weight_and_bias(f"{ours}.embedding_norm", f"{theirs}.LayerNorm")


def masked_head(transform: str, norm: str, bias: str) -> Iterator[TensorMap]:
    """Map the head that predicts masked words."""
    yield from weight_and_bias("transform", transform)
    yield from weight_and_bias("norm", norm)
    yield TensorMap("bias", (bias,))


def _padding(encoder: Encoder) -> int:
    pad_id = encoder.embedding.pad_id
    assert pad_id is not None
    return pad_id


ENCODERS: dict[str, Layout] = {
    "bert": Layout(
        build=_build,
        describe=partial(_describe, is_roberta=False),
        tensors=partial(_tensors, is_roberta=False),
        prefix="bert.",
        optional=("transform", "norm", "bias", "pooler", "next_sentence"),
        copies=("position_ids", "decoder.weight", "decoder.bias"),
        architecture="BertForPreTraining",
    ),
    "roberta": Layout(
        build=_build,
        describe=partial(_describe, is_roberta=True),
        tensors=partial(_tensors, is_roberta=True),
        prefix="roberta.",
        optional=("transform", "norm", "bias"),
        copies=("position_ids", "decoder.weight", "decoder.bias"),
        architecture="RobertaForMaskedLM",
    ),
}
