"""Masks: their drawings, how they join, and what they tell a backend."""

import pytest
import torch

from regard.attention import Cover, attend, causal, dense, lengths
from regard.errors import ShapeError


def drawing(*rows):
    return "\n".join(rows)


def test_causal_lines_the_last_query_up_with_the_last_key():
    assert causal().draw(2, 4) == drawing("1 1 1 .", "1 1 1 1")
    assert causal().draw(4, 2) == drawing(". .", ". .", "1 .", "1 1")
    assert causal(first=1).draw(2, 4) == drawing("1 1 . .", "1 1 1 .")


def test_lengths_may_differ_by_query():
    mask = lengths(torch.tensor([[1, 3]]))
    assert mask.draw(2, 4) == drawing("1 . . .", "1 1 1 .")


def test_masks_join():
    both = causal() & lengths([2])
    assert both.draw(3, 3) == drawing("1 . .", "1 1 .", "1 1 .")
    assert (causal() | lengths([2])).draw(3, 3) == drawing("1 1 .", "1 1 .", "1 1 1")
    assert (~causal()).draw(3, 3) == drawing(". 1 1", ". . 1", ". . .")
    assert ~~both is both


def test_a_boolean_tensor_joins_a_mask():
    eye = torch.eye(3, dtype=torch.bool)
    assert (causal() & eye).draw(3, 3) == drawing("1 . .", ". 1 .", ". . 1")


@pytest.mark.parametrize(
    ("mask", "rows", "keys", "cover"),
    [
        (causal(), range(3, 6), range(4), Cover.ALL),
        (causal(), range(2), range(3, 6), Cover.NONE),
        (lengths([3, 5]), range(6), range(3), Cover.ALL),
        (lengths([3, 5]), range(6), range(5, 6), Cover.NONE),
        (causal() & lengths([3, 5]), range(2), range(2, 4), Cover.NONE),
        (causal() | lengths([3, 5]), range(2), range(3), Cover.ALL),
        (~lengths([3, 5]), range(6), range(3), Cover.NONE),
    ],
)
def test_tiles_that_are_all_alike_need_no_tensor(mask, rows, keys, cover):
    assert mask.bind(2, 3, 6, 6).tile(rows, keys) is cover


@pytest.mark.parametrize("mask", [causal(), lengths([3, 5]), causal() & lengths([3, 5])])
def test_tiles_are_parts_of_the_dense_mask(mask):
    bound = mask.bind(2, 3, 5, 7)
    whole = bound.dense().expand(2, 3, 5, 7)
    tile = bound.tile(range(1, 4), range(2, 6))
    if isinstance(tile, Cover):
        tile = torch.full((1, 1, 1, 1), tile is Cover.ALL)
    assert torch.equal(tile.expand(2, 3, 3, 4), whole[:, :, 1:4, 2:6])


def test_span_leaves_out_keys_that_no_query_of_the_rows_sees():
    bound = causal().bind(1, 1, 1000, 1000)
    assert bound.span(range(100), step=64) == range(128)
    assert lengths([0]).bind(1, 1, 5, 1000).span(range(5)) == range(0)


def test_one_decoding_step_over_cached_keys_needs_no_mask():
    assert causal().bind(2, 3, 1, 7).whole is Cover.ALL


def test_a_flag_says_causal_only_where_the_first_query_is_at_the_first_key():
    assert causal().bind(2, 3, 7, 7).is_causal
    assert causal(first=0).bind(2, 3, 5, 7).is_causal
    assert not causal().bind(2, 3, 5, 7).is_causal
    assert not (causal() & lengths([7, 7])).bind(2, 3, 7, 7).is_causal


def test_the_same_mask_is_bound_once_for_the_same_sizes():
    mask = lengths([3, 5])
    assert mask.bind(2, 3, 5, 7) is mask.bind(2, 3, 5, 7)
    assert mask.bind(2, 3, 5, 7) is not mask.bind(2, 3, 1, 7)
    assert mask.bind(2, 3, 5, 7).penalty(torch.float32) is mask.bind(2, 3, 5, 7).penalty(
        torch.float32
    )


def test_a_mask_does_not_follow_later_changes_of_the_lengths():
    n = torch.tensor([3])
    mask = lengths(n)
    n.fill_(1)
    assert mask.draw(1, 4) == "1 1 1 ."


@pytest.mark.parametrize(
    ("mask", "shape"),
    [
        (lengths([3, 5]), (2, 1, 1, 7)),
        (causal(), (1, 1, 5, 7)),
        (causal() & lengths([3, 5]), (2, 1, 5, 7)),
        (dense(torch.ones(3, 1, 7, dtype=torch.bool)), (1, 3, 1, 7)),
    ],
)
def test_extent_is_the_shape_of_the_dense_mask(mask, shape):
    bound = mask.bind(2, 3, 5, 7)
    assert mask.extent(bound.grid) == shape
    assert bound.dense().numel() == bound.size


def test_hidden_keys_are_those_no_query_sees():
    assert causal().bind(2, 3, 5, 5).hidden is None
    assert lengths([7, 7]).bind(2, 3, 5, 7).hidden is None
    hidden = lengths([3, 7]).bind(2, 3, 5, 7).hidden
    assert hidden[:, 0, :, 0].sum(dim=1).tolist() == [4, 0]


def test_without_an_axis_of_heads_the_batch_is_the_third_axis_from_the_end():
    tensor = torch.zeros(2, 5, 7, dtype=torch.bool)
    tensor[1] = True
    assert dense(tensor).bind(2, None, 5, 7).dense().shape == (2, 1, 5, 7)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lengths(torch.tensor([1.0])), "lengths must be integers; got torch.float32"),
        (lambda: lengths(torch.ones(1, 1, 1).long()), r"\(\), \(B,\) or \(B, N\); got \(1, 1, 1\)"),
        (lambda: dense(torch.zeros(2, 2)), "mask must be boolean"),
        (lambda: causal() & 1, "mask must be a Mask or a boolean tensor; got int"),
    ],
)
@pytest.mark.usefixtures("unchecked_shapes")
def test_what_is_no_mask_is_refused(make, message):
    with pytest.raises(ShapeError, match=message):
        make()


def test_a_long_mask_is_never_made_whole_where_blocks_will_do():
    bound = (causal() & lengths([9000, 8000])).bind(2, 3, 9000, 9000)
    assert bound.hidden is not None
    assert bound.cover is None
    assert "whole" not in vars(bound)
    query = torch.zeros(1, 1, 5000, 4)
    mask = causal(first=1)
    attend(query, query, mask=mask)
    assert "whole" not in vars(mask.bind((1,), 1, 5000, 5000, query.device))
