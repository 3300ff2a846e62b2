"""Any text is a mask or refused; any mask that can be written is read back; nothing is run."""

import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from regard.attention.masks.base import Mask
from regard.attention.masks.parse import parse_mask
from regard.errors import SettingError

numbers = st.integers(-3, 9).map(str)
counts = st.one_of(
    st.integers(0, 9).map(str), st.lists(st.integers(0, 9), min_size=2, max_size=2).map(str)
)
ids = st.lists(st.integers(0, 2), min_size=5, max_size=5).map(str)
sides = st.one_of(st.just("None"), st.integers(0, 5).map(str))
places = st.one_of(st.just("None"), numbers)
leaves = st.one_of(
    places.map("causal(first={})".format),
    st.tuples(sides, sides, places).map(lambda parts: f"window({', '.join(parts)})"),
    counts.map("prefix({})".format),
    counts.map("rg.lengths(n={})".format),
    ids.map("documents({})".format),
)
expressions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        inner.map("~{}".format),
        inner.map("({})".format),
        st.tuples(inner, st.sampled_from("&|"), inner).map(" ".join),
    ),
    max_leaves=6,
)
# Pieces of expressions in any order, which come close to being one.
scraps = st.lists(
    st.sampled_from(
        [*"()[]&|~=,- 10", "causal", "window(", "before=", "None", "lengths", "rg.", "é"]
    )
).map("".join)

_HOOKED: list[str] = []
_WATCHING = [False]


@pytest.fixture(scope="module", autouse=True)
def _watch():
    """Notes whatever the interpreter compiles or runs; a hook cannot be taken away again."""
    sys.addaudithook(lambda event, _: _HOOKED.append(event) if _WATCHING[0] else None)
    yield
    _WATCHING[0] = False


@given(expressions)
def test_what_is_written_draws_what_was_read(text):
    mask = parse_mask(text)
    again = parse_mask(repr(mask))
    assert repr(again) == repr(mask)
    assert again.draw(5, 5) == mask.draw(5, 5)


@given(st.one_of(st.text(), scraps))
@example("__import__('os').system('true')")
@example("(lambda: causal())()")
@example("[causal() for _ in [1]][0]")
@example("causal(first=1 if 1 else 2)")
@example("causal()\0")
@settings(max_examples=200)
def test_any_text_is_a_mask_or_refused_and_nothing_is_run(text):
    _HOOKED.clear()
    _WATCHING[0] = True
    try:
        mask: Mask | None = parse_mask(text)
    except SettingError:
        mask = None
    finally:
        _WATCHING[0] = False
    assert not {"compile", "exec", "import", "open"} & set(_HOOKED)
    assert mask is None or repr(parse_mask(repr(mask))) == repr(mask)
