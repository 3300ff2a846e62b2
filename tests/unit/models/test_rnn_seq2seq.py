import math

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


# --- the formulas of Bahdanau et al. (2015), appendix A, in plain numbers ---


def matvec(weight, x):
    return [sum(w * v for w, v in zip(row, x, strict=True)) for row in weight]


def plus(*vectors):
    return [sum(values) for values in zip(*vectors, strict=True)]


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def gru(gates_in, gates_hidden, hidden):
    """Cho et al. (2014), with the reset gate on U h, where matrices can be multiplied at once."""
    h = len(hidden)
    new = []
    for i in range(h):
        reset = sigmoid(gates_in[i] + gates_hidden[i])
        update = sigmoid(gates_in[h + i] + gates_hidden[h + i])
        fresh = math.tanh(gates_in[2 * h + i] + reset * gates_hidden[2 * h + i])
        new.append((1 - update) * fresh + update * hidden[i])
    return new


def softmax(scores):
    powers = [math.exp(score) for score in scores]
    return [power / sum(powers) for power in powers]


def annotations(p, layer, inputs, hidden_dim):
    """One layer's forward and backward states of each source word, side by side."""
    sides = []
    for suffix, order in ((f"_l{layer}", 1), (f"_l{layer}_reverse", -1)):
        hidden, states = [0.0] * hidden_dim, []
        for x in inputs[::order]:
            gates_in = plus(
                matvec(p[f"encoder.recurrence.weight_ih{suffix}"], x),
                p[f"encoder.recurrence.bias_ih{suffix}"],
            )
            gates_hidden = plus(
                matvec(p[f"encoder.recurrence.weight_hh{suffix}"], hidden),
                p[f"encoder.recurrence.bias_hh{suffix}"],
            )
            hidden = gru(gates_in, gates_hidden, hidden)
            states.append(hidden)
        sides.append(states[::order])
    return [one + other for one, other in zip(*sides, strict=True)]


def carried(memory, config):
    """The last state of the backward encoder, A.2.2 of Bahdanau et al., or of both."""
    h = config.hidden_dim
    ahead = memory[-1][:h] if config.beginning == "both" else []
    return ahead + memory[0][h:]


def bahdanau(p, source, target, config):
    """The logits for one sentence."""
    scale = config.embed_dim**0.5
    read = [[v * scale for v in p["source_embedding.weight"][i]] for i in source]
    memory = read
    for layer in range(config.num_layers):
        memory = annotations(p, layer, memory, config.hidden_dim)
    values = read if config.values == "embeddings" else memory
    last = carried(memory, config)
    layers = [
        [math.tanh(v) for v in plus(matvec(p[f"first.{i}.weight"], last), p[f"first.{i}.bias"])]
        for i in range(config.num_layers)
    ]
    rows = []
    for token in target:
        embedded = [v * scale for v in p["target_embedding.weight"][token]]
        scores = [
            sum(
                w * math.tanh(v)
                for w, v in zip(
                    p["look.w"],
                    plus(
                        matvec(p["look.query.weight"], layers[-1]),
                        matvec(p["look.key.weight"], m),
                        p["look.key.bias"],
                    ),
                    strict=True,
                )
            )
            for m in memory
        ]
        weights = softmax(scores)
        context = plus(*[[w * v for v in value] for w, value in zip(weights, values, strict=True)])
        extra = matvec(p["context_gates.weight"], context)  # only the first layer reads it
        state = embedded
        for i, before in enumerate(layers):
            gates_in = plus(matvec(p[f"cells.{i}.input.weight"], state), p[f"cells.{i}.input.bias"])
            gates_hidden = plus(
                matvec(p[f"cells.{i}.hidden.weight"], before), p[f"cells.{i}.hidden.bias"]
            )
            if i == 0:
                gates_in = plus(gates_in, extra)
            layers[i] = state = gru(gates_in, gates_hidden, before)
        pairs = plus(matvec(p["readout.weight"], state + embedded + context), p["readout.bias"])
        maxout = [max(pairs[2 * i], pairs[2 * i + 1]) for i in range(len(pairs) // 2)]
        rows.append(plus(matvec(p["target_embedding.weight"], maxout), p["output_bias"]))
    return rows


@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize("values", ["states", "embeddings"])
def test_additive_model_is_the_formulas_in_plain_loops(values, num_layers):
    model = build(num_layers=num_layers, values=values).double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    parameters = {name: p.tolist() for name, p in model.named_parameters()}
    parameters["source_embedding.weight"][0] = [0.0] * 6
    source, lengths, target = batch()
    logits = model.project(model(source, lengths, target)[0])
    for row in range(B):
        words = source[row, : lengths[row]].tolist()
        expected = bahdanau(parameters, words, target[row].tolist(), model.config)
        torch.testing.assert_close(logits[row], torch.tensor(expected, dtype=torch.float64))


def luong(p, source, target, config):
    """The logits for one sentence, with one layer: Luong et al. (2015), equations 5, 7 and 8."""
    scale, h = config.embed_dim**0.5, config.hidden_dim
    read = [[v * scale for v in p["source_embedding.weight"][i]] for i in source]
    memory = annotations(p, 0, read, h)
    last = carried(memory, config)
    state = [math.tanh(v) for v in plus(matvec(p["first.0.weight"], last), p["first.0.bias"])]
    fed, rows = [0.0] * config.embed_dim, []
    for token in target:
        embedded = [v * scale for v in p["target_embedding.weight"][token]]
        gates = plus(matvec(p["cells.0.input.weight"], embedded), p["cells.0.input.bias"])
        gates = plus(gates, matvec(p["context_gates.weight"], fed))
        hidden = plus(matvec(p["cells.0.hidden.weight"], state), p["cells.0.hidden.bias"])
        state = gru(gates, hidden, state)
        if config.attention == "general":
            scores = [
                sum(s * v for s, v in zip(state, matvec(p["look.w"], m), strict=True))
                for m in memory
            ]
        elif config.attention == "location":
            scores = matvec(p["look.w"][: len(memory)], state)
        else:
            scores = [
                sum(s * (f + b) for s, f, b in zip(state, m[:h], m[h:], strict=True))
                for m in memory
            ]
        context = plus(*[[w * v for v in m] for w, m in zip(softmax(scores), memory, strict=True)])
        fed = plus(matvec(p["readout.weight"], context + state), p["readout.bias"])
        fed = [math.tanh(v) for v in fed]
        rows.append(plus(matvec(p["target_embedding.weight"], fed), p["output_bias"]))
    return rows


@pytest.mark.parametrize("attention", ["dot", "general", "location"])
def test_luongs_model_is_the_formulas_in_plain_loops(attention):
    luongs = {"decoder": "luong", "attention": attention, "beginning": "both"}
    model = build(num_layers=1, **luongs).double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    parameters = {name: p.tolist() for name, p in model.named_parameters()}
    parameters["source_embedding.weight"][0] = [0.0] * 6
    source, lengths, target = batch()
    logits = model.project(model(source, lengths, target)[0])
    for row in range(B):
        words = source[row, : lengths[row]].tolist()
        expected = luong(parameters, words, target[row].tolist(), model.config)
        torch.testing.assert_close(logits[row], torch.tensor(expected, dtype=torch.float64))


def test_a_tied_table_is_the_last_layer():
    tied, apart = build(), build(tie_embeddings=False)
    assert tied.output is tied.target_embedding
    assert apart.output is not apart.target_embedding
    assert not any(name.startswith("output.") for name, _ in tied.named_parameters())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"embed_dim": 0}, "embed_dim must be at least 1; got 0"),
        ({"dropout": -0.1}, "dropout must be at least 0 and below 1; got -0.1"),
        (
            {"attention": "none", "values": "embeddings"},
            "values must be states where attention is none; got 'embeddings'. Set attention",
        ),
        ({"coverage_weight": -1.0}, r"coverage_weight must be at least 0; got -1\.0"),
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
