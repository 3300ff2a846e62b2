"""Recipes and tasks: the meaning of text for a model."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.tasks.held_out import Parts
    from regard.tasks.labels.label_task import LabelTask
    from regard.tasks.one_pass_task import OnePassTask
    from regard.tasks.registry import TASKS, TaskEntry, read_parts, register_task
    from regard.tasks.sequences.sequence_task import SequenceTask
    from regard.tasks.settings.data import LabelledData
    from regard.tasks.settings.decoding import DecodingConfig
    from regard.tasks.settings.reading import read_recipe, recipe_from_table, saved_recipe
    from regard.tasks.settings.recipe import DataConfig, Recipe, RecipeTable
    from regard.tasks.tables import Table
    from regard.tasks.task import AnyTask, Task

__all__ = [
    "TASKS",
    "AnyTask",
    "DataConfig",
    "DecodingConfig",
    "LabelTask",
    "LabelledData",
    "OnePassTask",
    "Parts",
    "Recipe",
    "RecipeTable",
    "SequenceTask",
    "Table",
    "Task",
    "TaskEntry",
    "read_parts",
    "read_recipe",
    "recipe_from_table",
    "register_task",
    "saved_recipe",
]

__getattr__ = _names(__name__, __file__)
