"""Decoder-only and recurrent language models: formula, reach, beginning, a toy job."""

import math

import pytest
import torch
from torch.nn import functional as F

from regard.decoding import greedy
from regard.errors import SettingError
from regard.models import Decoder, DecoderConfig, RecurrentLm, RecurrentLmConfig

VOCAB = 13
SIZES = {"model_dim": 24, "num_heads": 2, "num_layers": 2, "ffn_dim": 32, "dropout": 0.0}
MODELS = {
    "learned": lambda: Decoder(DecoderConfig(**SIZES, max_length=16), vocab_size=VOCAB),
    "rotary": lambda: Decoder(DecoderConfig(**SIZES, positions="rotary"), vocab_size=VOCAB),
    "sinusoidal": lambda: Decoder(DecoderConfig(**SIZES, **WAVES), vocab_size=VOCAB),
    "rnn": lambda: RecurrentLm(RecurrentLmConfig(cell="rnn", **RNN), vocab_size=VOCAB),
    "gru": lambda: RecurrentLm(RecurrentLmConfig(cell="gru", **RNN), vocab_size=VOCAB),
    "lstm": lambda: RecurrentLm(RecurrentLmConfig(cell="lstm", **RNN), vocab_size=VOCAB),
}
WAVES = {"positions": "sinusoidal", "max_length": 2}  # has no limit
RNN = {"embed_dim": 24, "hidden_dim": 32, "dropout": 0.0}


def test_the_recurrence_is_its_formula():
    model = MODELS["rnn"]()
    ids = torch.randint(1, VOCAB, (2, 5))
    x, h = model.embedding(ids), torch.zeros(2, 32)
    w, u = model.recurrence.weight_ih_l0, model.recurrence.weight_hh_l0
    b = model.recurrence.bias_ih_l0 + model.recurrence.bias_hh_l0
    states = []
    for t in range(5):
        h = torch.tanh(x[:, t] @ w.T + h @ u.T + b)
        states.append(model.readout(h))
    torch.testing.assert_close(model(ids), torch.stack(states, 1))


def test_sinusoids_are_added_to_embeddings_of_their_size():
    """Vaswani et al. (2017), sections 3.4 and 3.5."""
    model, ids = MODELS["sinusoidal"](), torch.randint(1, VOCAB, (3, 7))
    inputs = []
    model.dropout.register_forward_pre_hook(lambda _, given: inputs.append(given[0]))
    model(ids)
    waves = [
        [(math.sin, math.cos)[i % 2](p / 10000 ** ((i - i % 2) / 24)) for i in range(24)]
        for p in range(7)
    ]
    want = model.embedding.weight[ids] * 24**0.5 + torch.tensor(waves)
    torch.testing.assert_close(inputs[0], want)
    assert model.max_length is None
    # The last layer is the table itself, not its multiple.
    states = torch.randn(5, 24)
    torch.testing.assert_close(model.project(states), states @ model.embedding.weight.T)


@pytest.mark.parametrize("tie_embeddings", [True, False])
def test_logits_of_the_recurrence_have_a_bias(tie_embeddings: bool):
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


def test_a_window_bounds_what_a_layer_sees():
    config = DecoderConfig(**SIZES | {"num_layers": 3}, window=2, positions="rotary")
    model = Decoder(config, vocab_size=VOCAB).eval()
    embedded = torch.randint(1, VOCAB, (1, 12))
    want = model(embedded)
    reaches = []
    for place in range(12):
        other = embedded.clone()
        other[0, place] = embedded[0, place] % (VOCAB - 1) + 1
        if (model(other) - want)[0, -1].abs().max() > 1e-7:
            reaches.append(place)
    assert reaches == list(range(11 - 3 * 2, 12))  # two more a layer


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


@pytest.mark.parametrize("name", sorted(MODELS))
@pytest.mark.slow
def test_learns_to_count_and_says_so_when_asked_to_go_on(name):
    """Texts count up from anywhere, eight at a time, and end."""
    model = MODELS[name]()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(0)
    bos, eos = 1, 2
    for _ in range(120):
        start = torch.randint(0, 8, (32, 1), generator=generator)
        count = 3 + (start + torch.arange(8)) % 8
        ids = F.pad(F.pad(count, (1, 0), value=bos), (0, 1), value=eos)
        logits = model.project(model(ids[:, :-1]))
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    prompt = torch.tensor([[1, 5, 6, 7], [1, 9, 0, 0]])
    state = model.start(prompt, torch.tensor([4, 2]))
    found = greedy(model.step, state, batch_size=2, bos_id=bos, eos_id=eos, max_lengths=12)
    # A plain RNN knows what comes next, and not when it is enough.
    assert found[0].tokens[:4] == (8, 9, 10, 3)
    assert found[1].tokens[:5] == (10, 3, 4, 5, 6)
    assert all(one.is_finished for one in found)
    if name != "rnn":
        assert [len(one.tokens) for one in found] == [5, 7]


def test_what_is_wrong_is_named():
    with pytest.raises(
        SettingError, match="activation must be tanh where cell is lstm; got 'relu'"
    ):
        RecurrentLmConfig(activation="relu")
    with pytest.raises(SettingError, match="window must be at least 1; got 0"):
        DecoderConfig(window=0)
    with pytest.raises(SettingError, match="num_heads must be divisible by num_key_heads"):
        DecoderConfig(num_key_heads=3)
