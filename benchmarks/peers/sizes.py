"""The Transformer that all programs train in a measurement of speed."""

from benchmarks.measuring import sized

# Transformer-tiny of Wu et al. (2021), of as many layers on each side; in tiny runs as small as a
# model can be.
MODEL_DIM, FFN_DIM, NUM_HEADS, NUM_LAYERS = sized((128, 256, 4, 4), (16, 16, 2, 1))
DROPOUT, RATE, WARMUP = 0.3, 0.005, 2000
