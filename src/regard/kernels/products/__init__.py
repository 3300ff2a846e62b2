"""Matrix products: packed float32, packed int8, and projections in either."""
