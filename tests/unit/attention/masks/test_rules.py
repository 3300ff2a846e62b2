"""Masks: their drawings, how they join, and what they tell a backend."""

import pytest
import torch

import regard as rg
from regard.attention import Cover
from regard.attention.masks.grid import Band, Segment, Segments
from regard.errors import SettingError, ShapeError


def drawing(*rows):
    return "\n".join(rows)


def test_a_window_counts_keys_besides_the_querys_own():
    assert rg.window(before=1, after=0).draw(3, 3) == drawing("1 . .", "1 1 .", ". 1 1")
    assert rg.window(before=0, after=1).draw(3, 3) == drawing("1 1 .", ". 1 1", ". . 1")
    assert rg.window(before=1).draw(2, 4) == drawing(". 1 1 1", ". . 1 1")
    assert rg.window(after=0).draw(2, 4) == rg.causal().draw(2, 4)
    assert rg.window().draw(2, 3) == drawing("1 1 1", "1 1 1")
    assert rg.window(before=0, after=0, first=1).draw(2, 4) == drawing(". 1 . .", ". . 1 .")


def test_masks_join():
    both = rg.causal() & rg.lengths([2])
    assert both.draw(3, 3) == drawing("1 . .", "1 1 .", "1 1 .")
    assert (rg.causal() | rg.lengths([2])).draw(3, 3) == drawing("1 1 .", "1 1 .", "1 1 1")
    assert (~rg.causal()).draw(3, 3) == drawing(". 1 1", ". . 1", ". . .")
    assert ~~both is both


@pytest.mark.parametrize(
    "drop",
    [
        lambda mask: mask and rg.lengths(2),
        lambda mask: mask or rg.lengths(2),
        lambda mask: not mask,
        lambda mask: 1 if mask else 2,
        bool,
    ],
)
def test_a_mask_has_no_truth_by_which_it_would_be_dropped(drop):
    with pytest.raises(SettingError, match=r"mask must be joined by &, \| and ~; got one of Pyth"):
        drop(rg.causal())


@pytest.mark.parametrize("queries", [0, 3])
@pytest.mark.parametrize("keys", [0, 3])
@pytest.mark.parametrize("ids", [torch.zeros, lambda n, **_: [0] * n])
def test_documents_may_have_no_positions(queries, keys, ids):
    mask = rg.documents(ids(queries, dtype=torch.long), ids(keys, dtype=torch.long))
    query, key = torch.randn(2, 1, queries, 4), torch.randn(2, 1, keys, 4)
    for each in (mask, ~mask, mask & rg.causal(first=0), mask | rg.window(0, 0, first=0)):
        assert rg.attend(query, key, mask=each).shape == query.shape
        assert rg.weights(query, key, mask=each).shape == (2, 1, queries, keys)
        assert len(each.draw(queries, keys).split()) == queries * keys


@pytest.mark.parametrize(
    ("mask", "rows", "keys", "cover"),
    [
        (rg.causal(), range(3, 6), range(4), Cover.ALL),
        (rg.causal(), range(2), range(3, 6), Cover.NONE),
        (rg.lengths([3, 5]), range(6), range(3), Cover.ALL),
        (rg.lengths([3, 5]), range(6), range(5, 6), Cover.NONE),
        (rg.causal() & rg.lengths([3, 5]), range(2), range(2, 4), Cover.NONE),
        (rg.causal() | rg.lengths([3, 5]), range(2), range(3), Cover.ALL),
        (~rg.lengths([3, 5]), range(6), range(3), Cover.NONE),
        (rg.window(before=2, after=1), range(2, 4), range(2, 4), Cover.ALL),
        (rg.window(before=2, after=1), range(4, 6), range(2), Cover.NONE),
        (rg.window(before=2, after=1), range(2), range(3, 6), Cover.NONE),
        (rg.documents([0, 0, 0, 1, 1, 1]), range(3), range(3), Cover.ALL),
        (rg.documents([0, 0, 0, 1, 1, 1]), range(2), range(3, 6), Cover.NONE),
        (rg.documents([1, 1, 1, 0, 0, 0]) & rg.causal(), range(3, 6), range(3), Cover.NONE),
    ],
)
def test_tiles_that_are_all_alike_need_no_tensor(mask, rows, keys, cover):
    assert mask.bind(2, 3, 6, 6).tile(rows, keys) is cover


def test_bands_and_documents_are_known_as_such():
    assert rg.window(before=1).bind(2, 3, 5, 7).form == Band(1, None, is_exact=True)
    both = (rg.window(before=1) & rg.causal()).bind(2, 3, 5, 7)
    assert both.form == Band(1, 2, is_exact=True)
    assert (both.mask & rg.lengths([3, 5])).bind(2, 3, 5, 7).form == Band(1, 2, is_exact=False)
    assert (~both.mask).bind(2, 3, 5, 7).form is None
    packed = (rg.documents([4, 4, 2]) & rg.causal()).bind(2, 3, 3, 3).form
    segments = (Segment(0, range(2), range(2)), Segment(0, range(2, 3), range(2, 3)))
    assert packed == Segments(segments, 1, Band(None, 0, is_exact=True), is_exact=True)
    assert rg.documents([4, 2, 4]).bind(2, 3, 3, 3).form is None


def test_spans_leave_out_keys_that_no_query_of_the_rows_sees():
    def key_ranges(mask, rows, **options):
        return mask.bind(1, 1, 1000, 1000).key_ranges(rows, **options)

    band = rg.window(before=5, after=3, first=10)
    assert key_ranges(rg.causal(), range(100)) == (range(100),)
    assert key_ranges(band, range(100, 120)) == (range(105, 133),)
    assert key_ranges(band & rg.lengths([1000]), range(2)) == (range(5, 15),)
    assert key_ranges(band, range(995, 1000)) == ()
    assert key_ranges(rg.lengths([0]), range(5)) == ()
    texts = rg.documents([0] * 300 + [1] * 700)
    assert key_ranges(texts, range(290)) == (range(300),)
    assert key_ranges(texts, range(290, 310)) == (range(1000),)
    assert key_ranges(texts & band, range(290, 310)) == (range(295, 300), range(305, 323))
    # Found by halving, down to 128 keys that are not known to be hidden.
    assert key_ranges(rg.prefix(4) | band, range(600, 610)) == (range(125), range(500, 625))
    assert key_ranges(rg.prefix(4) | band, range(600, 610), smallest_gap=400) == (range(625),)


def test_one_decoding_step_over_cached_keys_needs_no_mask():
    assert rg.causal().bind(2, 3, 1, 7).whole is Cover.ALL


def test_a_flag_says_causal_only_where_the_first_query_is_at_the_first_key():
    assert rg.causal().bind(2, 3, 7, 7).is_causal
    assert rg.causal(first=0).bind(2, 3, 5, 7).is_causal
    assert not rg.causal().bind(2, 3, 5, 7).is_causal
    assert not (rg.causal() & rg.lengths([7, 7])).bind(2, 3, 7, 7).is_causal


def test_what_is_worked_out_for_a_mask_and_sizes_is_shared():
    mask = rg.lengths([3, 5])
    whole = mask.bind(2, 3, 5, 7).whole
    assert mask.bind(2, 3, 5, 7).whole is whole
    assert mask.bind(2, 3, 1, 7).whole is not whole
    penalties = [mask.bind(2, 3, 5, 7).penalty(torch.float32) for _ in range(2)]
    assert penalties[0] is penalties[1]


def test_windows_alike_share_what_is_small():
    for length, is_shared in ((9, True), (300, False)):
        one, other = (rg.window(before=3).bind(1, 1, length, length).whole for _ in range(2))
        assert (one is other) == is_shared


def test_a_mask_does_not_follow_later_changes_of_the_lengths():
    n = torch.tensor([3])
    mask = rg.lengths(n)
    n.fill_(1)
    assert mask.draw(1, 4) == "1 1 1 ."


@pytest.mark.parametrize(
    ("mask", "shape"),
    [
        (rg.lengths([3, 5]), (2, 1, 1, 7)),
        (rg.causal(), (1, 1, 5, 7)),
        (rg.causal() & rg.lengths([3, 5]), (2, 1, 5, 7)),
        (rg.dense(torch.ones(3, 1, 7, dtype=torch.bool)), (1, 3, 1, 7)),
    ],
)
def test_extent_is_the_shape_of_the_dense_mask(mask, shape):
    bound = mask.bind(2, 3, 5, 7)
    assert mask.extent(bound.grid) == shape
    assert bound.dense().numel() == bound.size


def test_without_an_axis_of_heads_the_batch_is_the_third_axis_from_the_end():
    tensor = torch.zeros(2, 5, 7, dtype=torch.bool)
    tensor[1] = True
    assert rg.dense(tensor).bind(2, None, 5, 7).dense().shape == (2, 1, 5, 7)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rg.lengths(torch.tensor([1.0])), "lengths must be integers; got torch.float32"),
        (
            lambda: rg.lengths(torch.ones(1, 1, 1).long()),
            r"\(\), \(B,\) or \(B, N\); got \(1, 1, 1\)",
        ),
        (lambda: rg.documents(torch.zeros(3)), "documents must be integers; got torch.float32"),
        (lambda: rg.documents(torch.tensor(3)), r"documents must have shape \(N,\) or \(B, N\)"),
        (lambda: rg.prefix(torch.tensor(0.5)), "prefix must be integers"),
        (lambda: rg.causal() & 1, "mask must be a Mask or a boolean tensor; got int"),
    ],
)
@pytest.mark.usefixtures("unchecked_shapes")
def test_what_is_no_mask_is_refused(make, message):
    with pytest.raises(ShapeError, match=message):
        make()


def test_a_window_has_no_negative_width():
    with pytest.raises(SettingError, match="before must be at least 0; got -1"):
        rg.window(before=-1)


@pytest.mark.parametrize(
    "mask",
    [
        rg.window(before=2, after=1, first=5),
        rg.window(before=2, after=1, first=-3),
        rg.window(before=0, after=0, first=30),
        rg.causal() & rg.lengths([9]),
        rg.documents([0, 0, 1, 3], torch.tensor([2] * 5 + [0] * 3 + [1] * 3)),
        rg.prefix(2) | rg.window(before=1, after=0),
        rg.where(lambda batch, head, query, key: (key - query) % 6 == 0),
    ],
)
def test_hidden_keys_are_those_that_no_query_sees(mask, monkeypatch):
    monkeypatch.setattr("regard.attention.masks.bound._HIDDEN_BLOCK", 20)
    monkeypatch.setattr("regard.attention.masks.bound._FINEST", 2)
    bound = mask.bind(1, 1, 4, 11)
    unseen = ~bound.dense().expand(1, 1, 4, 11).any(dim=2)
    hidden = bound.unseen
    assert torch.equal(torch.zeros_like(unseen) if hidden is None else hidden[..., 0], unseen)
