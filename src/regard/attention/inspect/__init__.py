"""Looking at the weights: exact rows, statistics and pictures of what was never a matrix."""
