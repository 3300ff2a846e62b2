"""Recipes of small models, and a short training of one."""

import pytest
import torch

from regard.tasks import recipe_from_table

TRANSFORMER = {"model_dim": 8, "num_heads": 2, "num_layers": 1, "ffn_dim": 16}
OTHER = {"embed_dim": 8, "hidden_dim": 6, "dropout": 0.0}


def recipe_of(task, model, folder=None, *, data=None, head=None, **settings):
    """A recipe that cuts words, without dropout."""
    sizes = TRANSFORMER if model == "transformer" else OTHER
    table = {
        "task": task,
        "data": data or {},
        "tokenizer": {"type": "words"},
        "model": {"type": model, **sizes, **settings},
        "head": {"dropout": 0.0} | (head or {}),
    }
    return recipe_from_table(table, folder=folder)


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
