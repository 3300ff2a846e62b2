"""Rows shared out among threads, all of them, once, never a handful; memory given back."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.cases import pairwise

from regard.kernels.threads import parallel_blocks
from regard.runtime.state import empty


@pairwise(rows=[1, 7, 8, 15, 16, 17, 63, 64, 65, 129, 500], threads=[1, 3])
def test_blocks_are_even_and_none_is_a_handful(rows, threads, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    blocks = []
    parallel_blocks(rows, lambda first, stop: blocks.append((first, stop)))
    blocks.sort()
    assert [first for first, _ in blocks] == [0, *(stop for _, stop in blocks[:-1])]
    assert blocks[-1][1] == rows
    sizes = [stop - first for first, stop in blocks]
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= min(rows, 8)
    assert max(sizes) <= 64
    assert (len(blocks) > 1) == (rows > 64 or (threads > 1 and rows >= 16))


@pytest.mark.parametrize("shape", [(0, 3), (5, 7), (3, 1000, 1000)])
def test_room_can_be_filled_and_is_nobody_elses(shape):
    one, other = empty(shape), empty(shape)
    one[:], other[:] = 1, 2
    assert one.shape == shape
    assert one.dtype == np.float32
    assert (one == 1).all()
    assert (other == 2).all()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems are not asked for pages")
def test_large_room_goes_back_to_the_system():
    def resident():
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    for mebibytes in (4, 24, 4, 24):  # after which glibc would keep as much
        room = empty((mebibytes, 2**18))
        room[:] = 1
        with_it = resident()
        del room
        assert with_it - resident() > 0.9 * mebibytes * 2**20
