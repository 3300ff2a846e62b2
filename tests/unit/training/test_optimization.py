"""Optimizers against torch's own, the learning rate over a training, and averaged weights."""

import subprocess
import sys
from itertools import pairwise

import pytest
import torch
from torch import nn

from regard.errors import RunError, SettingError
from regard.layers import TokenEmbedding
from regard.models import Encoder, EncoderConfig
from regard.training.optimization import (
    MovingAverage,
    Muon,
    make_optimizer,
    orthogonalized,
    peak_rate,
    rate_at,
)
from regard.training.settings import TrainingConfig

SETTINGS = {"lr": 0.02, "momentum": 0.95, "weight_decay": 0.1}


@pytest.mark.parity
@pytest.mark.parametrize("shape", [(5, 7), (7, 5), (6, 6)])
def test_steps_are_those_of_torch(shape):
    ours, theirs = (nn.Parameter(torch.ones(shape)) for _ in range(2))
    pairs = (
        (ours, Muon([ours], **SETTINGS, dtype=torch.bfloat16)),
        (theirs, torch.optim.Muon([theirs], **SETTINGS, adjust_lr_fn="match_rms_adamw")),
    )
    for seed in range(3):
        for weight, optimizer in pairs:
            weight.grad = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
            optimizer.step()
    torch.testing.assert_close(ours, theirs, rtol=0, atol=2e-4)


@pytest.mark.parametrize("steps", [3, 5])
@pytest.mark.parametrize("shape", [(5, 11), (11, 5)])
def test_singular_values_come_near_one_and_directions_stay(shape, steps):
    matrix = torch.randn(shape, dtype=torch.float64)
    left, _, right = torch.linalg.svd(matrix, full_matrices=False)
    product = left.mT @ orthogonalized(matrix[None], torch.float64, steps)[0] @ right.mT
    assert ((product.diagonal() > 0.6) & (product.diagonal() < 1.3)).all()
    torch.testing.assert_close(product, torch.diag(product.diagonal()), rtol=0, atol=1e-9)


def test_matrices_of_one_shape_are_stepped_together_as_each_alone():
    shapes = [(5, 7), (7, 5), (5, 7)]
    stacked, single = ([nn.Parameter(torch.ones(shape)) for shape in shapes] for _ in range(2))
    optimizers = [
        Muon(weights, **SETTINGS, dtype=torch.float32, steps=3)
        for weights in (stacked, *([weight] for weight in single))
    ]
    for both in zip(stacked, single, strict=True):
        both[0].grad = torch.randn(both[0].shape)
        both[1].grad = both[0].grad.clone()
    for optimizer in optimizers:
        optimizer.step()
    torch.testing.assert_close(stacked, single)


def test_adamw_is_torchs():
    config = TrainingConfig(optimizer="adamw", updates=3)
    model, same = nn.Linear(3, 2), nn.Linear(3, 2)
    same.load_state_dict(model.state_dict())
    ours = make_optimizer(model, config, 0.1, dtype=torch.float32)
    theirs = torch.optim.AdamW(
        same.parameters(),
        lr=0.1,
        betas=config.betas,
        eps=config.eps,
        weight_decay=config.weight_decay,
        fused=True,
    )
    for seed in range(3):
        inputs = torch.randn(5, 3, generator=torch.Generator().manual_seed(seed))
        for each, optimizer in ((model, ours), (same, theirs)):
            optimizer.zero_grad()
            each(inputs).square().sum().backward()
            optimizer.step()
    torch.testing.assert_close(ours.state_dict()["state"], theirs.state_dict()["state"])
    torch.testing.assert_close(model.state_dict(), same.state_dict(), rtol=0, atol=0)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_a_training_does_not_wait_for_torchs_compiler(optimizer):
    code = f"""
import sys, torch
from regard.training.optimization import make_optimizer
from regard.training.settings import TrainingConfig
model, config = torch.nn.Linear(3, 2), TrainingConfig(optimizer="{optimizer}", updates=2)
made = make_optimizer(model, config, 0.1, dtype=torch.float32)
for _ in range(2):
    made.zero_grad()
    model(torch.ones(5, 3)).sum().backward()
    made.step()
made.load_state_dict(made.state_dict())
sys.exit("torch._dynamo" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_tables_of_tokens_are_left_to_adamw():
    model = nn.Sequential(TokenEmbedding(11, 4), nn.Linear(4, 3))
    config = TrainingConfig(updates=1, optimizer="muon")
    muon, adamw = make_optimizer(model, config, 0.01, dtype=torch.float32).parts
    assert [p.shape for p in muon.param_groups[0]["params"]] == [(3, 4)]
    assert [p.shape for p in adamw.param_groups[0]["params"]] == [(11, 4), (3,)]


def test_a_state_in_which_muon_stepped_tables_is_refused_with_the_cure():
    model = nn.Sequential(TokenEmbedding(11, 4), nn.Linear(4, 3))
    config = TrainingConfig(updates=1, optimizer="muon")
    model(torch.tensor([1, 2])).sum().backward()
    matrices = [p for p in model.parameters() if p.dim() == 2]
    before = Muon(matrices, **SETTINGS, dtype=torch.float32)
    before.step()
    now = make_optimizer(model, config, 0.01, dtype=torch.float32)
    state = {**now.state_dict(), "0": before.state_dict()}
    with pytest.raises(RunError, match="Begin another run from its weights"):
        now.load_state_dict(state)


def test_a_state_written_by_torchs_is_resumed():
    weight = nn.Parameter(torch.ones(3, 4))
    weight.grad = torch.randn(3, 4)
    before = torch.optim.Muon([weight], **SETTINGS, adjust_lr_fn="match_rms_adamw")
    before.step()
    after = Muon([weight], **SETTINGS, dtype=torch.float32)
    after.load_state_dict(before.state_dict())
    after.step()
    assert weight.isfinite().all()


@pytest.mark.parametrize("optimizer", ["adamw", "muon", "sgd"])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda values: values.update({name: torch.zeros(2) for name in values}),
        lambda values: values.update(dict.fromkeys(values, 3)),
    ],
)
def test_a_state_of_other_sizes_or_kinds_is_refused(optimizer, spoil):
    def make():
        config = TrainingConfig(updates=1, optimizer=optimizer, momentum=0.9)
        return make_optimizer(model, config, 0.01, dtype=torch.float32)

    model = nn.Linear(5, 7)
    model(torch.randn(2, 5)).sum().backward()
    stepped = make()
    stepped.step()
    state = stepped.state_dict()
    make().load_state_dict(state)
    part = state if "state" in state else state["0"]
    spoil(part["state"][0])
    with pytest.raises(ValueError, match="must be a float tensor of"):
        make().load_state_dict(state)
    if optimizer == "adamw":
        part["state"][0] = {**stepped.state_dict()["state"][0], "exp_avg": None}
        with pytest.raises(ValueError, match="must be a float tensor of"):
            make().load_state_dict(state)


@pytest.mark.parametrize("name", ["adamw", "muon", "sgd"])
def test_an_encoder_has_a_group_of_its_own_in_every_optimizer(name):
    encoder = Encoder(EncoderConfig(model_dim=8, num_heads=2, ffn_dim=16), vocab_size=11)
    model = nn.Sequential(encoder, nn.Linear(8, 3))
    config = TrainingConfig(updates=1, optimizer=name, encoder_rate=0.002)
    optimizer = make_optimizer(model, config, 0.01, dtype=torch.float32)
    shares = {id(p): g.get("share", 1) for g in optimizer.param_groups for p in g["params"]}
    assert [*{shares[id(p)] for p in encoder.parameters()}] == pytest.approx([0.2])
    assert {shares[id(p)] for p in model[1].parameters()} == {1}
    assert len(shares) == len([*model.parameters()])


def test_a_rate_of_an_encoder_is_refused_where_there_is_none():
    config = TrainingConfig(updates=1, encoder_rate=0.002)
    with pytest.raises(SettingError, match=r"encoder_rate must be left out .*; got Linear\."):
        make_optimizer(nn.Linear(2, 3), config, 0.01, dtype=torch.float32)


def rates(updates, model_dim=512, **settings):
    config = TrainingConfig(updates=updates, **settings)
    peak = peak_rate(config, model_dim)
    return [
        rate_at(update, update / updates, peak=peak, config=config)
        for update in range(1, updates + 1)
    ]


def test_a_peak_of_ones_own_is_reached_at_the_end_of_warm_up():
    for schedule in ("inverse_sqrt", "constant"):
        curve = rates(100, warmup=10, schedule=schedule, learning_rate=0.3)
        assert curve[9] == max(curve) == pytest.approx(0.3)
        assert curve[4] == pytest.approx(0.15)


def test_linear_falls_by_the_same_amount_to_zero():
    curve = rates(100, warmup=10, schedule="linear", learning_rate=0.3)
    assert curve[-1] == 0
    steps = [one - other for one, other in pairwise(curve[9:])]
    assert steps == pytest.approx([0.3 / 90] * 90)


@pytest.mark.parametrize("schedule", ["inverse_sqrt", "linear", "constant", "cosine"])
def test_a_training_too_short_for_its_warm_up_rises_within_its_share(schedule):
    curve = rates(100, warmup=1000, schedule=schedule, learning_rate=0.3)
    assert max(curve) == curve[19] == pytest.approx(0.3)
    assert curve[9] == pytest.approx(0.15)
    settings = {"warmup": 1000, "schedule": schedule, "learning_rate": 0.3}
    assert max(rates(100, warmup_share=None, **settings)) == pytest.approx(0.03)
    assert max(rates(100, warmup_share=0.5, **settings)[:49]) < 0.3
    assert rates(6000, **settings) == rates(6000, warmup_share=None, **settings)


def test_the_length_of_a_training_by_the_clock_is_judged_by_its_speed():
    # Its first update takes as long as ten later ones; a minute's worth of a hundred.
    config = TrainingConfig(minutes=1.0, warmup=1000, learning_rate=0.3)
    curve = [
        rate_at(update, min(1.0, (update + 9 * (update > 1)) / 109), peak=0.3, config=config)
        for update in range(1, 101)
    ]
    assert max(curve) == pytest.approx(0.3, rel=0.05)
    assert 10 < curve.index(max(curve)) < 20
    assert curve[-1] < 0.15


def test_before_the_first_measurement_nothing_is_known_and_the_rate_is_low():
    config = TrainingConfig(minutes=1.0, warmup=1000, learning_rate=0.3)
    assert rate_at(1, 0.0, peak=0.3, config=config) == 0.3 / 1000


def test_averages_are_the_weights_inside_the_block_only():
    model = nn.Linear(3, 2)
    average = MovingAverage(model, 0.5)
    before = {name: p.clone() for name, p in model.named_parameters()}
    average.load({name: torch.full_like(p, 7.0) for name, p in before.items()})
    with average.installed(model):
        assert all((p == 7).all() for p in model.parameters())
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[name])
    with pytest.raises(KeyError), average.installed(model):
        raise KeyError
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[name])


def test_averages_do_not_share_memory_with_the_weights():
    model = nn.Linear(3, 2)
    average = MovingAverage(model, 0.5)
    before = average.weights["weight"].clone()
    nn.init.zeros_(model.weight)
    assert torch.equal(average.weights["weight"], before)
