"""The encoder and its pretraining: padding, segments, observers, tied tables, a toy job."""

import math

import pytest
import torch
from torch.nn import functional as F

from regard.errors import SettingError, ShapeError
from regard.models import Encoder, EncoderConfig, MaskedLanguageModel

B, N, VOCAB = 3, 7, 19
SIZES = {"model_dim": 12, "num_heads": 2, "num_layers": 2, "ffn_dim": 17, "dropout": 0.0}
KINDS = {
    "bert": {},
    "pre": {"norm": "pre", "norm_kind": "rms", "activation": "swiglu"},
    "rotary": {"positions": "rotary", "num_segments": 0, "activation": "relu"},
}
KINDS["sinusoidal"] = {"positions": "sinusoidal", "max_length": 2}  # has no limit
every_kind = pytest.mark.parametrize("kind", sorted(KINDS))


def model(kind="bert"):
    model = MaskedLanguageModel(EncoderConfig(**SIZES | KINDS[kind]), vocab_size=VOCAB).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


@every_kind
def test_padding_changes_nothing(kind):
    encoder, ids = model(kind), torch.randint(1, VOCAB, (B, N))
    lengths = torch.tensor([7, 1, 4])
    wide = torch.cat([ids, torch.full((B, 6), 5)], 1)  # so wide that padding is cut out
    for padded in (ids, wide):
        states = encoder(padded, lengths)
        for row, length in enumerate(lengths.tolist()):
            single = encoder(ids[row : row + 1, :length])[0]
            torch.testing.assert_close(states[row, :length], single, atol=1e-5, rtol=1e-5)


def test_features_begin_without_effect_and_then_say_something_of_their_token():
    ids, features = torch.randint(1, VOCAB, (B, N)), torch.rand(B, N, 5)
    encoder = Encoder(EncoderConfig(**SIZES), vocab_size=VOCAB, num_features=5).eval()
    torch.testing.assert_close(encoder(ids, features=features), encoder(ids))
    torch.nn.init.normal_(encoder.features.weight)
    changed = features.clone()
    changed[0, 3] = 1 - changed[0, 3]
    change = (encoder(ids, features=features) - encoder(ids, features=changed)).abs().amax(-1)
    assert change[0].min() > 1e-6
    assert change[1:].max() == 0
    with pytest.raises(SettingError, match="features must be left out where num_features is 0"):
        Encoder(EncoderConfig(**SIZES), vocab_size=VOCAB)(ids, features=features)


def test_sinusoids_are_added_to_embeddings_of_their_size():
    """Vaswani et al. (2017), sections 3.4 and 3.5."""
    config = EncoderConfig(**SIZES, positions="sinusoidal", num_segments=0)
    encoder, ids = Encoder(config, vocab_size=VOCAB), torch.randint(1, VOCAB, (B, N))
    inputs = []
    encoder.embedding_norm.register_forward_pre_hook(lambda _, args: inputs.append(args[0]))
    encoder(ids)
    waves = [
        [(math.sin, math.cos)[i % 2](p / 10000 ** ((i - i % 2) / 12)) for i in range(12)]
        for p in range(N)
    ]
    expected = encoder.embedding.weight[ids] * 12**0.5 + torch.tensor(waves)
    torch.testing.assert_close(inputs[0], expected)
    assert encoder.max_length is None
    reloaded = Encoder(config, vocab_size=VOCAB)
    reloaded.load_state_dict(encoder.state_dict())
    torch.testing.assert_close(reloaded.eval()(ids), encoder.eval()(ids))
    assert not any("positions" in name for name in encoder.state_dict())


def test_words_are_predicted_with_the_table_they_are_embedded_with():
    lm, states = model(), torch.randn(5, SIZES["model_dim"])
    table = lm.encoder.embedding.weight
    hidden = F.gelu(states @ lm.transform.weight.T + lm.transform.bias)
    hidden = F.layer_norm(hidden, (12,), lm.norm.weight, lm.norm.bias, 1e-12)
    torch.testing.assert_close(lm.project(states), hidden @ table.T + lm.bias)
    assert lm.project(states).shape == (5, VOCAB)
    assert lm.follows(torch.randn(B, N, 12)).shape == (B, 2)


def test_what_is_wrong_is_named(unchecked_shapes):
    config = EncoderConfig(**SIZES | {"max_length": 5})
    with pytest.raises(ShapeError, match="positions must be at most max_length=5; got 7"):
        Encoder(config, vocab_size=VOCAB)(torch.ones(B, N, dtype=torch.long))
    with pytest.raises(SettingError, match="model_dim must be divisible by num_heads"):
        EncoderConfig(model_dim=13, num_heads=2)
