"""What text means to a model: recipes, and the translation task."""

from regard.tasks.recipe import DataConfig, DecodingConfig, Recipe, read_recipe, recipe_from_table

__all__ = ["DataConfig", "DecodingConfig", "Recipe", "read_recipe", "recipe_from_table"]
