"""Keys and values of decoding."""

import torch

from regard.attention import KeyValueCache


def test_positions_come_after_the_old_ones_and_the_old_cache_stays():
    key, value = torch.randn(2, 3, 5, 11), torch.randn(2, 3, 5, 13)
    cache = KeyValueCache(key[:, :, :2], value[:, :, :2])
    longer = cache.append(key[:, :, 2:], value[:, :, 2:])
    assert (cache.length, longer.length) == (2, 5)
    assert torch.equal(longer.key, key)
    assert torch.equal(longer.value, value)


def test_rows_are_chosen_repeated_and_dropped():
    cache = KeyValueCache(torch.randn(3, 1, 2, 4), torch.randn(3, 1, 2, 4))
    chosen = cache.select(torch.tensor([2, 2, 0]))
    assert torch.equal(chosen.key, cache.key[[2, 2, 0]])
    assert torch.equal(chosen.value, cache.value[[2, 2, 0]])
