"""Rotary positions against those of Hugging Face's models."""

import pytest
import torch

from regard.layers import RotaryPositions

pytestmark = pytest.mark.parity

B, H, N, D = 2, 3, 7, 10


def test_halves_are_the_pairs_of_llama():
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    config = llama.LlamaConfig(hidden_size=H * D, num_attention_heads=H)
    positions = torch.arange(5, 5 + N)[None].expand(B, N)
    query, key = torch.randn(B, H, N, D), torch.randn(B, H, N, D)
    cosines, sines = llama.LlamaRotaryEmbedding(config)(query, positions)
    expected = llama.apply_rotary_pos_emb(query, key, cosines, sines)
    rotary = RotaryPositions(D, pairs="halves")
    for heads, theirs in zip((query, key), expected, strict=True):
        torch.testing.assert_close(rotary(heads, first=5), theirs, atol=1e-5, rtol=0)


def test_interleaved_pairs_are_those_of_gpt_j():
    gptj = pytest.importorskip("transformers.models.gptj.modeling_gptj")
    heads = torch.randn(B, N, H, D)
    sines, cosines = gptj.create_sinusoidal_positions(20, D)[5 : 5 + N].chunk(2, dim=-1)
    want = gptj.apply_rotary_pos_emb(heads, sines[None], cosines[None])
    out = RotaryPositions(D)(heads.transpose(1, 2), first=5)
    torch.testing.assert_close(out.transpose(1, 2), want, atol=1e-5, rtol=0)
