"""Backends that compute attention, each with the calls that it refuses; ``plan.py`` chooses."""
