"""Weights in other numbers: what becomes of a model, and what is refused."""

import pytest
import torch
from torch import nn

from regard.errors import SettingError
from regard.models import Decoder, DecoderConfig, Encoder, EncoderConfig
from regard.runtime import in_precision, prepared, preparing
from regard.runtime.products import Int8Embedding, Int8Linear

from . import conftest
from .conftest import VOCAB, recurrent_translator

SIZES = {"model_dim": 32, "num_heads": 4, "ffn_dim": 48}


def translator(**options):
    torch.manual_seed(0)
    return conftest.translator(**SIZES, **options)


def kinds(model):
    return {type(each) for each in model.modules()}


def first_step(model):
    ids = torch.randint(4, VOCAB, (3, 5), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        state = model.start(ids, torch.tensor([5, 2, 4]))
        return model.step(torch.full((3,), 2), state)[0]


@pytest.mark.parametrize("tied", ["all", "target", "none"])
@pytest.mark.parametrize("values", ["states", "embeddings"])
def test_a_translator_in_int8_is_nearly_the_same(tied, values):
    exact = first_step(translator(tie_embeddings=tied, values=values))
    model = in_precision(translator(tie_embeddings=tied, values=values), "int8")
    rounded = first_step(model)
    assert 0 < (rounded - exact).abs().max() < 0.4 * exact.std()
    # All products with weights but one of two inputs, and all tables.
    floats = [each for each in model.modules() if isinstance(each, nn.Linear)]
    assert len(floats) == (2 if values == "embeddings" else 0)
    assert model.source_embedding is model.target_embedding or tied != "all"
    assert isinstance(model.output, Int8Embedding)


@pytest.mark.parametrize("kind", [Decoder, Encoder])
def test_models_of_one_text_in_int8_are_nearly_the_same(kind):
    torch.manual_seed(0)
    config = DecoderConfig if kind is Decoder else EncoderConfig
    model = kind(config(**SIZES, num_layers=2), vocab_size=60).eval()
    ids = torch.randint(4, 60, (3, 5))
    with torch.no_grad():
        exact, rounded = model(ids), in_precision(model, "int8")(ids)
    assert 0 < (rounded - exact).abs().max() < 0.4 * exact.std()
    assert Int8Linear in kinds(model)
    assert nn.Linear not in kinds(model)


@pytest.mark.parametrize("name", ["auto", "float32"])
def test_nothing_is_rounded_by_default(name):
    exact = first_step(translator())
    assert torch.equal(first_step(in_precision(translator(), name)), exact)


def test_a_prepared_model_in_int8_does_as_the_model_does():
    model = in_precision(translator(), "int8")
    fast = prepared(model)
    assert fast is not model
    slow = first_step(model)
    # A rounding that falls the other way is a step of 1/127 in one number of many.
    assert (first_step(fast) - slow).abs().max() < 0.2 * slow.std()


def test_bfloat16_is_for_processors_that_multiply_it(monkeypatch):
    monkeypatch.setattr(preparing, "multiplies_bfloat16", lambda device: False)
    with pytest.raises(SettingError, match=r"got bfloat16, .* Use int8"):
        in_precision(translator(), "bfloat16")
    monkeypatch.setattr(preparing, "multiplies_bfloat16", lambda device: True)
    model = in_precision(translator(), "bfloat16")
    assert {p.dtype for p in model.parameters()} == {torch.bfloat16}


def test_what_cannot_be_rounded_is_named(monkeypatch):
    with pytest.raises(SettingError, match=r"it has no layers of a Transformer.*Use float32"):
        in_precision(recurrent_translator(), "int8")
    monkeypatch.setattr(preparing, "why_not", lambda: "numba cannot be loaded")
    with pytest.raises(SettingError, match=r"got int8, but numba cannot be loaded"):
        in_precision(translator(), "int8")
