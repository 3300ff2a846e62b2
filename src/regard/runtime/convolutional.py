"""A convolutional encoder-decoder that is ready to write many translations."""

from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float32, Int, Int64
from torch import Tensor, nn

from regard.attention import Dot, at, lengths
from regard.attention.engine.options import CallOptions
from regard.attention.observing import announce, current_observer
from regard.kernels.threads import in_blocks
from regard.models.conv_seq2seq import ConvSeq2Seq, DecoderLayer
from regard.models.shortlist import Shortlist
from regard.runtime.base import PreparedSeq2Seq
from regard.runtime.looped import LoopedSteps, Then, why_not_looped
from regard.runtime.state import PreparedState, begin

if TYPE_CHECKING:
    from regard.kernels import convolutional as conv_kernels
    from regard.kernels.transformer import decoder as kernels


class PreparedConvSeq2Seq(PreparedSeq2Seq[PreparedState]):
    """A convolutional encoder-decoder whose decoder steps cost little; it gives the same answers.

    Its weights may be copies: prepare it again when the model has learned more.

    Args:
        model: In evaluation mode.
        shortlist: What answers may be made of, by their sources; None is all tokens.

    Example:
        >>> from regard.models import ConvSeq2SeqConfig
        >>> from regard.runtime import prepared
        >>> config = ConvSeq2SeqConfig(embed_dim=8, hidden_dim=6)
        >>> model = ConvSeq2Seq(config, source_vocab=11, target_vocab=11).eval()
        >>> ids, lengths = torch.ones(2, 5, dtype=torch.long), torch.tensor([5, 3])
        >>> torch.equal(prepared(model)(ids, lengths, ids)[0], model(ids, lengths, ids)[0])
        True
        >>> PreparedConvSeq2Seq.refuse(model.double()) is None  # it must be in float32
        False
    """

    model: ConvSeq2Seq
    _steps: "PreparedConvolutions"

    def __init__(self, model: ConvSeq2Seq, *, shortlist: Shortlist | None = None) -> None:
        super().__init__(model, shortlist=shortlist)
        self._steps = PreparedConvolutions(model)

    @staticmethod
    def refuse(model: ConvSeq2Seq) -> str | None:
        """Why a model cannot be prepared, or None if it can."""
        return why_not_looped(model, model.decoder)

    @torch.no_grad()
    def start(self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, " B"]) -> PreparedState:
        """The state before the first token: the source read, nothing before the target."""
        read = self.model.start(source, source_lengths).read
        return begin(
            len(source),
            len(self.model.decoder),
            self.model.config.hidden_dim,
            memory=torch.cat([read.keys, read.values], dim=-1)[None].numpy(),
            lengths=source_lengths,
            listed=self._listed(source, source_lengths),
        )


class PreparedConvolutions(LoopedSteps[PreparedState]):
    """The decoder of a convolutional model, ready for many steps.

    Args:
        model: In evaluation mode.
    """

    def __init__(self, model: ConvSeq2Seq) -> None:
        super().__init__(model.output, model.output_bias)
        # Only here: what cannot be compiled cannot be imported.
        from regard.kernels import convolutional as conv_kernels
        from regard.kernels.transformer import decoder as kernels

        self._step, self._past = conv_kernels.step, kernels.Past
        self._positions = model.target_positions
        self._options = _one_head(model.config.embed_dim)
        self._weights = _weights_of(model, self.table, self.table_bias)

    def _run(
        self,
        token: Int64[np.ndarray, " R"],
        state: PreparedState,
        answers: Float32[np.ndarray, "R C"],
        logits: Float32[np.ndarray, "R V"],
        then: Then | None,
    ) -> PreparedState:
        state, (rows, width) = state.with_room(), answers.shape
        if state.length >= len(self._weights.places):
            self._positions(torch.zeros(1, 1, width), first=state.length)  # which says why not
        queries = np.empty((len(self._weights.ask), rows, width), np.float32)
        mixed = np.empty((rows, width), np.float32)
        past = self._past(
            state.store.kept,
            state.ancestors,
            state.starts,
            state.memory,
            state.lengths,
            state.sentences,
            np.zeros((1, 2, 0), np.float32),
        )

        def go(first: int, stop: int) -> None:
            self._step(
                first,
                stop,
                token,
                self._weights,
                past,
                state.length,
                self._options,
                queries,
                mixed,
                answers,
                logits,
            )
            if then is not None:
                then(first, stop, logits)

        in_blocks(rows, go)
        self._announce(state, queries)
        return state.after(list(queries[:, :, None]))

    def _announce(self, state: PreparedState, queries: Float32[np.ndarray, "L R E"]) -> None:
        """Show whoever observes what each layer looked at in the source, as ``attend`` would."""
        if current_observer() is None:
            return
        memory = torch.from_numpy(state.memory[0][state.sentences])
        key, seen = memory[..., : queries.shape[2]], state.lengths[state.sentences]
        for layer, query in enumerate(queries):
            with at("cross", layer):
                asked = torch.from_numpy(query)[:, None]
                announce(asked, key, CallOptions(Dot(), lengths(torch.from_numpy(seen))))


def _one_head(width: int) -> "kernels.Options":
    """Options of cross-attention with one head, without projections of queries and keys."""
    from regard.kernels.transformer import decoder as kernels

    return kernels.Options(
        heads=1,
        key_heads=1,
        head_dim=width,
        scale=np.float32(1),
        slopes=np.zeros(0, np.float32),
        eps=np.float32(0),
        is_rms=False,
        is_pre=False,
        activation=0,
        pair_apart=1,
        is_recurrent=False,
    )


def _weights_of(
    model: ConvSeq2Seq,
    table: Float32[np.ndarray, "v E p"],
    table_bias: Float32[np.ndarray, " vp"],
) -> "conv_kernels.Weights":
    from regard.kernels import convolutional as conv_kernels
    from regard.kernels.products import packed as panels

    layers = [layer for layer in model.decoder if isinstance(layer, DecoderLayer)]
    convolutions = [layer.convolution.convolution for layer in layers]
    # (2C, C, k) to (2C, k C): the earliest place first.
    convolved = [each.weight.transpose(1, 2).flatten(1) for each in convolutions]

    def lanes_of(biases: list[Tensor | None]) -> np.ndarray:
        return panels.stacked_lanes([each.detach().numpy() for each in biases if each is not None])

    def all_of(maps: list[nn.Linear]) -> tuple[np.ndarray, np.ndarray]:
        weights = [each.weight.detach().numpy() for each in maps]
        return panels.stacked(weights), lanes_of([each.bias for each in maps])

    ask, ask_bias = all_of([layer.query for layer in layers])
    tell, tell_bias = all_of([layer.context for layer in layers])
    (begin, begin_bias), (end, end_bias) = (
        all_of([each]) for each in (model.decoder_input, model.decoder_output)
    )
    return conv_kernels.Weights(
        embedding=model.target_embedding.weight.detach().numpy(),
        places=model.target_positions.table.detach().numpy(),
        begin=begin[0],
        begin_bias=begin_bias[0],
        convolution=panels.stacked([each.detach().numpy() for each in convolved]),
        convolution_bias=lanes_of([each.bias for each in convolutions]),
        ask=ask,
        ask_bias=ask_bias,
        tell=tell,
        tell_bias=tell_bias,
        end=end[0],
        end_bias=end_bias[0],
        table=table,
        table_bias=table_bias,
    )
