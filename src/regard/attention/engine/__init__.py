"""The engine of all backends: a checked request, its blocks, and a pass over each block.

``request`` checks a call and brings it to one shape. ``blocks`` cuts it into blocks of queries and
the keys they may see. A pass works a block out: ``tiled`` does in plain torch operations, forward
and backward, ``gradients`` for whatever else blocks give; a compiled pass would stand beside them.
``numerics`` holds the arithmetic of passes; ``twice`` differentiates a gradient again.
"""
