"""Linear layers and embeddings whose products are compiled loops."""
