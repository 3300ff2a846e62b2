"""Searches over a model's steps, recorded where somebody looks."""
