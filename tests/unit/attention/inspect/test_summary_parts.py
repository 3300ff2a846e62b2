import re

import pytest
import torch

from regard.attention import alibi, causal, summarize
from regard.errors import ShapeError

H, D = 3, 11


def random_inputs(N, M, dtype=torch.float64):
    return torch.randn(2, H, N, D, dtype=dtype), torch.randn(2, H, M, D, dtype=dtype)


def assert_same(summary, expected):
    assert (summary.bucket, summary.start, summary.map) == (
        expected.bucket,
        expected.start,
        expected.map,
    )
    for name, tensor in expected.tensors().items():
        torch.testing.assert_close(getattr(summary, name), tensor, atol=1e-12, rtol=1e-12, msg=name)


@pytest.mark.parametrize(
    "sizes",
    [[1] * 23, [7, 1, 1, 1, 13], [16, 7], [0, 23], [23]],
    ids=["one by one", "chunks", "two", "nothing first", "all"],
)
def test_steps_of_a_decoder_add_up_to_the_whole(sizes):
    query, key = random_inputs(23, 23)
    expected = summarize(query, key, mask=causal(), map=4, bias=alibi())
    parts, start = [], 0
    for size in sizes:
        stop = start + size
        parts.append(
            summarize(
                query[:, :, start:stop],
                key[:, :, :stop],
                mask=causal(),
                bias=alibi(),
                map=4,
                start=(start, 0),
            )
        )
        start = stop
    assert_same(parts[0].joined(*parts[1:]), expected)
    one_by_one = parts[0]
    for part in parts[1:]:
        one_by_one = one_by_one.joined(part)
    assert_same(one_by_one, expected)


def test_keys_that_a_window_dropped_keep_their_positions():
    query, key = random_inputs(12, 12)
    whole = summarize(query, key, mask=causal(), map=64)
    late = summarize(query[:, :, 8:], key[:, :, 5:], mask=causal(), start=(8, 5))
    assert set(late.top_keys.unique().tolist()) == {-1, *range(5, 12)}
    assert late.received.shape[-1] == 12
    assert (late.received[..., :5] == 0).all()
    assert late.first.abs().max() == 0
    joined = whole.joined(late.detach())
    torch.testing.assert_close(joined.pooled.sum((-1, -2)), torch.full((2, H), 16.0).double())


def test_parts_that_do_not_fit_are_refused():
    query, key = random_inputs(23, 23)
    part = summarize(query, key, map=4)
    with pytest.raises(ShapeError, match=r"must begin where a bucket does; got position 23\. Make"):
        part.joined(part)
    small = summarize(query[:, :, :1], key[:, :, :5], map=4)
    with pytest.raises(ShapeError, match="must be the first keys of the next; got 23 keys, then 5"):
        part.joined(small)
    with pytest.raises(ShapeError, match=r"the same leading axes; got \(2, 3\) and \(3,\)"):
        part.joined(part[0])
    with pytest.raises(ShapeError, match="the same number of top keys; got 8 and 2"):
        part.joined(summarize(query[:, :, :1], key, map=4, top=2))


def test_an_index_gives_a_batch_row_or_a_head():
    query, key = random_inputs(5, 7)
    whole = summarize(query, key)
    row = whole[1]
    assert row.shape == (H, 5, 7)
    assert torch.equal(whole[1, 2].pooled, whole.pooled[1, 2])
    assert [each.shape for each in whole] == [(H, 5, 7)] * 2
    with pytest.raises(ShapeError, match=r"index must be of integers and slices on the 2 leading"):
        whole[0, 1, 2]
    with pytest.raises(ShapeError, match="index must be"):
        whole["a"]


def test_the_text_says_what_it_is_of():
    text = repr(summarize(*random_inputs(5, 7), top=2))
    assert re.fullmatch(
        r"Summary\(2 × 3 of 5 queries × 7 keys, top 2, map 5 × 7, mean entropy \d\.\d{3} nats\)",
        text,
    )
