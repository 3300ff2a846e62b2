"""Pages of what a model looked at, and why it answered so."""
