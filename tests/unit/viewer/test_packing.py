import base64
import zlib
from dataclasses import replace

import numpy as np
import pytest

from regard.errors import DataError, SettingError
from regard.viewer import pack, pack_integers

H, N = 3, 11


@pytest.fixture
def draw():
    return np.random.default_rng(0)


@pytest.mark.parametrize("bits", [8, 16])
def test_linear_values_are_within_half_a_step(bits, draw):
    values = draw.normal(2, 5, (H, N))
    packed = pack(values, bits=bits)
    error = np.abs(packed.values() - values).max()
    assert packed.step == pytest.approx((values.max() - values.min()) / (2**bits - 1) / 2)
    assert error <= packed.step * (1 + 1e-9)


@pytest.mark.parametrize(("bits", "most"), [(8, 0.033), (16, 1.3e-4)])
def test_log_values_are_within_a_ratio_and_zeros_stay(bits, most, draw):
    values = 10 ** draw.uniform(-6.9, 0, (H, N)) * 500
    values[1, 3] = 0
    values[0, 0], values[0, 1] = 500, 500 * 10**-6.9  # the whole range
    packed = pack(values, bits=bits, scale="log")
    unpacked = packed.values()
    assert unpacked[1, 3] == 0
    is_positive = values > 0
    error = np.abs(unpacked[is_positive] / values[is_positive] - 1).max()
    assert error <= packed.step * (1 + 1e-6)
    assert packed.step < most


@pytest.mark.parametrize("values", [[], [0.0], [5.0], [3.0, 3.0], np.zeros((2, 0, 3))])
@pytest.mark.parametrize("scale", ["linear", "log"])
def test_empty_and_even_arrays_come_back(values, scale):
    array = np.asarray(values, dtype=float)
    packed = pack(array, scale=scale)
    assert packed.values() == pytest.approx(array)
    assert packed.values().shape == array.shape


@pytest.mark.parametrize(("most", "bits"), [(65_534, 16), (65_535, 32), (2**31, 32)])
def test_whole_numbers_are_exact(most, bits):
    values = [-1, 0, 1, 255, 256, most]
    packed = pack_integers(values)
    assert packed.bits == bits
    assert packed.values().tolist() == values


def test_planes_stand_highest_byte_first():
    packed = pack_integers([0x0102 - 1, 0x0304 - 1])
    assert zlib.decompress(base64.b64decode(packed.data), -15) == bytes([1, 3, 2, 4])


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"bits": 12}, DataError, "bits must be 8, 16 or 32; got 12"),
        ({"shape": (2, -1)}, SettingError, "shape must be at least 0; got -1"),
        ({"low": 2.0}, DataError, "low must be at most high; got 2.0 and 1.0"),
        ({"low": float("nan")}, DataError, "low must be at most high; got nan"),
        ({"scale": "log", "low": 0.0}, DataError, "low must be above 0 on a log scale; got 0.0"),
    ],
)
def test_a_scale_that_cannot_be_is_refused(changes, error, message):
    with pytest.raises(error, match=message):
        replace(pack([0.0, 1.0]), **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": "!!!"}, "data must be deflated bytes in base 64"),
        ({"data": base64.b64encode(b"\xff\xff").decode()}, "data must be deflated bytes"),
        ({"shape": (3,)}, r"data must hold 3 bytes, as shape \[3\] of 8 bits says; got 2"),
        ({"shape": (1,)}, "data must hold 1 bytes.*got more"),
        ({"shape": (1 << 20, 1 << 20)}, "shape must be of at most 1073741824 bytes"),
    ],
)
def test_damaged_bytes_are_refused(changes, message):
    packed = replace(pack([0.0, 1.0]), **changes)
    with pytest.raises(DataError, match=message):
        packed.checked()


def test_bytes_that_unfold_without_end_are_refused_at_once():
    bomb = zlib.compressobj(9, wbits=-15)
    data = base64.b64encode(bomb.compress(bytes(1 << 24)) + bomb.flush()).decode()
    with pytest.raises(DataError, match="data must hold 2 bytes"):
        replace(pack([0.0, 1.0]), data=data).checked()


@pytest.mark.parametrize("bits", [16, 32])
@pytest.mark.parametrize("shape", [(7, 3), (2, 5, 3), (2, 0, 3), (1, 1)])
def test_steps_are_the_numbers_again(bits, shape):
    most = 2**16 - 2 if bits == 16 else 2**31
    values = np.random.default_rng(0).integers(-1, most, shape)
    packed = pack_integers(np.where(values == most - 1, -1, values), steps=True)
    assert packed.values().tolist() == values.tolist()
    weights = np.random.default_rng(1).random(shape)
    packed = pack(weights, scale="log", steps=True)
    assert packed.values() == pytest.approx(pack(weights, scale="log").values())


def test_steps_need_two_axes():
    with pytest.raises(DataError, match=r"shape must have two axes for steps; got \[3\]"):
        pack_integers([1, 2, 3], steps=True)
