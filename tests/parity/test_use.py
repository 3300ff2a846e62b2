"""Models of torch with the engine put into them give what they gave before."""

import copy

import pytest
import torch
from torch import nn

from regard import use
from regard.attention import observe
from regard.errors import SettingError

pytestmark = pytest.mark.parity


def both(make):
    torch.manual_seed(0)
    model = make().double()
    for name, parameter in model.named_parameters():
        if "bias" in name:
            nn.init.normal_(parameter)
    return model, use(copy.deepcopy(model))


HIDDEN = torch.tensor([[False, False, False, True], [False, False, True, True]])


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")  # torch's own shortcut
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("norm_first", [True, False])
def test_an_encoder_with_padding_does_not_go_around_the_engine(training, norm_first):
    theirs, ours = both(
        lambda: nn.TransformerEncoder(
            nn.TransformerEncoderLayer(
                12, 2, 16, dropout=0.0, batch_first=True, norm_first=norm_first
            ),
            2,
            enable_nested_tensor=not norm_first,
        )
    )
    theirs.train(training)
    ours.train(training)
    states = torch.randn(2, 4, 12).double()
    calls = []
    with torch.set_grad_enabled(training), observe(calls.append):
        expected = theirs(states, src_key_padding_mask=HIDDEN)
        out = ours(states, src_key_padding_mask=HIDDEN)
    assert len(calls) == 2
    is_real = ~HIDDEN
    length = expected.shape[1]  # torch's shortcut cuts what is padding everywhere
    torch.testing.assert_close(out[:, :length][is_real[:, :length]], expected[is_real[:, :length]])


def test_a_decoder_with_a_causal_hint():
    theirs, ours = both(
        lambda: nn.TransformerDecoder(
            nn.TransformerDecoderLayer(12, 2, 16, dropout=0.0, batch_first=True), 2
        )
    )
    target, memory = torch.randn(2, 5, 12).double(), torch.randn(2, 4, 12).double()
    mask = nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    options = {"tgt_mask": mask, "tgt_is_causal": True, "memory_key_padding_mask": HIDDEN}
    torch.testing.assert_close(ours(target, memory, **options), theirs(target, memory, **options))


def test_weights_are_saved_as_before():
    theirs, ours = both(lambda: nn.TransformerEncoderLayer(12, 2, 16, batch_first=True))
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict(theirs.state_dict())
    again = copy.deepcopy(ours)
    assert type(again.self_attn) is type(ours.self_attn)


def test_who_sees_nothing_gets_zeros_and_not_nan():
    _, ours = both(lambda: nn.MultiheadAttention(12, 3, batch_first=True))
    states = torch.randn(2, 4, 12).double()
    hidden = torch.tensor([[True] * 4, [False] * 4])
    out, rows = ours(states, states, states, key_padding_mask=hidden)
    assert rows[0].eq(0).all()
    torch.testing.assert_close(out[0], ours.out_proj.bias.expand(4, 12))


def test_a_model_without_attention_is_refused():
    with pytest.raises(SettingError, match=r"must hold an nn\.MultiheadAttention, .*; got Linear"):
        use(nn.Linear(2, 2))


def test_a_subclass_keeps_its_own_way():
    class Own(nn.MultiheadAttention):
        def forward(self, query, *rest, **options):
            return query, None

    model = use(nn.ModuleList([Own(12, 3), nn.MultiheadAttention(12, 3)]))
    assert type(model[0]) is Own
    assert type(use(model)[1]).__name__ == "EngineAttention"
