"""Names that settings of layers may choose from; without torch, so that settings are read fast."""

from typing import Literal

NormKind = Literal["layer", "rms", "batch"]
PartsName = Literal["none", "bag", "convolution", "lstm"]
PoolingName = Literal[
    "first", "mean", "maximum", "query", "tanh_query", "structured", "state", "aspect"
]

# What weights are kept in while a model is used; "auto" rounds nothing.
Precision = Literal["auto", "float32", "int8", "bfloat16"]
