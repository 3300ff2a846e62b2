"""Data-parallel training: processes, strategies, and what they agree on."""
