import warnings

import pytest
import torch

from regard.devices import finding
from regard.devices.finding import SlowWarning, multiplies_bfloat16, warn_of_slow_bfloat16
from regard.layers import MultiHeadAttention

CPU = torch.device("cpu")
NAMES = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")


@pytest.fixture
def processor(monkeypatch):
    """Sets what the processor supports, and clears the cached answer."""
    finding._warn.cache_clear()

    def able(*abilities):
        for name, ability in zip(NAMES, abilities, strict=True):
            monkeypatch.setattr(torch.cpu, name, lambda ability=ability: ability, raising=False)

    yield able
    finding._warn.cache_clear()


@pytest.mark.parametrize("abilities", [(True, False), (False, True), (False, False)])
def test_the_processor_decides(processor, abilities):
    processor(*abilities)
    assert multiplies_bfloat16(CPU) == any(abilities)


def test_float32_is_right_where_torch_cannot_say(monkeypatch):
    for name in NAMES:
        monkeypatch.delattr(torch.cpu, name, raising=False)
    assert not multiplies_bfloat16(CPU)


def test_devices_that_nobody_knows_do_not():
    assert not multiplies_bfloat16(torch.device("meta"))


def test_a_model_in_bfloat16_is_warned_of_once_where_it_is_slow(processor):
    layer, states = MultiHeadAttention(8, 2).to(torch.bfloat16), torch.zeros(1, 3, 8).bfloat16()
    processor(False, True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer(states)
        processor(False, False)
        layer.float()(states.float())
    with pytest.warns(SlowWarning, match="without AVX-512 BF16 and AMX"):
        layer.bfloat16()(states)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer(states)


def test_other_devices_are_not_warned_of(processor):
    processor(False, False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_slow_bfloat16(torch.device("meta"))
