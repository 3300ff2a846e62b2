"""The way of a call through the package: few functions, few files, and next to none when known."""

import sys
from pathlib import Path

import pytest
import torch

import regard as rg

PACKAGE = str(Path(rg.__file__).parent)


def walk(call):
    """The functions of the package that a call enters, each with its file."""
    steps = []

    def note(frame, event, _):
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(PACKAGE):
            steps.append((file.removeprefix(PACKAGE), frame.f_code.co_name))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        held = call()
    finally:
        sys.setprofile(before)
    assert held is not None
    return steps


@pytest.mark.usefixtures("unchecked_shapes")
def test_a_call_with_a_new_mask_takes_few_steps_and_the_next_hardly_any():
    query, key, value = torch.randn(3, 2, 4, 7, 16)
    n = torch.tensor([5, 7])

    def attend(mask):
        return mask, rg.attend(query, key, value, mask=mask)

    attend(rg.causal() & rg.lengths(n))  # modules are imported at their first use
    mask = rg.causal() & rg.lengths(n)
    steps = walk(lambda: attend(mask))
    assert len(steps) <= 50
    assert len({file for file, _ in steps}) <= 9
    assert len(walk(lambda: attend(mask))) <= 8
    assert len(walk(lambda: attend(rg.causal() & rg.lengths(n)))) <= 58


@pytest.mark.usefixtures("unchecked_shapes")
def test_a_call_of_many_numbers_takes_few_steps_when_known():
    query, key, value = torch.randn(3, 4, 8, 64, 64)
    mask = rg.lengths([5, 64, 3, 2])
    rg.attend(query, key, value, mask=mask)
    assert len(walk(lambda: rg.attend(query, key, value, mask=mask))) <= 26
