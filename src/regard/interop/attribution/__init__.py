"""How much each token of an input contributes to an output."""
