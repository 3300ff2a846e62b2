"""Encoders: of a Transformer, with its decoder's keys and values, and of prompts.

All layers run in one compiled loop. Where texts are many and weights small, each thread has a block
of texts; else the threads share out each part of a layer. Tokens of all texts stand row after row,
without padding, and a text's states do not depend on the others.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate, chain

import numpy as np
import torch
from jaxtyping import Float32, Int, Int64
from torch import Tensor, nn

from regard.kernels.threads import FEWEST_ROWS, parallel_blocks, team
from regard.kernels.transformer.encoder import (
    Answers,
    Embeddings,
    EncoderPositions,
    Layers,
    Sources,
    encode,
)
from regard.kernels.transformer.layers import LayerOptions
from regard.layers.block import TransformerBlock
from regard.models.transformer import Transformer
from regard.runtime.products import (
    BYTES_A_THREAD,
    MOST_BYTES,
    Int8Linear,
    embedding_table,
    pack_projections,
    part_of,
)
from regard.runtime.transformer.layers import (
    PositionTable,
    RotaryTable,
    norms_of,
    options_of,
    weights_of,
)

# The longest texts that the loop reads: it has all scores of a text and a head at once.
LONGEST = 1024
# Tokens that go through all layers together: their states stay in the cache of a core, or weights
# that do not are read once for many.
_TOKENS, _TOKENS_OF_LARGE = 256, 2048


class EncoderLoop:
    """The loop over packed layers, and how threads share it."""

    def __init__(self, embeddings: Embeddings, layers: Layers, options: LayerOptions) -> None:
        self._encode = encode.bind(embeddings, layers, options)
        maps = (layers.self_in, layers.self_out, layers.inner, layers.outer, embeddings.memory)
        self._bytes = sum(kind.weight.nbytes + kind.rounded.nbytes for kind in maps)

    def __call__(self, sources: Sources, positions: EncoderPositions, answers: Answers) -> None:
        """Read the sources into ``answers``; each has from 0 to ``LONGEST`` tokens."""
        texts, fits_a_core = len(sources.begins) - 1, self._bytes <= MOST_BYTES
        most = _TOKENS if fits_a_core else _TOKENS_OF_LARGE
        worth = max(1, len(sources.tokens) * self._bytes // BYTES_A_THREAD)
        threads = team(min(torch.get_num_threads(), worth))
        # Without GNU's OpenMP threads share out blocks, but not the parts of a layer.
        if texts >= 2 * FEWEST_ROWS and (fits_a_core or not threads.begin):
            parallel_blocks(texts, self._encode, team(1), most, sources, positions, answers)
        else:
            self._encode(0, texts, threads, most, sources, positions, answers)


def projections_of(blocks: Sequence[TransformerBlock]) -> list[list[nn.Linear | Int8Linear]]:
    """The linear maps of each kind, in the order of ``kernels.transformer.layers.Weights``.

    Those of cross-attention, the third and the fourth kind, are lists of none without it.
    """
    crosses = [cross for block in blocks if (cross := block.cross_attend) is not None]
    attends = [block.attend for block in blocks]
    return [
        [attend.query_key_value for attend in attends if attend.query_key_value is not None],
        [attend.output for attend in attends],
        [cross.query for cross in crosses],
        [cross.output for cross in crosses],
        [block.feed.inner for block in blocks],
        [block.feed.outer for block in blocks],
    ]


def layers_of(blocks: Sequence[TransformerBlock], last: nn.Module) -> Layers:
    """An encoder's layers, and the norm behind them where it is pre-norm."""
    kinds = filter(None, projections_of(blocks))
    maps = [pack_projections(list(map(part_of, kind))) for kind in kinds]
    return Layers._make([*maps, *norms_of(blocks, last)])


class TransformerEncoder:
    """The encoder of a Transformer, and keys and values of its sources for every decoder layer."""

    def __init__(self, model: Transformer) -> None:
        blocks, config = list(model.encoder), model.config
        attentions = [cross for block in model.decoder if (cross := block.cross_attend) is not None]
        projects = [cross.key_value for cross in attentions if cross.key_value is not None]
        table, norm = embedding_table(model.source_embedding), weights_of(model.source_norm)
        memory = pack_projections(list(map(part_of, projects)))
        self._loop = EncoderLoop(
            Embeddings(table, *norm, memory),
            layers_of(blocks, model.encoder_norm),
            options_of(blocks, config.num_heads if config.positions == "alibi" else None),
        )
        self._positions = PositionTable(model.positions, config.model_dim)
        self._rotary = RotaryTable(blocks[0].attend.rotary)
        self._reach, self._mixes_embeddings = config.window, config.values == "embeddings"
        self._begin_id = model.begin_id if config.source_begin else None
        width = attentions[0].num_key_heads * attentions[0].head_dim
        self._shape = len(attentions), 2 * width

    def __call__(
        self, source: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]
    ) -> Float32[np.ndarray, "L B M W"]:
        """Keys and values of the sources, side by side, for every decoder layer."""
        begin = [] if self._begin_id is None else [self._begin_id]
        rows = [
            [*begin, *ids[:length]]
            for ids, length in zip(source.tolist(), lengths.tolist(), strict=True)
        ]
        longest = source.shape[1] + len(begin)
        sources = Sources(
            np.array(list(chain.from_iterable(rows)), np.int64),
            np.array([0, *accumulate(map(len, rows))]),
            self._positions.until(longest),
            skipped=len(begin),
            mixes_embeddings=self._mixes_embeddings,
        )
        reach = longest if self._reach is None else self._reach
        positions = EncoderPositions(self._rotary.until(longest), reach, reach)
        layers, width = self._shape
        memory = np.zeros((layers, *source.shape, width), np.float32)
        self._loop(sources, positions, Answers(memory=memory))
        return memory


class PromptReader:
    """Keys and values of a language model's prompts; its layers see earlier positions."""

    def __init__(
        self,
        loop: EncoderLoop,
        positions: PositionTable,
        rotary: RotaryTable,
        *,
        window: int | None,
    ) -> None:
        self._loop, self._positions, self._rotary, self._window = loop, positions, rotary, window

    def __call__(
        self,
        prompts: Mapping[int, Int64[np.ndarray, " _"]],
        store: Float32[np.ndarray, "L T S W"],
        stop: int,
    ) -> None:
        """Fill positions of each prompt's slot, the last before ``stop``.

        Lengths are from 1 to ``LONGEST``.
        """
        lengths = [len(prompt) for prompt in prompts.values()]
        longest = max(lengths)
        sources = Sources(
            np.concatenate(list(prompts.values())),
            np.array([0, *accumulate(lengths)]),
            self._positions.until(longest),
        )
        reach = longest if self._window is None else self._window
        positions = EncoderPositions(self._rotary.until(longest), reach, 0)
        slots = np.array(list(prompts), np.int64)
        self._loop(sources, positions, Answers(past=store, stop=stop, slots=slots))
