"""Every setting of a translator changes what it gives."""

from dataclasses import fields

import pytest
import torch
from torch import nn

from regard.errors import ShapeError
from regard.models import RnnSeq2SeqConfig, TransformerConfig

from . import test_rnn_seq2seq as recurrent
from . import test_transformer as transformer

# For every setting, what differs from small models in two that must not give the same.
TRANSFORMER = {
    "model_dim": ({}, {"model_dim": 18}),
    "num_heads": ({}, {"num_heads": 4}),
    "num_encoder_layers": ({}, {"num_encoder_layers": 1}),
    "num_decoder_layers": ({}, {"num_decoder_layers": 1}),
    "ffn_dim": ({}, {"ffn_dim": 19}),
    "dropout": ({}, {"dropout": 0.5}),
    "attention_dropout": ({}, {"attention_dropout": 0.5}),
    "head_dropout": ({}, {"head_dropout": 0.5}),
    "norm": ({}, {"norm": "pre"}),
    "activation": ({}, {"activation": "gelu"}),
    "positions": ({}, {"positions": "learned"}),
    "max_length": ({"positions": "learned"}, {"positions": "learned", "max_length": 3}),
    "tie_embeddings": ({}, {"tie_embeddings": "none"}),
    "values": ({}, {"values": "embeddings"}),
    "num_key_heads": ({}, {"num_key_heads": 1}),
    "norm_kind": ({}, {"norm_kind": "rms"}),
    "score": ({}, {"score": "additive"}),
    "window": ({}, {"window": 1}),
    "copy": ({}, {"copy": True}),
    "scale_embeddings": ({}, {"scale_embeddings": False}),
    "embedding_norm": ({}, {"embedding_norm": True}),
    "own_positions": ({"positions": "learned"}, {"positions": "learned", "own_positions": True}),
    "norm_eps": ({}, {"norm_eps": 0.3}),
    "source_begin": ({}, {"source_begin": True}),
    "output_bias": ({}, {"output_bias": True}),
}
RECURRENT = {
    "cell": ({}, {"cell": "lstm"}),
    "attention": ({}, {"attention": "none"}),
    "values": ({}, {"values": "embeddings"}),
    "embed_dim": ({}, {"embed_dim": 8}),
    "hidden_dim": ({}, {"hidden_dim": 9}),
    "attention_dim": ({}, {"attention_dim": 5}),
    "num_layers": ({}, {"num_layers": 1}),
    "dropout": ({}, {"dropout": 0.5}),
    "tie_embeddings": ({}, {"tie_embeddings": False}),
    "decoder": ({}, {"decoder": "luong"}),
    "local": ({}, {"local": "predictive"}),
    "reach": ({"local": "monotonic", "reach": 1}, {"local": "monotonic", "reach": 2}),
    "hard": ({}, {"hard": True}),
    "mean_share": ({"hard": True}, {"hard": True, "mean_share": 0.99}),
    "reward_weight": ({"hard": True}, {"hard": True, "reward_weight": 0.5}),
    "entropy_weight": ({"hard": True}, {"hard": True, "entropy_weight": 0.5}),
    "coverage": ({}, {"coverage": True}),
    "coverage_weight": ({"coverage": True}, {"coverage": True, "coverage_weight": 0.5}),
    "copy": ({}, {"copy": True}),
    "num_gaussians": ({"attention": "mixture"}, {"attention": "mixture", "num_gaussians": 3}),
    "max_length": ({"attention": "location"}, {"attention": "location", "max_length": 3}),
    "output_bias": ({}, {"output_bias": False}),
    "beginning": ({}, {"beginning": "both"}),
}
TABLES = {
    "transformer": (TransformerConfig, transformer, TRANSFORMER),
    "recurrent": (RnnSeq2SeqConfig, recurrent, RECURRENT),
}
# Settings that weigh an auxiliary loss, and leave the answers as they are.
LOSSES = ("coverage_weight", "reward_weight", "entropy_weight")


@pytest.mark.parametrize("table", TABLES)
def test_every_setting_is_tried(table):
    config, _, options = TABLES[table]
    assert set(options) == {field.name for field in fields(config)}


@pytest.mark.parametrize(
    ("table", "name"), [(table, name) for table in TABLES for name in TABLES[table][2]]
)
def test_setting_changes_the_result(table, name):
    _, small, options = TABLES[table]
    results = []
    for settings in options[name]:
        model = small.build(**settings).train()
        if model.output_bias is not None:
            nn.init.normal_(model.output_bias)
        torch.manual_seed(3)
        try:
            states, auxiliary = model(*small.batch())
        except ShapeError as error:
            results.append(str(error))
        else:
            results.append(auxiliary if name in LOSSES else model.project(states))
    one, other = results
    if name == "max_length":
        assert "must be at most" in other
    else:
        assert (one - other).abs().max() > 1e-3
