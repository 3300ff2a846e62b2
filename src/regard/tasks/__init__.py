"""What text means to a model: recipes, and the tasks."""

from regard.tasks.decoding import DecodingConfig
from regard.tasks.reading import read_recipe, recipe_from_table, saved_recipe
from regard.tasks.recipe import DataConfig, Recipe, RecipeTable
from regard.tasks.registry import TASKS, TaskEntry
from regard.tasks.task import Task

__all__ = [
    "TASKS",
    "DataConfig",
    "DecodingConfig",
    "Recipe",
    "RecipeTable",
    "Task",
    "TaskEntry",
    "read_recipe",
    "recipe_from_table",
    "saved_recipe",
]
