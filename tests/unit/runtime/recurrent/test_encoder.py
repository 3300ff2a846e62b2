"""A prepared recurrent encoder reads as the encoder does."""

import numpy as np
import pytest
import torch

from regard.kernels import recurrent as recurrent_kernels
from regard.layers import RecurrentEncoder
from regard.runtime.recurrent.decoder import PreparedEncoder

from ..conftest import shaken

pytestmark = pytest.mark.usefixtures("as_users_have_it")

X, H = 5, 7


def encoder(cell="gru", layers=1):
    return shaken(RecurrentEncoder(cell, X, H, num_layers=layers))


def check(model, inputs, lengths):
    with torch.no_grad():
        right = model(inputs, lengths)
    padding = torch.arange(inputs.shape[1]) >= lengths[:, None]
    hidden = inputs.masked_fill(padding[..., None], torch.nan)  # which is never read
    for one, other in zip(PreparedEncoder(model)(hidden, lengths), right, strict=True):
        torch.testing.assert_close(one, other, atol=3e-6, rtol=0)


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize(
    "lengths", [[3], [1], [4, 4], [2, 6, 1, 6, 3], list(range(1, 14))], ids=str
)
def test_it_reads_as_the_encoder_does(cell, layers, lengths):
    lengths = torch.tensor(lengths)
    for longer in (0, 2):
        inputs = torch.randn(len(lengths), int(lengths.max()) + longer, X)
        check(encoder(cell, layers), inputs, lengths)


@pytest.mark.parametrize("rows", [8, 9, 64, 65, 150])
def test_all_sentences_are_reached_in_blocks(rows):
    check(encoder(), torch.randn(rows, 5, X), torch.randint(1, 6, (rows,)))


def test_a_relu_is_no_tanh():
    model = encoder("rnn")
    model.recurrence.mode = "RNN_RELU"
    inputs = torch.randn(2, 3, X)
    states, _ = PreparedEncoder(model)(inputs, torch.tensor([3, 3]))
    plain = torch.nn.RNN(X, H, nonlinearity="relu", batch_first=True, bidirectional=True)
    plain.load_state_dict(model.recurrence.state_dict())
    torch.testing.assert_close(states, plain(inputs)[0], atol=3e-6, rtol=0)


def test_only_the_sentences_asked_for_are_read():
    model, inputs = PreparedEncoder(encoder()), np.random.default_rng(0).normal(size=(5, 4, X))
    given = inputs.astype(np.float32), np.array([2, 4, 1, 4, 3]), np.array([1, 3, 4, 0, 2])
    found = []
    for first, stop in ((0, 5), (1, 3)):
        states, last = np.full((5, 4, 2 * H), 9, np.float32), np.full((5, 2 * H), 9, np.float32)
        recurrent_kernels.encode(first, stop, *given, model._weights, model._cell, states, last)
        found.append((states, last))
    (states, last), (part, part_last) = found
    np.testing.assert_allclose(part[[3, 4], :3], states[[3, 4], :3], atol=1e-6)
    np.testing.assert_allclose(part_last[[3, 4]], last[[3, 4]], atol=1e-6)
    assert (part[[0, 1, 2]] == 9).all()
    assert (part_last[[0, 1, 2]] == 9).all()
    assert (part[4, 3:] == 9).all()  # padding


def test_what_a_sentence_gets_does_not_depend_on_longer_ones():
    model = PreparedEncoder(encoder("lstm", 2))
    inputs, lengths = torch.randn(20, 9, X), torch.randint(1, 10, (20,))
    states, last = model(inputs, lengths)
    for row in range(20):
        alone, end = model(inputs[row : row + 1], lengths[row : row + 1])
        torch.testing.assert_close(alone, states[row : row + 1], atol=1e-6, rtol=0)
        torch.testing.assert_close(end, last[row : row + 1], atol=1e-6, rtol=0)
