"""When a training ends is described before it begins."""

from types import SimpleNamespace

import pytest
from torch import nn

from regard.training import TrainingConfig
from regard.training.ending import describe_end

# What is asked of a training is few things, which a stand-in has.
pytestmark = pytest.mark.usefixtures("unchecked_shapes")


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
