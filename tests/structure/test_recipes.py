"""Every recipe that comes with the package is whole: each section fits, and its model computes."""

import pytest
import torch

from regard.cli.recipes import packaged_recipe, packaged_recipes
from regard.models import MODELS
from regard.tasks import read_recipe

RECIPES = {name: read_recipe(packaged_recipe(name)) for name in packaged_recipes()}


SEARCHING = ("generation", "translation")


@pytest.mark.parametrize("name", sorted(n for n in RECIPES if RECIPES[n].task in SEARCHING))
def test_recipe_builds_a_model_that_computes(name: str):
    recipe = RECIPES[name]
    architecture = MODELS[recipe.model_type].load()
    model = architecture(
        recipe.model, source_vocab=11, target_vocab=11, shared_vocab=recipe.tokenizer.shared
    ).eval()
    source, target = torch.randint(4, 11, (2, 5)), torch.randint(4, 11, (2, 3))
    states, _ = model(source, torch.tensor([5, 2]), target)
    assert model.project(states).shape == (2, 3, 11)
    assert model.project(states).isfinite().all()
