"""Tasks that write a text for a text."""
