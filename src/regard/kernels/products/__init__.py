"""Matrix products: the BLAS of torch, packed float32, and packed int8."""
