"""From which sizes on one backend is faster than another, on a CPU.

Measured with one thread; ``benchmarks/records/backend_choice.json`` has what each choice comes to
beside the fastest, and ``python -m benchmarks.backend_choice`` fails where that is another by far.
"""

# Up to so many keys, matrix products over whole sentences beat the fused kernel's gradient.
MOST_KEYS_OF_SHORT = 128
# For fewer scores than this, one call of the fused kernel is cheaper than several of anything else.
FEWEST_PAIRS = 2**15
# From so many keys on, compiled loops that leave out what is hidden beat the fused kernel's
# gradient, where each query sees a range of the keys.
FEWEST_KEYS_OF_LOOPS = 256
# Blocks of so many queries along a band are about so many times slower for each pair than the fused
# kernel with a mask, and worth it from so many pairs on.
BAND_ROWS, BAND_COST, FEWEST_PAIRS_OF_A_BAND = 64, 2, 2**16
# With more of the grid than this inside documents, one call with a mask is as fast as one for each.
LARGEST_SHARE_OF_DOCUMENTS = 0.5
# From so many scores on, what a plan saves of a compiled training step is worth what it costs.
FEWEST_PAIRS_OF_A_PLANNED_STEP = 2**18
