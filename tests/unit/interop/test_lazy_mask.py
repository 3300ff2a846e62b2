"""Mask functions of transformers become the rules that the engine has for them."""

import pytest
import torch
from transformers import masking_utils as hf

from regard.attention.masks.grid import Band, Segments
from regard.errors import SettingError
from regard.interop.modules.hugging_face import lazy_mask

pytestmark = pytest.mark.slow

B, N, M = 2, 7, 11
STARTS = torch.tensor([0, 3])
NUMBERS = torch.tensor([[0] * 4 + [1] * 3, [0] * 2 + [1] * 5])
BLOCKS = torch.tensor([[-1, 0, 0, -1, 1, 1, -1], [0, 0, 0, -1, -1, -1, -1]])
PLACES = torch.tensor([[0, 1, 2, 3, 0, 1, 2], [0, 1, 0, 1, 2, 3, 4]])


def odd_keys(batch, head, query, key):
    return (key % 2 == 1) & (query >= 0) & (batch >= 0)


def by_numbers(batch, head, query, key):
    return PLACES[batch, query] != key


def packed(function):
    return hf.and_masks(
        hf.remap_positions_for_packed_sequence(function, PLACES),
        hf.packed_sequence_mask_function(NUMBERS),
    )


FUNCTIONS = {
    "causal": hf.causal_mask_function,
    "bidirectional": hf.bidirectional_mask_function,
    "window": hf.sliding_window_causal_mask_function(3),
    "window both ways": hf.sliding_window_bidirectional_mask_function(2),
    "chunks": hf.chunked_causal_mask_function(3, STARTS),
    "packed": packed(hf.sliding_window_causal_mask_function(2)),
    "packed chunks": packed(hf.chunked_causal_mask_function(2, torch.zeros(2, dtype=torch.long))),
    "packed blocks": hf.and_masks(
        hf.or_masks(
            hf.remap_positions_for_packed_sequence(hf.causal_mask_function, PLACES),
            hf.blockwise_overlay(BLOCKS),
        ),
        hf.packed_sequence_mask_function(NUMBERS),
    ),
    "blocks": hf.or_masks(hf.causal_mask_function, hf.blockwise_overlay(BLOCKS)),
    "either": hf.or_masks(hf.causal_mask_function, odd_keys),
    "all or some": hf.or_masks(hf.bidirectional_mask_function, odd_keys),
    "padding within": hf.and_masks(
        hf.causal_mask_function, hf.padding_mask_function(NUMBERS.bool())
    ),
    "moved": hf.add_offsets_to_mask_function(hf.causal_mask_function, 2, 1),
    "unknown": odd_keys,
}
PADDINGS = {
    "none": None,
    "all real": torch.ones(B, N),
    "right": torch.tensor([[1] * 5 + [0] * 2, [1] * 7]),
    "left": torch.tensor([[0] * 3 + [1] * 4, [1] * 7]),
    "holes": torch.tensor([[1, 0, 1, 1, 0, 1, 1], [1] * 7]),
}


def dense_of(lazy):
    mask = lazy.mask(torch.device("cpu"))
    shape = (B, 1, *lazy.shape[2:])
    if mask is None:
        return torch.ones(shape, dtype=torch.bool)
    return mask.bind(B, 1, *lazy.shape[2:]).dense().expand(shape)


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_rule_shows_what_the_tensor_of_transformers_shows(name, padding):
    options = {
        "batch_size": B,
        "q_length": N,
        "kv_length": N,
        "mask_function": FUNCTIONS[name],
        "attention_mask": None if PADDINGS[padding] is None else PADDINGS[padding].bool(),
        "allow_is_causal_skip": False,
    }
    want = hf.sdpa_mask(**options)
    assert dense_of(lazy_mask(**options)).tolist() == want.expand(B, 1, N, N).tolist()


@pytest.mark.parametrize("starts", [(0, 0), (4, 0), (10, 0), (9, 5), (torch.tensor(6), 2)])
@pytest.mark.parametrize("name", ["causal", "window", "chunks", "unknown"])
def test_queries_and_keys_amid_a_sequence(name, starts):
    q_offset, kv_offset = starts
    padding = torch.ones(B, 14, dtype=torch.bool)
    padding[0, :6] = False
    options = {
        "batch_size": B,
        "q_length": 5,
        "kv_length": M,
        "q_offset": q_offset,
        "kv_offset": kv_offset,
        "mask_function": FUNCTIONS[name],
        "attention_mask": padding,
        "allow_is_causal_skip": False,
    }
    want = hf.sdpa_mask(**options)
    assert dense_of(lazy_mask(**options)).tolist() == want.tolist()


def test_a_function_of_numbers_is_mapped_over_them():
    options = {"batch_size": B, "q_length": N, "kv_length": N, "mask_function": by_numbers}
    want = hf.sdpa_mask(**options, use_vmap=True, allow_is_causal_skip=False)
    assert dense_of(lazy_mask(**options, use_vmap=True)).tolist() == want.tolist()


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("causal", Band(None, 0, is_exact=True)),
        ("window", Band(-2, 0, is_exact=True)),
        ("window both ways", Band(-2, 2, is_exact=True)),
    ],
)
def test_known_functions_keep_the_form_that_backends_know(name, form):
    lazy = lazy_mask(B, N, N, mask_function=FUNCTIONS[name])
    assert lazy.mask(torch.device("cpu")).bind(B, 1, N, N).form == form


def test_packed_texts_are_documents():
    lazy = lazy_mask(B, N, N, mask_function=FUNCTIONS["packed"])
    form = lazy.mask(torch.device("cpu")).bind(B, 1, N, N).form
    assert isinstance(form, Segments)
    assert form.is_exact


def test_real_queries_count():
    lazy = lazy_mask(B, 3, N, q_offset=4, attention_mask=PADDINGS["right"])
    assert lazy.counted(torch.device("cpu")).tolist() == [[True, False, False], [True] * 3]
    assert lazy_mask(B, N, N).counted(torch.device("cpu")) is None


def test_it_stands_for_a_tensor_where_only_its_shape_is_needed():
    lazy = lazy_mask(B, 3, N)
    assert (lazy.shape, lazy.ndim, lazy.dim(), lazy.dtype) == ((B, 1, 3, N), 4, 4, torch.bool)
    assert lazy.to("cpu") is lazy.contiguous() is lazy[:, :, :, :5] is lazy[..., :5] is lazy
    assert lazy.device == torch.device("cpu")


def test_work_with_the_tensor_is_refused_by_name():
    lazy = lazy_mask(B, 3, N)
    with pytest.raises(SettingError, match=r"hand its mask .*; got torch\.add on it"):
        torch.add(torch.zeros(B, 1, 3, N), lazy)
    with pytest.raises(SettingError, match="got an index on it"):
        lazy[:, 0]
