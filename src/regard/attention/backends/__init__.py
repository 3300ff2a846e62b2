"""The ways attention is computed, each with what it refuses; ``plan.py`` chooses."""
