"""What text means to a model: recipes, and the tasks."""

from regard.tasks.decoding import DecodingConfig
from regard.tasks.reading import read_recipe, recipe_from_table, saved_recipe
from regard.tasks.recipe import DataConfig, Recipe
from regard.tasks.registry import TASKS, Kind
from regard.tasks.task import Job

__all__ = [
    "TASKS",
    "DataConfig",
    "DecodingConfig",
    "Job",
    "Kind",
    "Recipe",
    "read_recipe",
    "recipe_from_table",
    "saved_recipe",
]
