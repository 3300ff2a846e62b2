"""Optimizers, learning rates, precision and averages of weights."""
