"""A prepared recurrent encoder reads as the encoder does."""

import pytest
import torch

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
