"""Rows shared out among threads: all of them, once, and never a handful."""

import pytest
import torch

from regard.models.prepared.sharing import in_blocks


@pytest.mark.parametrize("threads", [1, 2, 3, 16])
@pytest.mark.parametrize("rows", [1, 7, 8, 15, 16, 17, 63, 64, 65, 129, 500])
def test_blocks_are_even_and_none_is_a_handful(rows, threads, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    blocks = []
    in_blocks(rows, lambda first, stop: blocks.append((first, stop)))
    blocks.sort()
    assert [first for first, _ in blocks] == [0, *(stop for _, stop in blocks[:-1])]
    assert blocks[-1][1] == rows
    sizes = [stop - first for first, stop in blocks]
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= min(rows, 8)
    assert max(sizes) <= 64
    assert (len(blocks) > 1) == (rows > 64 or (threads > 1 and rows >= 16))
