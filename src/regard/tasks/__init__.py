"""Recipes and tasks: the meaning of text for a model."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.tasks.held_out import Parts as Parts
    from regard.tasks.labels.label_task import LabelField as LabelField
    from regard.tasks.labels.label_task import LabelTask as LabelTask
    from regard.tasks.labels.label_task import TextField as TextField
    from regard.tasks.one_pass_task import OnePassTask as OnePassTask
    from regard.tasks.registry import TASKS as TASKS
    from regard.tasks.registry import TaskEntry as TaskEntry
    from regard.tasks.registry import read_parts as read_parts
    from regard.tasks.registry import register_task as register_task
    from regard.tasks.sequences.sequence_task import SequenceTask as SequenceTask
    from regard.tasks.settings.data import LabelledData as LabelledData
    from regard.tasks.settings.decoding import DecodingConfig as DecodingConfig
    from regard.tasks.settings.reading import read_recipe as read_recipe
    from regard.tasks.settings.reading import recipe_from_table as recipe_from_table
    from regard.tasks.settings.reading import saved_recipe as saved_recipe
    from regard.tasks.settings.recipe import DataConfig as DataConfig
    from regard.tasks.settings.recipe import Recipe as Recipe
    from regard.tasks.settings.recipe import RecipeTable as RecipeTable
    from regard.tasks.tables import Table as Table
    from regard.tasks.task import AnyTask as AnyTask
    from regard.tasks.task import Task as Task

__getattr__ = _names(__name__, __file__)
