"""How the convolutional model begins; its formulas are in the property tests of all models."""

from math import log

import pytest
import torch

from regard.attention import observe, weights
from regard.models import ConvSeq2Seq, ConvSeq2SeqConfig

B, S, T, V = 3, 11, 7, 53


@pytest.mark.parametrize("embed_dim", [128, 512])
def test_attention_begins_without_a_preference(embed_dim):
    torch.manual_seed(3)
    config = ConvSeq2SeqConfig(embed_dim=embed_dim, hidden_dim=64)
    model = ConvSeq2Seq(config, source_vocab=V, target_vocab=V).eval()
    source, target = torch.randint(4, V, (B, S)), torch.randint(4, V, (B, T))
    calls = []
    with torch.no_grad(), observe(calls.append):
        model(source, torch.full((B,), S), target)
    assert len(calls) == config.num_decoder_layers
    for call in calls:
        rows = weights(call.query, call.key, score=call.score, mask=call.mask)
        assert torch.special.entr(rows).sum(-1).min() > 0.9 * log(S)


def test_words_and_positions_begin_with_the_papers_deviation():
    torch.manual_seed(3)
    config = ConvSeq2SeqConfig(embed_dim=96, max_length=64)
    model = ConvSeq2Seq(config, source_vocab=V, target_vocab=V)
    ids = torch.arange(4, V)
    for words, positions in (
        (model.source_embedding, model.source_positions),
        (model.target_embedding, model.target_positions),
    ):
        for drawn in (words(ids), positions.table):
            torch.testing.assert_close(drawn.std().item(), 0.1, rtol=0.05, atol=0)
        assert words.weight[words.pad_id].eq(0).all()


def test_logits_have_a_bias_and_the_encoders_gradient_is_divided_by_2n_as_in_the_authors_code():
    config = ConvSeq2SeqConfig(embed_dim=8, hidden_dim=8, dropout=0.0)
    model = ConvSeq2Seq(config, source_vocab=V, target_vocab=V)
    states = torch.randn(B, T, 8)
    torch.nn.init.normal_(model.output_bias)
    expected = states @ model.output.weight.T + model.output_bias
    torch.testing.assert_close(model.project(states), expected)
    # What a key's own gradient is, and what of it reaches the layer that made the key.
    outputs = []
    model.encoder_output.register_forward_hook(lambda _, inputs, out: outputs.append(out))
    memory = model._read(torch.randint(4, V, (B, S)), torch.full((B,), S))
    (of_key,) = torch.autograd.grad(memory.keys.sum(), outputs[0])
    torch.testing.assert_close(of_key, torch.full_like(of_key, 1 / (2 * config.num_decoder_layers)))
    plain = ConvSeq2SeqConfig(embed_dim=8, hidden_dim=8, output_bias=False)
    assert "output_bias" not in ConvSeq2Seq(plain, source_vocab=V, target_vocab=V).state_dict()
