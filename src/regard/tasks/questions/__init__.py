"""Tasks that read two texts together: questions on a text, pairs of texts."""
