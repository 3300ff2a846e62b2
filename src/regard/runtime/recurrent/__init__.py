"""Recurrent models: decoder steps, encoders, translators and language models."""
