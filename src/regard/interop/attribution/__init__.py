"""Contributions of the tokens of an input to an output."""
