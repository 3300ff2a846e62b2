"""A Transformer's decoding step, encoder pass and decoder state."""
