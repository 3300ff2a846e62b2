"""Packed batches: what is cut out comes back in its place, and gradients with it."""

import pytest
import torch
from torch.autograd import gradcheck

from regard.layers import Packing
from regard.models import Transformer, TransformerConfig

LENGTHS = torch.tensor([3, 1, 5, 2])
WIDTH = 6


def test_padding_is_cut_out_and_comes_back_as_zeros():
    padded = torch.randn(4, WIDTH, 2, 3)
    packing = Packing(LENGTHS, WIDTH)
    packed = packing.pack(padded)
    assert packed.shape == (11, 2, 3)
    back = packing.pad(packed)
    for row, length in enumerate(LENGTHS.tolist()):
        assert torch.equal(back[row, :length], padded[row, :length])
        assert not back[row, length:].any()


def test_ids_can_be_packed_too():
    ids = torch.arange(4 * WIDTH).view(4, WIDTH)
    expected = [row[:length] for row, length in zip(ids, LENGTHS.tolist(), strict=True)]
    assert torch.equal(Packing(LENGTHS, WIDTH).pack(ids), torch.cat(expected))


def test_gradients_follow():
    packing = Packing(LENGTHS, WIDTH)
    padded = torch.randn(4, WIDTH, 2, dtype=torch.float64, requires_grad=True)
    packed = torch.randn(11, 2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(packing.pack, (padded,))
    assert gradcheck(packing.pad, (packed,))


def test_little_padding_is_not_worth_it():
    assert Packing.if_worthwhile(torch.tensor([6, 6, 6, 5]), 6) is None
    assert Packing.if_worthwhile(None, 6) is None
    assert Packing.if_worthwhile(torch.tensor([6, 1]), 6) is not None


@pytest.mark.parametrize("values", ["states", "embeddings"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_transformer_says_the_same_of_packed_and_of_padded_sentences(values, norm):
    torch.manual_seed(0)
    config = TransformerConfig(
        model_dim=16,
        num_heads=2,
        num_encoder_layers=2,
        num_decoder_layers=2,
        ffn_dim=24,
        dropout=0.0,
        norm=norm,
        values=values,
    )
    model = Transformer(config, source_vocab=30, target_vocab=30).double()
    source = torch.randint(4, 30, (4, 9))
    target = torch.randint(4, 30, (4, WIDTH))
    source_lengths = torch.tensor([9, 2, 4, 1])

    def run(with_packing):
        model.zero_grad()
        if with_packing:
            states, _ = model(source, source_lengths, target, LENGTHS)
            states = Packing(LENGTHS, WIDTH).pack(states)
        else:
            # One sentence at a time: nothing is padded.
            states = torch.cat(
                [
                    model(source[i : i + 1, :s], source_lengths[i : i + 1], target[i : i + 1, :t])[
                        0
                    ][0]
                    for i, (s, t) in enumerate(
                        zip(source_lengths.tolist(), LENGTHS.tolist(), strict=True)
                    )
                ]
            )
        states.square().sum().backward()
        return states.detach(), {n: p.grad.clone() for n, p in model.named_parameters()}

    packed, packed_grads = run(True)
    alone, grads = run(False)
    torch.testing.assert_close(packed, alone)
    for name, grad in grads.items():
        torch.testing.assert_close(packed_grads[name], grad, msg=name)
