"""Checkpoints in the layouts of Hugging Face: read, written, opened."""
