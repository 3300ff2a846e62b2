"""Recurrent encoder-decoders and language models, packed for many answers."""

from typing import cast

import torch
from jaxtyping import Int
from torch import Tensor, nn

from regard.attention import at, lengths
from regard.attention.engine.options import CallOptions
from regard.attention.observing import announce, current_observer
from regard.attention.scores import Additive, Bilinear, Dot
from regard.kernels import recurrent as kernels
from regard.layers import AdditiveAttention, BilinearAttention, ScoredAttention, TokenEmbedding
from regard.layers.inputs import texts, valid_ids
from regard.layers.recurrent import RecurrentCell
from regard.models.interfaces import AlignedPrompt
from regard.models.recurrent_attention import Soft
from regard.models.recurrent_lm import RecurrentLm
from regard.models.rnn_seq2seq import RnnSeq2Seq, RnnState
from regard.runtime.base import (
    PreparedLanguageModel,
    PreparedSeq2Seq,
    check_unedited,
    why_not_packed,
)
from regard.runtime.modules import with_packed_modules
from regard.runtime.products import MOST_BYTES
from regard.runtime.recurrent.decoder import (
    Layer,
    PreparedEncoder,
    RecurrentDecoder,
    RecurrentState,
    layers_of,
    pack_weights,
)


def _refuse(model: RnnSeq2Seq | RecurrentLm) -> str | None:
    """Reason why a model cannot run in compiled loops, or None; tables of tokens may be large."""
    tables = {id(module.weight) for module in model.modules() if isinstance(module, TokenEmbedding)}
    size = sum(p.nbytes for p in model.parameters() if id(p) not in tables)
    is_large = {"it is too large for the cache of a core": size > MOST_BYTES}
    return why_not_packed(model.parameters(), is_large)


class PreparedRnnSeq2Seq(PreparedSeq2Seq[RecurrentState]):
    """A recurrent encoder-decoder whose decoder steps cost little; see ``PreparedSeq2Seq``."""

    model: RnnSeq2Seq
    _steps: RecurrentDecoder

    def __init__(self, model: RnnSeq2Seq) -> None:
        super().__init__(model)
        cells = cast(list[RecurrentCell], list(model.cells))
        is_luong = model.config.decoder == "luong"
        layers = [
            Layer(cell.input.weight, cell.input.bias, cell.hidden.weight, cell.hidden.bias)
            for cell in cells
        ]
        with_context = torch.cat([layers[0].input, model.context_gates.weight], dim=1)
        readout = model.readout.weight
        if is_luong:  # where the context stands before the state
            readout = readout.roll(cells[-1].hidden_dim, dims=1)
        self._encoder = PreparedEncoder(model.encoder)
        self._begin = with_packed_modules(model).begin
        self._attends_before = not is_luong
        self._state_dim = cells[-1].state_dim
        self._steps = RecurrentDecoder(
            model,
            pack_weights(
                [layers[0]._replace(input=with_context), *layers[1:]],
                model.target_embedding,
                readout,
                model.readout.bias,
                query_map=_query_map(model.attention),
                units=model.attention.w if isinstance(model.attention, AdditiveAttention) else None,
            ),
            kernels.RecurrentOptions(
                cell=kernels.CELLS.index(model.encoder.recurrence.mode),
                attends_before=not is_luong,
                attends_after=is_luong,
            ),
            output=model.output,
            output_bias=model.output_bias,
            announce=self._announce,
        )

    @staticmethod
    def refuse(model: RnnSeq2Seq) -> str | None:
        """Why a model cannot be prepared, or None if it can."""
        if model.pointer is not None:
            return "it copies words"
        if model.way is not None and not isinstance(model.way, Soft):
            return "it does not look at all positions alike"
        attention = model.attention
        if attention is not None and not isinstance(attention.score(torch.float32), _SCORES):
            return "its score is neither additive nor a dot product"
        return _refuse(model)

    @torch.no_grad()
    def start(
        self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, " B"]
    ) -> RecurrentState:
        check_unedited()
        source, source_lengths = texts("source", source, source_lengths)
        embedded = self.model.source_embedding(source)
        states, last = self._encoder(embedded, source_lengths)
        read = self._begin(source, source_lengths, embedded, states, last)
        carried = torch.cat([*read.layers, *([] if read.fed is None else [read.fed])], dim=1)
        return RecurrentState.begin(self.model, carried, self._sources(read))

    def _sources(self, read: RnnState) -> kernels.Memory:
        memory, hidden_dim = read.memory, self.model.config.hidden_dim
        if isinstance(memory, Tensor):  # one position, at which every step looks
            values = memory.unsqueeze(1)
            keys, real = values.new_zeros(len(values), 1, hidden_dim), torch.ones(len(values))
        else:
            keys, values, real = memory.keys, memory.values, memory.lengths
        return kernels.Memory(
            keys.contiguous().numpy(), values.contiguous().numpy(), real.to(torch.int64).numpy()
        )

    def _announce(self, before: RecurrentState, after: RecurrentState) -> None:
        """Announce the attention of a step to an observer, as ``attend`` would."""
        attention = self.model.attention
        if attention is None or current_observer() is None:
            return
        state = before if self._attends_before else after
        carried = torch.from_numpy(state.carried[state.indices])
        begin = (len(self.model.cells) - 1) * self._state_dim
        top = carried[:, begin : begin + self.model.config.hidden_dim]
        query, sources = attention.ask(top)[:, None], before.sources
        keys, real = (
            torch.from_numpy(of[before.sentences]) for of in (sources.keys, sources.lengths)
        )
        with at("cross", 0):
            announce(query, keys, CallOptions(attention.score(torch.float32), lengths(real)))


class PreparedRecurrentLm(PreparedLanguageModel[RecurrentState]):
    """A recurrent language model whose steps cost little; see ``PreparedSeq2Seq``."""

    is_recurrent = True

    model: RecurrentLm
    _steps: RecurrentDecoder

    def __init__(self, model: RecurrentLm) -> None:
        super().__init__(model)
        readout, bias = None, None
        if isinstance(model.readout, nn.Linear):
            readout, bias = model.readout.weight, model.readout.bias
        self._steps = RecurrentDecoder(
            model,
            pack_weights(layers_of(model.recurrence), model.embedding, readout, bias),
            kernels.RecurrentOptions(
                cell=kernels.CELLS.index(model.recurrence.mode),
                attends_before=False,
                attends_after=False,
            ),
            output=model.output,
            output_bias=model.output_bias,
        )

    @staticmethod
    def refuse(model: RecurrentLm) -> str | None:
        """Why a model cannot be prepared, or None if it can."""
        return _refuse(model)

    @torch.no_grad()
    def start(
        self, prompt: Int[Tensor, "B S"], prompt_lengths: Int[Tensor, " B"]
    ) -> RecurrentState:
        check_unedited()
        valid_ids("token ids", prompt, self._steps.vocab_size)
        AlignedPrompt.of(prompt, prompt_lengths)  # which checks them
        # One by one: the state of a prompt does not depend on the others.
        reads = [
            self.model.start(prompt[row : row + 1, :length], prompt_lengths[row : row + 1])
            for row, length in enumerate(prompt_lengths.tolist())
        ]
        carried = torch.cat([torch.cat(read.layers, dim=-1).flatten(1) for read in reads])
        last = [read.pending for read in reads if read.pending is not None]
        pending = torch.cat(last) if last else None
        return RecurrentState.begin(self.model, carried, kernels.Memory(), pending)


# Scores that a step can compute.
_SCORES = (Additive, Bilinear, Dot)


def _query_map(attention: ScoredAttention | None) -> Tensor | None:
    """Projection of queries before the score, (A, h); None without one."""
    if isinstance(attention, AdditiveAttention):
        return attention.query.weight
    return attention.w.T if isinstance(attention, BilinearAttention) else None
