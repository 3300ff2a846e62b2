"""Transformers: a stack of decoder layers, encoders, translators and language models."""
