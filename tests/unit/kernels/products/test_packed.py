"""Products of weights in panels beside the same in float64."""

import numba
import numpy as np
import pytest
from llvmlite import ir
from tests import cases

from regard.kernels.products import packed as panels
from regard.kernels.products.packed import pack, pad

f32 = np.float32


def draw(rows, outputs, inputs):
    random = np.random.default_rng([rows, outputs, inputs])
    states = random.normal(size=(rows, inputs)).astype(f32)
    weight = random.integers(-127, 128, (outputs, inputs)).astype(np.int8)
    scales, bias = random.random(outputs).astype(f32), random.normal(size=outputs).astype(f32)
    return states, weight, scales, bias


ROWS, OUTPUTS, INPUTS = [1, 2, 3, 4, 5, 13], [1, 7, 8, 9, 24, 29, 48, 57], [1, 2, 13, 64]


@numba.njit
def multiply_plainly(states, weight, bias, out):
    panels.plain_rows(states, weight, bias, out)


def plain_product(states, weight, bias):
    out = np.full((len(states), len(weight)), np.nan, f32)
    multiply_plainly(states, pack(weight), pad(bias), out)
    return out


@cases.pairwise(rows=ROWS, outputs=OUTPUTS, inputs=INPUTS)
def test_in_float32_they_are_those_of_the_formula(rows, outputs, inputs):
    states, weight, scales, bias = draw(rows, outputs, inputs)
    weight = weight.astype(f32) * scales[:, None]
    right = states.astype(np.float64) @ weight.T.astype(np.float64) + bias
    np.testing.assert_allclose(plain_product(states, weight, bias), right, rtol=1e-5, atol=3e-4)


def test_in_float32_a_state_has_the_same_in_any_company():
    states, weight, _, bias = draw(11, 61, 97)
    weight = weight.astype(f32)
    whole = plain_product(states, weight, bias)
    for rows in ([0], [10], [7, 3], [9, 8, 1, 2, 5, 4, 0]):
        part = plain_product(np.ascontiguousarray(states[rows]), weight, bias)
        np.testing.assert_array_equal(part, whole[rows])


@pytest.mark.parametrize("width", [8, 16])
def test_products_are_the_same_whatever_fits_into_a_register(width):
    class Kind(panels._Plain):
        sums, step = ir.VectorType(ir.FloatType(), width), 4 * width
        heights, block = (8, 5, 4, 2, 1), 11

    by_tiles = panels.tiling(Kind)

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
    ("features", "held"), [("+avx2,+fma", {"avx2"}), (None, set()), ("+avx2,+avx512vnni", None)]
)
def test_loops_may_be_compiled_for_another_processor(features, held, monkeypatch):
    monkeypatch.setattr(numba.config, "CPU_NAME", "haswell")
    monkeypatch.setattr(numba.config, "CPU_FEATURES", features)
    both = {"avx2", "avx512vnni"}
    assert {each for each in both if panels.has(each)} == (both if held is None else held)
