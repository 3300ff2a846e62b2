"""Tasks that predict a label, a number or tags."""
