"""A prepared Transformer's encoder gives its decoder what the model's gives."""

import numpy as np
import pytest
import torch

from regard.attention import observe
from regard.runtime import in_precision
from regard.runtime.transformer import encoder
from regard.runtime.transformer.models import PreparedTransformer

from ..conftest import VOCAB, translator

pytestmark = pytest.mark.usefixtures("as_users_have_it")

PRECISIONS = ["float32", "int8"]


# Blocks of texts, each of one thread, and parts of layers, which all threads share.
WAYS = ["blocks", "parts"]


@pytest.fixture
def way(request, monkeypatch):
    """How threads share the loop, whatever the size of a model."""
    if request.param == "parts":
        monkeypatch.setattr(encoder, "MOST_BYTES", 0)
        monkeypatch.setattr(encoder, "BYTES_A_THREAD", 1)
    return request.param


def random_ids(lengths, *, longer=0):
    lengths = torch.tensor(lengths)
    return torch.randint(4, VOCAB, (len(lengths), int(lengths.max()) + longer)), lengths


def read(runtime, inputs):
    return runtime.start(*inputs).memory


def check_real(states, expected, lengths, *, atol):
    """Keys and values of what is no padding."""
    for b, length in enumerate(lengths.tolist()):
        np.testing.assert_allclose(
            states[:, b, :length], expected[:, b, :length], atol=atol, rtol=0
        )


def test_it_is_one_loop_unless_observed(monkeypatch):
    calls, read = [], encoder.EncoderLoop.__call__
    monkeypatch.setattr(
        encoder.EncoderLoop, "__call__", lambda *all: calls.append(all) or read(*all)
    )
    runtime, inputs, observed = PreparedTransformer(translator()), random_ids([3, 2]), []
    runtime.start(*inputs)
    assert len(calls) == 1
    with observe(observed.append):
        runtime.start(*inputs)
    assert len(calls) == 1
    assert [call.kind for call in observed] == ["encoder"]


@pytest.mark.parametrize("options", [{}, {"source_begin": True}], ids=str)
@pytest.mark.parametrize("way", WAYS, indirect=True)
def test_sources_without_tokens_leave_the_others_alone(options, way):
    runtime = PreparedTransformer(translator(**options))
    source, lengths = random_ids([0, 4, 0, 2])
    states = read(runtime, (source, lengths))
    for row in (1, 3):
        single = read(runtime, (source[row : row + 1, : lengths[row]], lengths[row : row + 1]))
        np.testing.assert_allclose(states[:, row, : lengths[row]], single[:, 0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "none"])
def test_sources_may_be_longer_than_the_table_of_positions(positions):
    model = translator(positions=positions, num_decoder_layers=1)
    runtime, inputs = PreparedTransformer(model), random_ids([67, 150])
    with torch.no_grad():
        check_real(read(runtime, inputs), runtime._read(*inputs), inputs[1], atol=1e-4)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("way", WAYS, indirect=True)
def test_a_source_has_the_same_states_in_any_batch_and_on_any_threads(precision, way):
    runtime = PreparedTransformer(in_precision(translator(num_encoder_layers=2), precision))
    random = torch.Generator().manual_seed(3)
    lengths = torch.randint(1, 20, (40,), generator=random)
    source = torch.randint(4, VOCAB, (40, 20), generator=random)
    batched = read(runtime, (source, lengths))
    for threads in (2, 3):
        torch.set_num_threads(threads)
        np.testing.assert_array_equal(read(runtime, (source, lengths)), batched)
    for rows in ([0], [39], [7, 3, 20], list(range(39, 4, -1))):
        part = read(runtime, (source[rows], lengths[rows]))
        for index, row in enumerate(rows):
            states, reference = (
                each[:, : lengths[row]] for each in (part[:, index], batched[:, row])
            )
            np.testing.assert_array_equal(states, reference)
