"""Tasks on running text: causal and masked language models."""
