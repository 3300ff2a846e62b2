"""Data-parallel training: processes, strategies, and their agreements."""
