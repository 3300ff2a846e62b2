"""Products of bytes beside the same in whole numbers."""

import numpy as np
import pytest

from regard.kernels.products import bytewise
from regard.kernels.products.packed import in_lanes

f32 = np.float32
needs_bytes = pytest.mark.skipif(
    not bytewise.has_bytes(), reason="the processor has no AVX-512 VNNI"
)


def draw(rows, outputs, inputs):
    random = np.random.default_rng([rows, outputs, inputs])
    states = random.normal(size=(rows, inputs)).astype(f32)
    weight = random.integers(-127, 128, (outputs, inputs)).astype(np.int8)
    scales, bias = random.random(outputs).astype(f32), random.normal(size=outputs).astype(f32)
    return states, weight, scales, bias


def alone(rows, operations, work):
    work(0, rows)


def product(states, weight, scales, bias, share=alone):
    lanes = (in_lanes(each, bytewise.OUTPUTS) for each in (scales, bias))
    found = bytewise.product(states, bytewise.lay_out(weight), *lanes, share)
    return found[:, : len(weight)]


@pytest.mark.parametrize(("outputs", "inputs"), [(1, 1), (16, 4), (37, 13), (64, 32)])
def test_weights_are_given_back(outputs, inputs):
    weight = draw(1, outputs, inputs)[1]
    panels, ids = bytewise.lay_out(weight), np.arange(outputs)[::-1]
    np.testing.assert_array_equal(bytewise.weights_of(panels, ids, inputs), weight[ids])


@needs_bytes
@pytest.mark.parametrize("rows", [1, 2, 3, 7, 15, 97])
@pytest.mark.parametrize(("outputs", "inputs"), [(1, 1), (17, 13), (48, 64), (101, 33)])
def test_they_are_those_of_the_rounded(rows, outputs, inputs):
    states, weight, scales, bias = draw(rows, outputs, inputs)
    sizes = np.abs(states).max(axis=1, keepdims=True)
    whole = np.rint(states * (f32(127) / sizes)).astype(np.int64)
    right = (whole @ weight.T.astype(np.int64)) * (sizes / 127) * scales + bias
    np.testing.assert_allclose(product(states, weight, scales, bias), right, rtol=1e-5, atol=1e-3)


@needs_bytes
def test_a_state_has_the_same_in_any_company_and_in_parts():
    given = draw(103, 61, 97)
    whole = product(*given)
    for rows in ([0], [10], [7, 3], [9, 8, 1, 2, 5, 4, 0]):
        np.testing.assert_array_equal(product(given[0][rows], *given[1:]), whole[rows])

    def in_two(rows, operations, work):
        work(rows // 2, rows)
        work(0, rows // 2)

    np.testing.assert_array_equal(product(*given, in_two), whole)


@needs_bytes
def test_states_of_nothing_and_of_nan_stay_what_they_are():
    states, weight, scales, bias = draw(3, 9, 5)
    states[0], states[1, 2] = 0, np.nan
    found = product(states, weight, scales, bias)
    np.testing.assert_array_equal(found[0], bias)
    assert np.isnan(found[1]).all()
    assert np.isfinite(found[2]).all()
