"""``training.batch_tokens = "auto"``: what fits is found by trial, and nothing else is changed."""

import os
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from regard.errors import OutOfMemory
from regard.training import TrainingConfig, session
from regard.training.fitting import describe_end, fitting_batch, resolve_batch
from regard.training.precision import _PRIMITIVES
from regard.training.recipes.resolving import resolve

# What is asked of a training is few things, which a stand-in has.
pytestmark = pytest.mark.usefixtures("unchecked_shapes")

AUTO = TrainingConfig(updates=1, batch_tokens="auto", precision="float32")


class Learner(nn.Module):
    """Something with a weight, a buffer that changes, and dropout."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(1)
        self.dropout = nn.Dropout(0.5)

    def forward(self, numbers):
        return self.dropout(self.norm(numbers))


class Training:
    """Batches of numbers, of which no more than so many fit into memory."""

    def __init__(self, room, num_tokens=10**9):
        self.room, self.num_tokens, self.tried = room, num_tokens, []
        self.batch_tokens, self.model_dim = 4096, 512

    def largest(self, tokens):
        self.tried.append(tokens)
        self.tokens = tokens
        yield torch.arange(6.0)[:, None]

    def backward(self, model, batch, *, smoothing, scale):
        loss = model(batch).sum()
        loss.backward()
        if self.tokens > self.room:
            raise torch.OutOfMemoryError("out of memory")
        return loss.detach(), 6


@pytest.mark.parametrize(
    ("room", "expected"),
    [(5000, 3686), (6200, 5529), (9000, 7372), (13_000, 11_059), (4000, 2764), (100, 86)],
)
def test_what_fits_is_found_with_a_margin(device, room, expected):
    training = Training(room)
    assert fitting_batch(training, Learner().to(device), AUTO, device) == expected <= room


def test_no_more_is_tried_than_is_of_use(device):
    training = Training(10**9)
    assert fitting_batch(training, Learner().to(device), AUTO, device) == 2**16
    few = Training(10**9, num_tokens=300_000)
    assert fitting_batch(few, Learner().to(device), AUTO, device) == 10_000
    assert max(few.tried) == 10_000


def test_where_nothing_fits_the_error_names_the_cure(device):
    with pytest.raises(OutOfMemory, match="the model must fit into the memory of pretended:0"):
        fitting_batch(Training(0), Learner().to(device), AUTO, device)


def test_on_a_cpu_nothing_is_tried():
    training = Training(0)
    config = resolve_batch(training, Learner(), AUTO, torch.device("cpu"))
    assert (config.batch_tokens, training.batch_tokens, training.tried) == (4096, 4096, [])


def test_a_size_that_is_set_is_taken(device):
    training = Training(0)
    training.batch_tokens = 77
    config = resolve_batch(training, Learner(), TrainingConfig(updates=1, batch_tokens=77), device)
    assert (config.batch_tokens, training.tried) == (77, [])


def test_a_trial_leaves_no_trace(device):
    model = Learner().to(device)
    before = {name: tensor.cpu().clone() for name, tensor in model.state_dict().items()}
    drawn = torch.get_rng_state(), torch.get_device_module(device).get_rng_state()
    fitting_batch(Training(9000), model, AUTO, device)
    after = {name: tensor.cpu() for name, tensor in model.state_dict().items()}
    assert all(torch.equal(after[name], before[name]) for name in before)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.equal(torch.get_rng_state(), drawn[0])
    assert torch.equal(torch.get_device_module(device).get_rng_state(), drawn[1])


@pytest.mark.parametrize(
    ("limits", "line"),
    [
        ({"epochs": 1}, "after 1 epoch of 31 updates; --minutes sets a time instead"),
        ({"epochs": 3, "least_updates": 50}, "after 3 epochs of 31 updates; --minutes"),
        ({"epochs": 1, "least_updates": 62}, "after 62 updates (2 epochs, as the text is small)"),
        ({"updates": 310, "patience": 5}, "310 updates (10 epochs), or after 5 validations"),
        (
            {"updates": 20, "epochs": 5, "least_updates": 600},
            "after 20 updates (0.645 epochs); --minutes",
        ),
        ({"minutes": 2.0}, "after 2 minutes"),
    ],
)
def test_what_ends_a_training_is_described_before_it_begins(limits, line):
    text = SimpleNamespace(num_samples=310, examples_a_batch=10)
    end = describe_end(text, nn.Module(), TrainingConfig(**limits), is_timed=False)
    assert line in end


def test_the_first_batch_is_never_what_an_update_takes(monkeypatch):
    clock, taken = [0.0], iter([5.0, 2.0, 99.0])

    class Text(Training):
        num_samples, examples_a_batch = 30, 10

        def batches(self, epoch, skipped):
            return ((torch.arange(6.0)[:, None], None) for _ in range(3))

        def backward(self, model, batch, *, smoothing, scale):
            clock[0] += next(taken)
            return model(batch).sum(), 6

    monkeypatch.setattr("regard.training.fitting.time.perf_counter", lambda: clock[0])
    config = TrainingConfig(epochs=10, precision="float32")
    end = describe_end(Text(0), Learner(), config, is_timed=True)
    assert "after 10 epochs of 3 updates, about 60 s;" in end


def test_few_products_are_cached_before_a_training_reads_anything(monkeypatch, tmp_path):
    for name in _PRIMITIVES:
        monkeypatch.delenv(name, raising=False)

    def says_what_is_set():
        raise RuntimeError(*(name in os.environ for name in _PRIMITIVES))

    monkeypatch.setattr(session, "process_group", says_what_is_set)
    with pytest.raises(RuntimeError) as raised:
        session.fit(resolve("demo"), tmp_path)
    assert raised.value.args == (True,) * len(_PRIMITIVES)
