"""The recipes that come with regard, as help lists them."""

from regard.training.packaged import packaged_recipe, packaged_recipes

__all__ = ["listed_recipes", "packaged_recipe", "packaged_recipes"]


def listed_recipes() -> str:
    """The recipes as a list in help."""
    return "\n".join(f"- `{name}`: {purpose}" for name, purpose in packaged_recipes().items())
