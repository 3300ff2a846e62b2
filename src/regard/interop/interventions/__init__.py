"""Changes of a model's attention, and parts of one run put into another."""
