"""A short training of a task's model."""

import pytest
import torch


@pytest.fixture
def fitted():
    def fit(task, examples, steps=60):
        """The model after some steps on all examples, in evaluation mode."""
        torch.manual_seed(0)
        model = task.build_model()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
        batch = task.collate(task.encode(examples, training=True))
        for _ in range(steps):
            optimizer.zero_grad()
            task.loss(model, batch)[0].backward()
            optimizer.step()
        return model.eval()

    return fit
