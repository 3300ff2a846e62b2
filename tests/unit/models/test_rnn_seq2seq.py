"""Recurrent translators against the formulas of Bahdanau et al. and Luong et al., step by step."""

import pytest
import torch
from torch import nn

from regard.errors import SettingError
from regard.models import RnnSeq2Seq, RnnSeq2SeqConfig

B, S, T, V = 3, 5, 7, 23
SMALL = {"embed_dim": 6, "hidden_dim": 10, "attention_dim": 7, "num_layers": 2}


def build(**settings):
    torch.manual_seed(1)
    config = RnnSeq2SeqConfig(**SMALL | settings)
    return RnnSeq2Seq(config, source_vocab=V, target_vocab=V, shared_vocab=True)


def batch():
    generator = torch.Generator().manual_seed(2)
    source, target = (torch.randint(4, V, (B, n), generator=generator) for n in (S, T))
    return source, torch.tensor([5, 2, 3]), target


def linear(p, name, x):
    y = p[f"{name}.weight"] @ x
    return y + p[f"{name}.bias"] if f"{name}.bias" in p else y


def gru(gates_in, gates_hidden, hidden):
    """Cho et al. (2014), with the reset gate on U h, where matrices can be multiplied at once."""
    inputs, hiddens = gates_in.chunk(3), gates_hidden.chunk(3)
    reset, update = (torch.sigmoid(inputs[i] + hiddens[i]) for i in (0, 1))
    fresh = torch.tanh(inputs[2] + reset * hiddens[2])
    return (1 - update) * fresh + update * hidden


def annotations(p, layer, inputs, hidden_dim):
    """One layer's forward and backward states of each source word, side by side."""
    sides = []
    for suffix, order in ((f"_l{layer}", 1), (f"_l{layer}_reverse", -1)):
        ih, hh, ih_bias, hh_bias = (
            p[f"encoder.recurrence.{kind}{suffix}"]
            for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        hidden, states = torch.zeros(hidden_dim).double(), []
        for x in inputs[::order]:
            hidden = gru(ih @ x + ih_bias, hh @ hidden + hh_bias, hidden)
            states.append(hidden)
        sides.append(states[::order])
    return [torch.cat(both) for both in zip(*sides, strict=True)]


def carried(memory, config):
    """The last state of the backward encoder, A.2.2 of Bahdanau et al., or of both."""
    h = config.hidden_dim
    ahead = memory[-1][:h] if config.beginning == "both" else memory[-1][:0]
    return torch.cat([ahead, memory[0][h:]])


def bahdanau(p, source, target, config):
    """The logits for one sentence: Bahdanau et al. (2015), appendix A."""
    scale = config.embed_dim**0.5
    memory = read = [p["source_embedding.weight"][i] * scale for i in source]
    for layer in range(config.num_layers):
        memory = annotations(p, layer, memory, config.hidden_dim)
    values = torch.stack(read if config.values == "embeddings" else memory)
    last = carried(memory, config)
    layers = [linear(p, f"first.{i}", last).tanh() for i in range(config.num_layers)]
    rows = []
    for token in target:
        embedded = p["target_embedding.weight"][token] * scale
        query = linear(p, "attention.query", layers[-1])
        scores = [p["attention.w"] @ (query + linear(p, "attention.key", m)).tanh() for m in memory]
        context = torch.stack(scores).softmax(0) @ values
        state = embedded
        for i, before in enumerate(layers):
            gates = linear(p, f"cells.{i}.input", state)
            if i == 0:  # only the first layer reads the context
                gates = gates + linear(p, "context_gates", context)
            layers[i] = state = gru(gates, linear(p, f"cells.{i}.hidden", before), before)
        pairs = linear(p, "readout", torch.cat([state, embedded, context]))
        maxout = torch.stack([pairs[0::2], pairs[1::2]]).amax(0)
        rows.append(p["target_embedding.weight"] @ maxout + p["output_bias"])
    return torch.stack(rows)


def luong(p, source, target, config):
    """The logits for one sentence, with one layer: Luong et al. (2015), equations 5, 7 and 8."""
    scale, h = config.embed_dim**0.5, config.hidden_dim
    memory = annotations(p, 0, [p["source_embedding.weight"][i] * scale for i in source], h)
    state = linear(p, "first.0", carried(memory, config)).tanh()
    fed, rows = torch.zeros(config.embed_dim).double(), []
    for token in target:
        embedded = p["target_embedding.weight"][token] * scale
        gates = linear(p, "cells.0.input", embedded) + linear(p, "context_gates", fed)
        state = gru(gates, linear(p, "cells.0.hidden", state), state)
        scores = {
            "general": lambda: [state @ (p["attention.w"] @ m) for m in memory],  # noqa: B023
            "location": lambda: list(p["attention.w"][: len(memory)] @ state),  # noqa: B023
            "dot": lambda: [state @ (m[:h] + m[h:]) for m in memory],  # noqa: B023
        }[config.attention]()
        context = torch.stack(scores).softmax(0) @ torch.stack(memory)
        fed = linear(p, "readout", torch.cat([context, state])).tanh()
        rows.append(p["target_embedding.weight"] @ fed + p["output_bias"])
    return torch.stack(rows)


LUONG = {"decoder": "luong", "beginning": "both", "num_layers": 1}


@pytest.mark.parametrize(
    ("formula", "settings"),
    [
        *((bahdanau, {"values": "states", "num_layers": layers}) for layers in (1, 2)),
        *((bahdanau, {"values": "embeddings", "num_layers": layers}) for layers in (1, 2)),
        *((luong, LUONG | {"attention": name}) for name in ("dot", "general", "location")),
    ],
)
@torch.no_grad()
def test_a_model_is_the_formulas_of_its_paper(formula, settings):
    model = build(**settings).double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    parameters = {name: p.clone() for name, p in model.named_parameters()}
    parameters["source_embedding.weight"][0] = 0
    source, lengths, target = batch()
    logits = model.project(model(source, lengths, target)[0])
    for row, length in enumerate(lengths.tolist()):
        want = formula(parameters, source[row, :length], target[row], model.config)
        torch.testing.assert_close(logits[row], want)


def test_a_tied_table_is_the_last_layer():
    tied, untied = build(), build(tie_embeddings=False)
    assert tied.output is tied.target_embedding
    assert untied.output is not untied.target_embedding
    assert not any(name.startswith("output.") for name, _ in tied.named_parameters())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"attention": "none", "values": "embeddings"},
            "values must be states where attention is none; got 'embeddings'. Set attention",
        ),
        ({"mean_share": 1.0}, r"mean_share must be at least 0 and below 1; got 1\.0"),
        (
            {"hard": True, "copy": True},
            r"local, hard, and coverage or copy must not be set together; got \['hard=True', 'cov",
        ),
        (
            {"attention": "mixture", "local": "predictive"},
            r"attention must be a score for local='predictive'; got 'mixture'\. Set attention",
        ),
        (
            {"attention": "none", "coverage": True},
            r"attention must be a score for coverage=True or copy=True; got 'none'\.",
        ),
    ],
)
def test_wrong_setting_is_named(settings, message):
    with pytest.raises(SettingError, match=message):
        RnnSeq2SeqConfig(**SMALL | settings)
