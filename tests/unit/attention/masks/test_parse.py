"""Masks written as text: what is read, what is refused, and what a mask writes of itself."""

import pytest
import torch

from regard.attention import causal, dense, documents, lengths, prefix, where, window
from regard.attention.masks.parse import LONGEST, MOST, parse_mask
from regard.errors import SettingError

WRITTEN = {
    "causal()": causal(),
    "causal(first=-2)": causal(first=-2),
    "window()": window(),
    "window(before=4)": window(before=4),
    "window(before=1, after=0, first=3)": window(before=1, after=0, first=3),
    "lengths(3)": lengths(3),
    "lengths([3, 2])": lengths([3, 2]),
    "prefix([[1, 2, 3], [3, 2, 1]])": prefix(torch.tensor([[1, 2, 3], [3, 2, 1]])),
    "documents([[0, 0, 1], [0, 1, 1]])": documents(torch.tensor([[0, 0, 1], [0, 1, 1]])),
    "documents([0, 0, 7])": documents([0, 0, 7]),
    "documents([0, 0, 1], [1, 1, 0, 0, 0])": documents([0, 0, 1], torch.tensor([1, 1, 0, 0, 0])),
    "~causal()": ~causal(),
    "causal() & prefix(1)": causal() & prefix(1),
    "causal() | prefix(1)": causal() | prefix(1),
    "causal() & window(before=1) | prefix(1)": causal() & window(before=1) | prefix(1),
    "(causal() | prefix(1)) & lengths(3)": (causal() | prefix(1)) & lengths(3),
    "~(causal() & prefix(1))": ~(causal() & prefix(1)),
    "causal() | prefix(1) | prefix(2)": causal() | prefix(1) | prefix(2),
    "causal() & prefix(1) & prefix(2)": causal() & prefix(1) & prefix(2),
    "causal() | ~prefix(1)": causal() | ~prefix(1),
}
SQUARE = ("documents([0, 0, 7])", "documents([[0, 0, 1], [0, 1, 1]])")


@pytest.mark.parametrize("text", WRITTEN)
def test_a_mask_is_read_and_written_alike(text):
    assert repr(WRITTEN[text]) == text
    assert repr(parse_mask(text)) == text
    keys = 3 if text in SQUARE else 5
    assert parse_mask(text).draw(3, keys) == WRITTEN[text].draw(3, keys)


def test_spaces_prefixes_positions_of_arguments_and_trailing_commas_do_not_matter():
    text = " rg.causal( )&\n regard.window( 1 ,after = None, )|prefix( n=[ 2, ] ) "
    assert repr(parse_mask(text)) == "causal() & window(before=1) | prefix([2])"


def test_not_binds_before_and_before_or():
    loose = parse_mask("prefix(2) | ~causal() & prefix(1)").draw(3, 3)
    assert loose == parse_mask("prefix(2) | ((~causal()) & prefix(1))").draw(3, 3)
    assert loose != parse_mask("(prefix(2) | ~causal()) & prefix(1)").draw(3, 3)
    assert loose != parse_mask("prefix(2) | ~(causal() & prefix(1))").draw(3, 3)


def test_masks_that_no_text_can_hold_say_what_they_are():
    assert repr(dense(torch.eye(2, dtype=torch.bool))) == "dense([[True, False], [False, True]])"
    assert repr(where(lambda batch, head, query, key: query == key)) == "where(<lambda>)"
    assert repr(lengths(torch.zeros(1000, dtype=torch.long))) == (
        "lengths(<torch.int64 of shape (1000,)>)"
    )


REFUSED = {
    "": r"mask must be an expression such as .*; got the end at character 1\.",
    "casual()": r"prefix, window; got 'casual' at character 1\. Did you mean 'causal'\?",
    "causal() & __import__('os')": r"prefix, window; got '__import__' at character 12\.",
    "causal()causal()": r"an expression such as .*; got 'causal' at character 9\.",
    "causal": r"an expression such as .*; got the end at character 7\.",
    "causal(first)": r"a whole number, None or a list here; got 'first' at character 8\.",
    "window(befor=1)": r"before or after or first; got 'befor' at .* 8\. Did you mean 'before'\?",
    "window(1, 2, 3, 4)": r"window must be given at most 3 arguments; got '4' at character 17\.",
    "window(1, before=2)": r"window must be given before once; got 'before' at character 11\.",
    "window(before=1, 2)": r"an expression such as .*; got '2' at character 18\.",
    "window(before=-1)": r"before must be at least 0; got -1\. It is at character 1\.",
    "causal() & prefix()": r"prefix must be given n; got nothing at character 12\.",
    "causal(first=[1])": r"first of causal must be a whole number or None; got '\[' at .* 14\.",
    "lengths(None)": r"n of lengths must be whole numbers; got 'None' at character 9\.",
    "lengths([1, [2]])": r"n of lengths must be whole numbers; got '\[' at character 9\.",
    "documents([[0], [1, 2]])": r"query_ids of documents must be a list of whole numbers",
    "documents(3)": r"query_ids of documents must be a list of whole numbers; got '3' at",
    "prefix([[[1]]])": r"a whole number, None or a list here; got '\[' at character 10\.",
    "prefix(2147483648)": r"numbers up to 2147483647; got '2147483648' at character 8\.",
    "prefix(" + "9" * 5000 + ")": r"numbers up to 2147483647; got",
    "~" * 60 + "causal()": r"nested at most 50 deep; got more at character 51\.",
    "(" * 60 + "causal()" + ")" * 60: r"nested at most 50 deep; got more at character 51\.",
    "causal" + "()" * 4000: r"an expression such as .*; got '\(' at character 9\.",
    "prefix(" + "-" * 5000 + "1)": r"a whole number, None or a list here; got '-' at character 8\.",
    "dense(1)": r"got 'dense' at character 1, which takes a tensor\. Call rg\.dense in Python\.",
    "where(1)": r"got 'where' at character 1, which takes a function\.",
    "causal(True)": r"a whole number, None or a list here; got 'True' at character 8\.",
    "causal(**None)": r"a whole number, None or a list here; got '\*' at character 8\.",
    "causal(0x10)": r"an expression such as .*; got 'x10' at character 9\.",
    "causal() if causal() else causal()": r"an expression such as .*; got 'if' at character 10\.",
    " " * (LONGEST + 1): r"mask must be at most 10000 characters long; got 10001\.",
}


@pytest.mark.parametrize("text", REFUSED, ids=[text[:30] for text in REFUSED])
def test_what_is_no_expression_is_refused_with_its_position(text):
    with pytest.raises(SettingError, match=REFUSED[text]):
        parse_mask(text)


@pytest.mark.parametrize("text", ["lengths([])", "lengths([[], []])", "causal(first=[[], []])"])
def test_a_list_of_nothing_is_no_list_of_numbers(text):
    with pytest.raises(SettingError, match=r"must be .*whole number"):
        parse_mask(text)


def test_a_hundred_masks_are_joined_and_no_more():
    assert repr(parse_mask("|".join(["causal()"] * MOST))).count("causal()") == MOST
    with pytest.raises(SettingError, match="mask must join at most 100 masks; got 101"):
        parse_mask("|".join(["causal()"] * (MOST + 1)))
