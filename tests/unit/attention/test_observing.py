"""Observers see every call, and change nothing."""

import threading

import torch

from regard.attention import Additive, at, attend, causal, observe, weights
from regard.attention.observing import current_location


def test_the_observer_sees_enough_to_work_the_weights_out_again(make_inputs):
    query, key, value = make_inputs()
    score, bias, calls = Additive(torch.ones(11).double()), torch.randn(5, 7).double(), []
    with observe(calls.append), at("cross", 3):
        out = attend(query, key, value, score=score, mask=causal(), bias=bias)
    (call,) = calls
    rows = weights(
        call.query,
        call.key,
        score=call.score,
        mask=call.mask,
        bias=call.bias,
        weighting=call.weighting,
    )
    torch.testing.assert_close(rows @ value, out)
    assert (call.kind, call.layer) == ("cross", 3)


def test_without_a_layer_the_kind_is_empty(make_inputs):
    calls = []
    with observe(calls.append):
        attend(*make_inputs())
        with at("encoder", 1):
            pass
        attend(*make_inputs())
    assert [(call.kind, call.layer) for call in calls] == [("", -1), ("", -1)]


def test_nothing_is_observed_after_the_block_even_if_it_failed(make_inputs):
    calls = []
    try:
        with observe(calls.append), at("decoder", 0):
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    attend(*make_inputs())
    assert calls == []
    assert current_location() == ("", -1)


def test_another_thread_is_not_observed(make_inputs):
    calls = []
    with observe(calls.append):
        thread = threading.Thread(target=lambda: attend(*make_inputs()))
        thread.start()
        thread.join()
    assert calls == []
