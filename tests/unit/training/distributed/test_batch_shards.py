import numpy as np
import pytest

from regard.training.distributed.world import WHOLE_BATCH, BatchShard

TOKENS = np.array([2, 2, 3, 3, 3, 5, 7, 7, 8, 11, 13])


def shares(size, accumulate, batch, tokens=TOKENS):
    return [BatchShard(rank, size, accumulate).rows(batch, tokens) for rank in range(size)]


@pytest.mark.parametrize("size", [2, 3, 4, 7, 20])
def test_every_example_of_a_split_batch_is_one_process_s(size):
    rows = shares(size, accumulate=1, batch=0)
    examples = [example for each in rows for example in range(len(TOKENS))[each]]
    assert examples == list(range(len(TOKENS)))


@pytest.mark.parametrize("size", [2, 3, 4])
def test_parts_have_about_as_many_tokens(size):
    costs = [TOKENS[rows].sum() for rows in shares(size, accumulate=1, batch=0)]
    assert max(abs(cost - TOKENS.sum() / size) for cost in costs) <= TOKENS.max()


def test_of_few_examples_some_processes_have_none():
    rows = shares(4, accumulate=1, batch=0, tokens=np.array([50, 60]))
    sizes = [each.stop - each.start for each in rows]
    assert sum(sizes) == 2
    assert sizes.count(0) == 2


def test_batches_that_can_be_dealt_out_evenly_are_not_split():
    sizes = [
        [each.stop - each.start for each in shares(2, accumulate=5, batch=batch)]
        for batch in range(5)
    ]
    assert sizes[:4] == [[11, 0], [0, 11]] * 2
    assert 0 not in sizes[4]


def test_one_process_has_everything():
    assert WHOLE_BATCH.is_all
    assert WHOLE_BATCH.rows(0, TOKENS) == slice(0, len(TOKENS))
    assert not BatchShard(1, 2).is_all
