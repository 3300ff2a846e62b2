"""Pages of a model's attention, and of explanations of its answers."""
