"""Decoder-only and recurrent language models: formula, positions, reach, beginning."""

import pytest
import torch

from regard.errors import SettingError
from regard.layers import sinusoidal
from regard.models import Decoder, DecoderConfig, RecurrentLm, RecurrentLmConfig

VOCAB = 13
SIZES = {"model_dim": 24, "num_heads": 2, "num_layers": 2, "ffn_dim": 32, "dropout": 0.0}
RNN = {"embed_dim": 24, "hidden_dim": 32, "dropout": 0.0}


def test_the_recurrence_is_its_formula():
    model = RecurrentLm(RecurrentLmConfig(cell="rnn", **RNN), vocab_size=VOCAB)
    ids = torch.randint(1, VOCAB, (2, 5))
    x, h = model.embedding(ids), torch.zeros(2, 32)
    w, u = model.recurrence.weight_ih_l0, model.recurrence.weight_hh_l0
    b = model.recurrence.bias_ih_l0 + model.recurrence.bias_hh_l0
    states = []
    for t in range(5):
        h = torch.tanh(x[:, t] @ w.T + h @ u.T + b)
        states.append(model.readout(h))
    torch.testing.assert_close(model(ids), torch.stack(states, 1))


@pytest.mark.parametrize("tie_embeddings", [True, False])
def test_logits_of_the_recurrence_have_a_bias(tie_embeddings):
    """O_t = H_t W_hq + b_q."""
    sizes = {**RNN, "tie_embeddings": tie_embeddings}
    model = RecurrentLm(RecurrentLmConfig(**sizes), vocab_size=VOCAB).eval()
    assert model.output_bias.eq(0).all()
    torch.nn.init.normal_(model.output_bias)
    states = model(torch.randint(1, VOCAB, (2, 5)))
    want = states @ model.output.weight.T + model.output_bias
    torch.testing.assert_close(model.project(states), want)
    without = RecurrentLm(RecurrentLmConfig(**sizes, output_bias=False), vocab_size=VOCAB)
    assert "output_bias" not in without.state_dict()
    torch.testing.assert_close(without.project(states), states @ without.output.weight.T)


def test_sinusoids_are_added_to_embeddings_of_their_size_and_have_no_limit():
    config = DecoderConfig(**SIZES, positions="sinusoidal", max_length=2)
    model, ids, inputs = Decoder(config, vocab_size=VOCAB), torch.randint(1, VOCAB, (3, 7)), []
    model.dropout.register_forward_pre_hook(lambda _, args: inputs.append(args[0]))
    model(ids)
    expected = model.embedding.weight[ids] * 24**0.5 + sinusoidal(torch.arange(7), 24)
    torch.testing.assert_close(inputs[0], expected)
    assert model.max_length is None
    states = torch.randn(5, 24)
    torch.testing.assert_close(model.project(states), states @ model.embedding.weight.T)


def test_a_window_bounds_what_a_layer_sees():
    config = DecoderConfig(**SIZES | {"num_layers": 3}, window=2, positions="rotary")
    model = Decoder(config, vocab_size=VOCAB).eval()
    embedded = torch.randint(1, VOCAB, (1, 12))
    expected = model(embedded)
    visible = []
    for position in range(12):
        changed = embedded.clone()
        changed[0, position] = embedded[0, position] % (VOCAB - 1) + 1
        if (model(changed) - expected)[0, -1].abs().max() > 1e-7:
            visible.append(position)
    assert visible == list(range(11 - 3 * 2, 12))  # two more a layer


def test_a_decoder_begins_as_gpt2_does():
    config = DecoderConfig(model_dim=64, num_heads=4, num_layers=8, ffn_dim=256)
    model = Decoder(config, vocab_size=500)
    block = model.layers[3]
    assert block.feed.inner.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert block.feed.outer.weight.std().item() == pytest.approx(0.02 / 4, rel=0.05)
    assert block.attend.output.weight.std().item() == pytest.approx(0.02 / 4, rel=0.1)
    assert model.output is model.embedding
    assert model.embedding.weight[0].eq(0).all()
    assert Decoder(config, vocab_size=9, pad_id=None).embedding.weight[0].ne(0).any()


def test_what_is_wrong_is_named():
    with pytest.raises(
        SettingError, match="activation must be tanh where cell is lstm; got 'relu'"
    ):
        RecurrentLmConfig(activation="relu")
    with pytest.raises(SettingError, match="num_heads must be divisible by num_key_heads"):
        DecoderConfig(num_key_heads=3)
