import pytest
import torch

from regard.errors import SettingError
from regard.models.conv_seq2seq import GatedConvolution

B, N, C = 2, 7, 3


def layer(kernel_size, **settings):
    module = GatedConvolution(C, kernel_size, **settings).double()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    return module


@pytest.mark.parametrize("has_weight_norm", [False, True])
@pytest.mark.parametrize(
    ("kernel_size", "is_causal"), [(1, False), (5, False), (2, True), (3, True)]
)
def test_result_is_one_half_gated_by_the_other(kernel_size, is_causal, has_weight_norm):
    module = layer(kernel_size, is_causal=is_causal, has_weight_norm=has_weight_norm)
    states = torch.randn(B, N, C, dtype=torch.float64)
    W, b = module.convolution.weight, module.convolution.bias
    outputs, _ = module(states)
    middle = kernel_size - 1 if is_causal else kernel_size // 2
    for n in range(N):
        taps = [k for k in range(kernel_size) if 0 <= n + k - middle < N]
        both = b + sum(states[:, n + k - middle] @ W[..., k].T for k in taps)
        torch.testing.assert_close(outputs[:, n], both[:, :C] * both[:, C:].sigmoid())


@pytest.mark.parametrize("kernel_size", [1, 2, 4])
def test_step_by_step_gives_the_whole(kernel_size):
    module = layer(kernel_size, is_causal=True)
    states = torch.randn(B, N, C, dtype=torch.float64)
    expected, _ = module(states)
    past, outputs = None, []
    for state in states.split(1, dim=1):
        out, past = module(state, past)
        assert past.shape == (B, kernel_size - 1, C)
        outputs.append(out)
    torch.testing.assert_close(torch.cat(outputs, 1), expected)


def test_weight_norm_learns_lengths_separately_from_directions():
    module = GatedConvolution(C, 3, has_weight_norm=True)
    lengths, directions = module.convolution.parametrizations.weight.parameters()
    before = module.convolution.weight.detach().clone()
    directions.data.mul_(7)
    torch.testing.assert_close(module.convolution.weight, before)
    lengths.data.mul_(2)
    torch.testing.assert_close(module.convolution.weight, 2 * before)


def test_variance_is_preserved_at_the_start():
    module = GatedConvolution(512, 3)
    out, _ = module(torch.randn(4, 50, 512))
    # Gehring et al., section 3.5: that of x · sigmoid(y) is a bit over a quarter of 4.
    assert 0.8 < out[:, 1:-1].var() < 1.6


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel_size": 0}, "kernel_size must be at least 1; got 0"),
        ({"kernel_size": 4}, "kernel_size must be odd, to have a middle, unless is_causal; got 4"),
        ({"kernel_size": 3, "dropout": 1.0}, r"dropout must be at least 0 and below 1; got 1\.0"),
    ],
)
def test_wrong_setting_is_named(settings, message):
    with pytest.raises(SettingError, match=message):
        GatedConvolution(C, **settings)
