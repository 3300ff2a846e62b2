"""Muon beside torch's own, and the dtype that its products run in."""

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from regard.training.optimization import Muon, Optimizers, make_optimizer, orthogonalized
from regard.training.settings import TrainingConfig

SETTINGS = {"lr": 0.02, "momentum": 0.95, "weight_decay": 0.1}


@pytest.mark.parity
@pytest.mark.parametrize("shape", [(5, 7), (7, 5), (6, 6)])
def test_steps_are_those_of_torch(shape: tuple[int, int]):
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


@pytest.mark.parametrize("shape", [(5, 11), (11, 5)])
def test_singular_values_come_near_one_and_directions_stay(shape: tuple[int, int]):
    matrix = torch.randn(shape, dtype=torch.float64)
    left, _, right = torch.linalg.svd(matrix, full_matrices=False)
    found = left.mT @ orthogonalized(matrix, torch.float64) @ right.mT
    assert ((found.diagonal() > 0.6) & (found.diagonal() < 1.3)).all()
    torch.testing.assert_close(found, torch.diag(found.diagonal()), rtol=0, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_products_run_in_the_dtype_asked_for(dtype: torch.dtype):
    model = nn.Linear(5, 7)
    model(torch.randn(2, 5)).sum().backward()
    config = TrainingConfig(updates=1, optimizer="muon")
    optimizer = make_optimizer(model, config, 0.01, dtype=dtype)
    seen = set()

    class Watching(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            if function is torch.addmm:
                seen.add(args[0].dtype)
            return function(*args, **(kwargs or {}))

    with Watching():
        optimizer.step()
    assert seen == {dtype}


def test_a_state_written_by_torchs_goes_on():
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
    def made() -> Optimizers:
        config = TrainingConfig(updates=1, optimizer=optimizer, momentum=0.9)
        return make_optimizer(model, config, 0.01, dtype=torch.float32)

    model = nn.Linear(5, 7)
    model(torch.randn(2, 5)).sum().backward()
    before = made()
    before.step()
    state = before.state_dict()
    made().load_state_dict(state)
    part = state if "state" in state else state["0"]
    spoil(part["state"][0])
    with pytest.raises(ValueError, match="must be a float tensor of"):
        made().load_state_dict(state)
    if optimizer == "adamw":
        part["state"][0] = {**before.state_dict()["state"][0], "exp_avg": None}
        with pytest.raises(ValueError, match="must be a float tensor of"):
            made().load_state_dict(state)
