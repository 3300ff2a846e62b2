"""Looking at the weights: exact rows, statistics and pictures of a matrix that is never built."""
