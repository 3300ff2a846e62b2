"""Attention inside modules of torch and Hugging Face: where it is, and how it is reached."""
