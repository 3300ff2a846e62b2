import math
from pathlib import Path

import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import RunError
from regard.runs.state import join_state, pack_tensors, split_state, unpack_tensors

FILE = Path("model.safetensors")

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.int32]
DTYPES += [torch.int16, torch.int8, torch.uint8, torch.bool]


def packed(tensors):
    """The content of the file."""
    return b"".join(pack_tensors(tensors))


def through_bytes(state):
    tensors, plain = split_state(state)
    return join_state(unpack_tensors(packed(tensors), where=FILE), plain)


def same(left, right):
    """Equal in value, type and, for tensors, in every bit and in dtype and shape."""
    if type(left) is not type(right):
        return False
    if isinstance(left, torch.Tensor):
        return left.dtype == right.dtype and left.shape == right.shape and bits(left) == bits(right)
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float):
        return repr(left) == repr(right)
    return bool(left == right)


def bits(tensor):
    return bytes(tensor.reshape(-1).view(torch.uint8).tolist())


def test_every_dtype_comes_back_bit_for_bit():
    tensors = {str(dtype): (torch.randn(2, 3) * 9).to(dtype) for dtype in DTYPES}
    tensors |= {
        "scalar": torch.tensor(3.5),
        "empty": torch.zeros(0, 7),
        "nan": torch.tensor([math.nan]),
    }
    assert same(
        unpack_tensors(packed(tensors), where=FILE),
        {name: tensors[name] for name in sorted(tensors)},
    )


def test_the_same_tensors_are_the_same_bytes():
    shared = torch.randn(3, 2)
    tensors = {"b": torch.ones(2), "a": shared, "c": shared, "d": shared, "e": shared}
    shuffled = {name: tensors[name] for name in ("e", "c", "a", "d", "b")}
    strided = tensors | {"b": torch.ones(2, 2)[:, 0]}
    assert len({packed(each) for each in (tensors, shuffled, strided) for _ in range(9)}) == 1


def test_weights_are_packed_where_they_lie():
    weights = torch.randn(5, 3)
    _, part = pack_tensors({"w": weights})
    weights.zero_()
    assert bytes(part) == bytes(5 * 3 * 4)


def test_other_readers_of_safetensors_find_the_tensors():
    tensors = {"a": torch.ones(3, dtype=torch.int8), "b": torch.randn(2, 5), "c": torch.tensor(2)}
    found = safetensors.torch.load(packed(tensors))
    assert same({name: found[name] for name in sorted(found)}, tensors)


def test_numbers_without_a_name_in_the_file_are_refused():
    with pytest.raises(RunError, match=r"w must be of one of .*; got torch.complex128"):
        pack_tensors({"w": torch.zeros(2, dtype=torch.complex128)})


def test_tied_weights_are_stored_once_and_come_back_tied():
    table = torch.nn.Parameter(torch.randn(5, 3))
    content = packed({"decoder": table, "encoder": table.detach()})
    assert set(safetensors.torch.load(content)) == {"decoder"}
    loaded = unpack_tensors(content, where=FILE)
    assert loaded["decoder"] is loaded["encoder"]
    assert torch.equal(loaded["decoder"], table)


def test_views_of_one_memory_are_stored_separately():
    table = torch.randn(4, 3)
    views = {"all": table, "flat": table.view(-1), "part": table[1:], "turned": table.T}
    loaded = unpack_tensors(packed(views), where=FILE)
    assert all(torch.equal(loaded[name], view) for name, view in views.items())


def test_tensors_without_data_or_dense_layout_are_refused_by_name():
    with pytest.raises(
        RunError, match=r"a\.b must be a dense tensor to be saved; got a torch.sparse"
    ):
        pack_tensors({"a.b": torch.eye(2).to_sparse()})
    with pytest.raises(RunError, match=r"w must be a dense tensor .* got a tensor without data"):
        pack_tensors({"w": torch.zeros(2, device="meta")})


def test_names_that_would_collide_are_made_unique():
    state = {"a": {"b": torch.ones(1)}, "a.b": torch.zeros(1), "$int": 3, "": [torch.ones(2)]}
    assert same(through_bytes(state), state)


def test_a_value_that_cannot_be_saved_is_named():
    with pytest.raises(RunError, match=r"^a\.0 must be a number, text, .*; got set\.$"):
        split_state({"a": [{1, 2}]})


_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=2**200)
    | st.floats()
    | st.text()
)
_KEYS = st.text() | st.integers() | st.booleans() | st.sampled_from(["$int", "$items", "$tensor"])
_STATES = st.recursive(
    _LEAVES | st.sampled_from(DTYPES).map(lambda dtype: torch.ones(2, dtype=dtype)),
    lambda inner: (
        st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(_KEYS, inner, max_size=4)
    ),
    max_leaves=12,
)


@given(_STATES)
def test_any_state_comes_back_exactly(state):
    assert same(through_bytes(state), state)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("decoder.0.look.query.weight", "decoder.0.cross_attend.query.weight"),
        ("decoder.0.look_residual.norm.bias", "decoder.0.cross_attend_residual.norm.bias"),
        ("look.w", "attention.w"),
        ("pooling.pool.look.key.weight", "pooling.pool.attention.key.weight"),
        ("decoder.0.attend.query_key_value.weight",) * 2,
    ],
)
def test_names_of_older_runs_are_those_of_today(before, now):
    tensor = torch.ones(2)
    assert [*unpack_tensors(packed({before: tensor}), where=FILE)] == [now]
    assert through_bytes({"average": {before: tensor}})["average"].keys() == {now}
