"""Attention: whole passes, softmax statistics, weightings, and one query's step."""
