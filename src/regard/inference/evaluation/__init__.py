"""How good the answers of a run are: measured, compared with others, reported and drawn."""
