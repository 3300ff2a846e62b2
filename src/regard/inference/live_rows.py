"""Exact rows of a translator's attention, for a page of a text that is too long to hold them."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch

from regard.attention import rows_seen
from regard.inference.predictor import Predictor
from regard.text import normalize
from regard.viewer import Document
from regard.viewer.row_server import AskedRows

_KEPT = 2  # examples whose queries and keys stay in memory


def rows_of(predictor: Predictor, document: Document) -> AskedRows:
    """What answers a page's questions about the examples of a document that ``look_into`` made.

    The model reads an example again when it is first asked about it. Of an output that the
    tokenizer cuts otherwise than the search wrote it there are no rows.
    """

    @lru_cache(maxsize=_KEPT)
    def observed(number: int) -> Any:
        example = document.examples[number]
        source = predictor.tokenizer.source.encode(normalize(example.source))
        output = predictor.tokenizer.target.encode(normalize(example.output))
        if len(output) + 1 != len(example.output_tokens):
            return {}
        return predictor.observed(source, output)

    def rows(number: int, kind: str, layer: Any, head: Any, queries: Sequence[int]) -> Any:
        chosen = [
            seen
            for (name, at), seen in observed(number).items()
            if name == kind and layer in ("mean", at)
        ]
        if not chosen:
            return None
        found = []
        for seen in chosen:
            weights = rows_seen(seen, queries)[0]
            heads = weights.reshape(-1, *weights.shape[-2:])  # a recurrent one has no axis of heads
            found.append(heads.mean(0) if head == "mean" else heads[head])
        return torch.stack(found).mean(0).detach().float().cpu().numpy()

    return rows
