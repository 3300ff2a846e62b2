"""Pointers: what is written and what is copied, and copying models."""

import pytest
import torch

from regard.attention import lengths, observe
from regard.errors import SettingError
from regard.layers.pointer import CopyAttention, Pointer, mix
from regard.models import RnnSeq2Seq, RnnSeq2SeqConfig, Transformer, TransformerConfig

C, X, S, V = 3, 5, 4, 11


def parts():
    generator = torch.Generator().manual_seed(1)
    readout = torch.randn(2, C, dtype=torch.float64, generator=generator)
    inputs = torch.randn(2, X, dtype=torch.float64, generator=generator)
    rows = torch.rand(2, S, dtype=torch.float64, generator=generator).softmax(-1)
    return readout, inputs, rows, torch.tensor([[7, 4, 7, 3], [5, 6, 0, 0]])


def pointer():
    module = Pointer(X).double()
    torch.nn.init.normal_(module.gate.weight)
    torch.nn.init.normal_(module.gate.bias)
    return module


def test_result_is_equation_9():
    module, table = pointer(), torch.randn(V, C, dtype=torch.float64)
    readout, inputs, rows, source = parts()
    probs = module.logits(module(*parts()), C, lambda x: x @ table.T).softmax(-1)
    for row in range(2):
        gate = module.gate(inputs[row]).sigmoid()
        written = (readout[row] @ table.T).softmax(-1)
        copied = torch.stack([rows[row][source[row] == w].sum() for w in range(V)])
        torch.testing.assert_close(probs[row], gate * written + (1 - gate) * copied)
    torch.testing.assert_close(probs.sum(-1), torch.ones(2, dtype=torch.float64))


def test_a_word_the_vocabulary_would_never_give_is_copied():
    module = pointer()
    torch.nn.init.constant_(module.gate.bias, -20.0)
    torch.nn.init.zeros_(module.gate.weight)
    _, inputs, _, source = parts()
    rows = torch.tensor([[0.1, 0.2, 0.1, 0.6], [0.9, 0.1, 0.0, 0.0]], dtype=torch.float64)
    logits = torch.full((2, V), 0.0, dtype=torch.float64)
    logits[0, 3] = logits[1, 5] = -300.0
    states = module(torch.zeros(2, C, dtype=torch.float64), inputs, rows, source)
    log_probs = module.logits(states, C, lambda _: logits).log_softmax(-1)
    assert logits.argmin(-1).tolist() == log_probs.argmax(-1).tolist() == [3, 5]
    torch.testing.assert_close(log_probs.exp()[0, 3].item(), 0.6, rtol=1e-6, atol=0)


def test_gradients_are_finite_where_nothing_is_copied_and_nothing_written():
    module = Pointer(X)
    readout, inputs, rows, source = (t.float() if t.is_floating_point() else t for t in parts())
    rows = rows.clone()
    rows[:, 0] = 0
    inputs = [tensor.requires_grad_() for tensor in (readout, inputs, rows)]
    logits = torch.full((2, V), -200.0).index_fill(1, torch.tensor([1]), 200.0)
    states = module(*inputs, source)
    mixed = module.logits(states, C, lambda x: logits + 0 * x.sum())
    mixed.log_softmax(-1).sum().backward()
    assert all(tensor.grad.isfinite().all() for tensor in inputs)


def test_copy_attention_is_one_scaled_head():
    layer, n = CopyAttention(6), torch.tensor([5, 3])
    states, memory = torch.randn(2, 7, 6), torch.randn(2, 5, 6)
    keys = layer.key(memory)
    scores = layer.query(states) @ keys.mT / 6**0.5
    hidden = torch.arange(5) >= n[:, None, None]
    expected = scores.masked_fill(hidden, -torch.inf).softmax(-1)
    torch.testing.assert_close(layer(states, keys, mask=lengths(n)), expected)


def test_given_weights_are_mixed_and_seen_as_they_are():
    log_weights = torch.randn(2, 3, 5, dtype=torch.float64)
    log_weights[0, 1, 2:] = -torch.inf
    values = torch.randn(2, 5, 7, dtype=torch.float64)
    calls = []
    with observe(calls.append):
        mixed = mix(log_weights, values)
    torch.testing.assert_close(mixed, log_weights.exp() @ values)
    torch.testing.assert_close(mix(log_weights, values), mixed, rtol=0, atol=1e-15)
    torch.testing.assert_close(calls[0].weights(), log_weights.exp())


MODELS = {
    "recurrent": lambda: (RnnSeq2Seq, RnnSeq2SeqConfig(copy=True, embed_dim=4, hidden_dim=4)),
    "transformer": lambda: (
        Transformer,
        TransformerConfig(
            copy=True,
            model_dim=4,
            num_heads=2,
            num_encoder_layers=1,
            num_decoder_layers=1,
            ffn_dim=4,
        ),
    ),
}


@pytest.mark.parametrize("name", sorted(MODELS))
def test_two_vocabularies_cannot_be_copied_between(name):
    architecture, config = MODELS[name]()
    message = r"model\.copy must go with one vocabulary for both sides; got two\. Set tokenizer\.s"
    with pytest.raises(SettingError, match=message):
        architecture(config, source_vocab=9, target_vocab=9)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_what_is_copied_can_be_seen_and_is_in_the_source(name):
    torch.manual_seed(2)
    architecture, config = MODELS[name]()
    model = architecture(config, source_vocab=40, target_vocab=40, shared_vocab=True).eval()
    torch.nn.init.constant_(model.pointer.gate.bias, -30.0)
    source, n = torch.tensor([[5, 9, 5, 6], [7, 8, 11, 11]]), torch.tensor([4, 2])
    calls = []
    with torch.no_grad(), observe(calls.append):
        states, _ = model(source, n, torch.tensor([[2, 5, 6], [2, 7, 7]]))
        probs = model.project(states).softmax(-1)
    maps = [c.weights() for c in calls if c.kind == "cross"]
    rows = torch.cat(maps, 1) if name == "recurrent" else maps[-1]
    for row, t in ((0, 0), (0, 2), (1, 1)):
        real = source[row, : n[row]]
        for token in real.tolist():
            expected = rows[row, t, : n[row]][real == token].sum()
            torch.testing.assert_close(probs[row, t, token], expected, rtol=1e-4, atol=1e-6)
    assert probs[1, :, 11].max() < 1e-6
