"""Tokenizers: pieces, lists of words, subwords, those of checkpoints."""
