import pytest
import torch

from regard.errors import SettingError
from regard.layers.residual import NORMS, BatchNorm

B, N, C = 3, 5, 7


def batch():
    counts = torch.arange(N) < torch.tensor([5, 2, 3])[:, None]
    states = torch.randn(B, N, C, dtype=torch.float64) * 3 + 1
    return torch.where(counts[..., None], states, 1e3), counts


def norm():
    made = BatchNorm(C).double()
    torch.nn.init.normal_(made.weight)
    torch.nn.init.normal_(made.bias)
    return made


def test_batch_norm_is_torchs_over_the_real_positions():
    states, counts = batch()
    ours, theirs = norm(), torch.nn.BatchNorm1d(C).double()
    theirs.load_state_dict({"weight": ours.weight, "bias": ours.bias}, strict=False)
    for scale in (1.0, 2.0):
        found = ours(scale * states, counts)
        torch.testing.assert_close(found[counts], theirs(scale * states[counts]))
    torch.testing.assert_close(ours.mean, theirs.running_mean)
    torch.testing.assert_close(ours.variance, theirs.running_var)
    torch.testing.assert_close(ours.eval()(states)[counts], theirs.eval()(states[counts]))


def test_padding_has_no_part_in_the_statistics():
    states, counts = batch()
    other = torch.where(counts[..., None], states, -7.0)
    one, two = norm(), BatchNorm(C).double()
    two.load_state_dict(one.state_dict())
    assert torch.equal(one(states, counts)[counts], two(other, counts)[counts])
    assert torch.equal(one.mean, two.mean)
    assert not torch.allclose(one(states)[counts], one(states, counts)[counts])


def test_gradients_pass_finite_differences():
    states, counts = batch()
    states = torch.where(counts[..., None], states, 0.0).requires_grad_()
    assert torch.autograd.gradcheck(norm(), (states, counts), fast_mode=True)


def test_rms_norm_leaves_the_mean():
    states = torch.randn(B, N, C) + 5
    expected = states / (states.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    torch.testing.assert_close(NORMS["rms"](C)(states), expected)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model_dim": 0}, "model_dim must be above 0; got 0"),
        ({"model_dim": 3, "momentum": 1.0}, r"momentum must be at least 0 and below 1; got 1\.0"),
    ],
)
def test_wrong_setting_is_named(settings, message):
    with pytest.raises(SettingError, match=message):
        BatchNorm(**settings)
