"""Recurrent models: decoder steps and encoders, translators and language models."""
