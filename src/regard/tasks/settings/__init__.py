"""Recipes: their tables, and how they are read."""
