"""A whole model watched: what ``regard.watch`` costs beside the model's plain forward.

The model is shaped like a small Llama (4 layers, 8 heads of 64) with random weights; its own
forward goes through torch's fused kernel. ``benchmarks.inspection`` has the rows.
"""

import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

from benchmarks.measuring import sized

LAYERS, HEADS, HEAD_DIM = sized((4, 8, 64), (2, 2, 8))
# Below, a call is so short that the first pays for what is made once, and one says little.
_SHORT, _REPEATS = 4096, sized(9, 1)


def plain(length: int) -> dict[str, float]:
    """Seconds of a forward of the model as it is, and the most bytes that the process held."""
    model, ids = _model_and_ids(length)
    return _sample(lambda: model(input_ids=ids, use_cache=False), length)


def watched(length: int) -> dict[str, float]:
    """The same while every layer is summarised."""
    import regard as rg

    model, ids = _model_and_ids(length)

    def look() -> None:
        with rg.watch(model) as seen:
            model(input_ids=ids, use_cache=False)
        assert len(seen) == LAYERS

    return _sample(look, length)


def _model_and_ids(length: int) -> tuple[Any, Any]:
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=1000,
        hidden_size=HEADS * HEAD_DIM,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=1376,
        max_position_embeddings=length,
        attn_implementation="sdpa",
    )
    return transformers.LlamaModel(config).eval(), torch.randint(0, 1000, (1, length))


def _sample(call: Callable[[], object], length: int) -> dict[str, float]:
    import torch

    seconds = []
    with torch.no_grad():
        for _ in range(1 + _REPEATS if length < _SHORT else 1):
            start = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - start)
    # In kilobytes, on Linux.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0
    return {"seconds": statistics.median(seconds[1:] or seconds), "bytes": peak}
