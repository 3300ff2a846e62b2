"""Every way of attention learns to write digits down, backwards or again, within seconds."""

import pytest
import torch
from tests.cases import slow_but
from torch.nn import functional as F

from regard.models import MODELS
from regard.text import BOS_ID, EOS_ID

from .conftest import train

DIGITS, MOST, B = 8, 4, 32
RECURRENT = {"embed_dim": 24, "hidden_dim": 24, "attention_dim": 24, "dropout": 0.0}
LUONG = RECURRENT | {"decoder": "luong", "attention": "general"}
LAYERS = {"num_encoder_layers": 1, "num_decoder_layers": 1}
TRANSFORMER = {"model_dim": 32, "num_heads": 4, "ffn_dim": 64, "dropout": 0.0, "norm": "pre"}
TRANSFORMER |= LAYERS
CONVOLUTIONAL = {"embed_dim": 24, "hidden_dim": 24, "dropout": 0.0, "num_encoder_layers": 2}

# Architecture, settings, whether digits are to be reversed (what only moves on cannot), updates.
KINDS = {
    "luong general": ("rnn_seq2seq", LUONG, True, 100),
    "local-p": ("rnn_seq2seq", LUONG | {"local": "predictive", "reach": 2}, False, 100),
    "hard": ("rnn_seq2seq", RECURRENT | {"hard": True}, True, 150),
    "mixture": ("rnn_seq2seq", RECURRENT | {"attention": "mixture"}, False, 100),
    "coverage, copying": ("rnn_seq2seq", RECURRENT | {"coverage": True, "copy": True}, True, 100),
    "convolutional": ("conv_seq2seq", CONVOLUTIONAL, True, 120),
    "batch norm": ("transformer", TRANSFORMER | {"norm_kind": "batch"}, True, 120),
    "transformer additive": ("transformer", TRANSFORMER | {"score": "additive"}, True, 120),
    "transformer copying": ("transformer", TRANSFORMER | {"copy": True}, True, 120),
}
# Shape checks at every step would take longer than the steps.
pytestmark = pytest.mark.usefixtures("as_users_have_it")


def digits(count, is_reversed, generator):
    """Sources, their lengths, targets shifted right, labels; -1 where there is none."""
    lengths = torch.randint(2, MOST + 1, (count,), generator=generator)
    source = torch.randint(4, 4 + DIGITS, (count, MOST + 1), generator=generator)
    positions = torch.arange(MOST + 1)
    source = torch.where(positions < lengths[:, None], source, 0)
    order = (
        (lengths[:, None] - 1 - positions).clamp(min=0)
        if is_reversed
        else positions.expand_as(source)
    )
    labels = source.gather(1, order).masked_fill(positions > lengths[:, None], -1)
    labels.scatter_(1, lengths[:, None], EOS_ID)
    target = torch.cat([torch.full((count, 1), BOS_ID), labels[:, :-1].clamp(min=0)], 1)
    source.scatter_(1, lengths[:, None], EOS_ID)
    return source, lengths + 1, target, labels


# One architecture at once; its other settings with the slow tests.
QUICK = {"convolutional", "luong general", "transformer additive"}


@pytest.mark.parametrize("kind", slow_but(QUICK, sorted(KINDS)))
def test_digits_are_learned(kind):
    name, settings, is_reversed, updates = KINDS[kind]
    config, architecture = MODELS[name].config, MODELS[name].load()
    model = architecture(config(**settings), source_vocab=12, target_vocab=12, shared_vocab=True)
    generator = torch.Generator().manual_seed(5)

    def loss_of(_):
        source, lengths, target, labels = digits(B, is_reversed, generator)
        states, auxiliary = model(source, lengths, target, lengths)
        logits = model.project(states).flatten(0, 1)
        loss = F.cross_entropy(logits, labels.flatten(), ignore_index=-1, reduction="sum")
        loss = loss if auxiliary is None else loss + auxiliary
        return loss / lengths.sum()

    train(model, loss_of, steps=updates, clip=1.0)
    source, lengths, target, labels = digits(200, is_reversed, generator)
    with torch.no_grad():
        predicted = model.project(model(source, lengths, target, lengths)[0]).argmax(-1)
    accuracy = ((predicted == labels) | (labels < 0)).all(1).float().mean().item()
    # By chance, one in 64 at best; without a way to see the source, no more.
    assert accuracy > 0.6
