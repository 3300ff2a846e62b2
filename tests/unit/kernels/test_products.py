"""Packed products in int8 and float32 against the same in float64, whatever the processor has."""

import numba
import numpy as np
import pytest
from llvmlite import ir
from tests import cases

from regard.kernels.products import int8, packed
from regard.kernels.products.packed import pack, pad

f32 = np.float32


def draw(rows, outputs, inputs):
    random = np.random.default_rng([rows, outputs, inputs])
    states = random.normal(size=(rows, inputs)).astype(f32)
    weight = random.integers(-127, 128, (outputs, inputs)).astype(np.int8)
    scales, bias = random.random(outputs).astype(f32), random.normal(size=outputs).astype(f32)
    return states, weight, scales, bias


def product(states, weight, scales, bias):
    lanes, panels = (pad(each, int8.OUTPUTS) for each in (scales, bias)), int8.pack(weight)
    rows, outputs = len(states), int8.OUTPUTS * len(panels)
    rounded = np.empty((rows, int8.INPUTS * panels.shape[1]), int8.ROUNDED)
    of_rows = (np.empty(rows, np.int32), np.empty(rows, f32))
    int8.round_rows(0, rows, states, states.shape[1], rounded, *of_rows)
    out = np.full((rows, outputs), np.nan, f32)
    int8.multiply_part(0, len(panels), rounded, panels, *of_rows, *lanes, out)
    return out[:, : len(weight)]


ROWS, OUTPUTS, INPUTS = [1, 2, 3, 4, 5, 13], [1, 7, 8, 9, 24, 29, 48, 57], [1, 2, 13, 64]


@pytest.mark.parametrize(("outputs", "inputs"), [(1, 1), (16, 4), (37, 13), (64, 32)])
def test_weights_are_given_back(outputs, inputs):
    weight = draw(1, outputs, inputs)[1]
    panels, ids = int8.pack(weight), np.arange(outputs)[::-1]
    np.testing.assert_array_equal(int8.unpack(panels, ids, inputs), weight[ids])


@cases.pairwise(rows=ROWS, outputs=OUTPUTS, inputs=INPUTS)
def test_they_are_those_of_the_formula(rows, outputs, inputs):
    states, weight, scales, bias = draw(rows, outputs, inputs)
    right = states.astype(np.float64) @ weight.T.astype(np.float64) * scales + bias
    # A state is off by half of one in 127 or 16,383 of its largest number, an output by as many.
    steps = 250 if int8.HAS_BYTES else 32_000
    most = np.abs(states).max(axis=1)[:, None] / steps * np.abs(weight.astype(int)).sum(axis=1)
    away = np.abs(product(states, weight, scales, bias) - right)
    assert (away <= most * scales + 1e-4).all()
    assert away.max() > 0


@pytest.mark.parametrize("inputs", [64, 5001])
def test_no_sum_overflows(inputs):
    states, weight = np.ones((2, inputs), f32), np.full((9, inputs), 127, np.int8)
    ones, zeros = np.ones(9, f32), np.zeros(9, f32)
    np.testing.assert_allclose(product(states, weight, ones, zeros), 127 * inputs, rtol=1e-6)
    np.testing.assert_allclose(product(-states, weight, ones, zeros), -127 * inputs, rtol=1e-6)


def test_states_of_nothing_and_of_nan_stay_what_they_are():
    states, weight, scales, bias = draw(3, 9, 5)
    states[0], states[1, 2] = 0, np.nan
    outputs = product(states, weight, scales, bias)
    np.testing.assert_array_equal(outputs[0], bias)
    assert np.isnan(outputs[1]).all()
    assert np.isfinite(outputs[2]).all()


@pytest.mark.skipif(int8.HAS_BYTES, reason="it multiplies bytes")
def test_a_processor_without_pairs_gets_the_same(monkeypatch):
    states, weight, scales, bias = draw(3, 9, 5)
    right = product(states, weight, scales, bias)
    monkeypatch.setattr(packed, "_HAS_PAIRS", False)
    by_tiles = packed.tiling(packed.PAIRS)

    @numba.njit
    def multiply_all(states, weight, begins, sizes, scales, bias, out):
        by_tiles(0, len(weight), states, weight, begins, sizes, scales, bias, out)

    sizes = np.abs(states).max(axis=1) / f32(16383)
    whole, begins = np.zeros((3, 6), np.int16), np.zeros(3, np.int32)
    whole[:, :5] = np.rint(states / sizes[:, None])
    out = np.zeros((3, 16), f32)
    multiply_all(whole, int8.pack(weight), begins, sizes, pad(scales, 8), pad(bias, 8), out)
    np.testing.assert_allclose(out[:, :9], right, rtol=1e-6, atol=1e-4)


@numba.njit
def multiply_plainly(states, weight, bias, out):
    packed.plain_rows(states, weight, bias, out)


def plain_product(states, weight, bias):
    out = np.full((len(states), len(weight)), np.nan, f32)
    multiply_plainly(states, pack(weight), pad(bias), out)
    return out


@pytest.mark.parametrize("width", [8, 16])
def test_products_are_the_same_whatever_fits_into_a_register(width):
    sums = ir.VectorType(ir.FloatType(), width)
    tiles = {"step": 4 * width, "heights": (8, 5, 4, 2, 1), "block": 11}
    kind = packed.PLAIN._replace(sums=sums, weights=sums, **tiles)

    by_tiles = packed.tiling(kind)

    @numba.njit
    def multiply_all(first, stop, states, weight, bias, out):
        by_tiles(first, stop, states, weight, bias, bias, bias, bias, out)

    for rows in (1, 7, 19):
        states, weight, _, bias = draw(rows, 8 * width, 29)
        weight = weight.astype(f32)
        laid_out = np.ascontiguousarray(weight.reshape(8, width, 29).transpose(0, 2, 1))
        out = np.full((rows, 8 * width), np.nan, f32)
        multiply_all(0, 3, states, laid_out, bias, out)
        assert np.isnan(out[:, 3 * width :]).all()
        multiply_all(3, 8, states, laid_out, bias, out)
        np.testing.assert_array_equal(out, plain_product(states, weight, bias))


@pytest.mark.parametrize(
    ("features", "supported"),
    [("+avx2,+fma", {"avx2"}), (None, set()), ("+avx2,+avx512vnni", None)],
)
def test_loops_may_be_compiled_for_another_processor(features, supported, monkeypatch):
    monkeypatch.setenv("NUMBA_CPU_NAME", "haswell")
    monkeypatch.setenv("NUMBA_CPU_FEATURES", features or "")
    both = {"avx2", "avx512vnni"}
    assert {each for each in both if packed.has(each)} == (both if supported is None else supported)
