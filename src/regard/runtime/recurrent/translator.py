"""A recurrent encoder-decoder that is ready to write many translations."""

from typing import cast

import torch
from jaxtyping import Int
from torch import Tensor

from regard.attention import at
from regard.attention.engine.options import CallOptions
from regard.attention.observing import announce, current_observer
from regard.attention.scores import Additive, Bilinear, Dot, Score
from regard.kernels import recurrent as kernels
from regard.layers import (
    AdditiveAttention,
    BilinearAttention,
    RecurrentCell,
    ScoredAttention,
)
from regard.models.recurrent_attention import Soft
from regard.models.rnn_seq2seq import RnnSeq2Seq, RnnState
from regard.runtime.base import PreparedSeq2Seq
from regard.runtime.modules import with_packed_modules
from regard.runtime.recurrent.decoder import (
    Layer,
    Linear,
    RecurrentDecoder,
    RecurrentState,
    Sources,
    packed,
)
from regard.runtime.recurrent.encoder import PreparedEncoder
from regard.runtime.steps import why_not_compiled


class PreparedRnnSeq2Seq(PreparedSeq2Seq[RecurrentState]):
    """A recurrent encoder-decoder whose decoder steps cost little; it gives the same answers.

    Its weights may be copies: prepare it again when the model has learned more.

    Args:
        model: In evaluation mode.

    Example:
        >>> from regard.models import RnnSeq2SeqConfig
        >>> from regard.runtime import prepared
        >>> sizes = {"source_vocab": 11, "target_vocab": 11, "shared_vocab": True}
        >>> config = RnnSeq2SeqConfig(embed_dim=8, hidden_dim=6, attention_dim=5)
        >>> model = RnnSeq2Seq(config, **sizes).eval()
        >>> ids, lengths = torch.ones(2, 5, dtype=torch.long), torch.tensor([5, 3])
        >>> torch.equal(prepared(model)(ids, lengths, ids)[0], model(ids, lengths, ids)[0])
        True
        >>> PreparedRnnSeq2Seq.refuse(RnnSeq2Seq(RnnSeq2SeqConfig(copy=True), **sizes))
        'it copies words'
    """

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
        self._asks_before = not is_luong
        self._state_dim = cells[-1].state_dim
        self._steps = RecurrentDecoder(
            packed(
                [layers[0]._replace(input=with_context), *layers[1:]],
                embedding=model.target_embedding,
                readout=Linear(readout, model.readout.bias),
                ask=_asking(model.look),
                units=_units(model.look),
            ),
            kernels.Options(
                cell=kernels.CELLS.index(model.encoder.recurrence.mode),
                asks_before=not is_luong,
                asks_after=is_luong,
            ),
            output=model.output,
            output_bias=model.output_bias,
            show=self._show,
        )

    @staticmethod
    def refuse(model: RnnSeq2Seq) -> str | None:
        """Why a model cannot be prepared, or None if it can."""
        if model.pointer is not None:
            return "it copies words"
        if model.way is not None and not isinstance(model.way, Soft):
            return "it does not look at all places alike"
        if model.look is not None and not isinstance(_score_of(model.look), _SCORES):
            return "its score is neither additive nor a dot product"
        return why_not_compiled(model, model)

    @torch.no_grad()
    def start(
        self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, " B"]
    ) -> RecurrentState:
        """The state before the first token: the source read, its last states carried over."""
        embedded = self.model.source_embedding(source)
        states, last = self._encoder(embedded, source_lengths)
        read = self._begin(source, source_lengths, embedded, states, last)
        carried = torch.cat([*read.layers, *([] if read.fed is None else [read.fed])], dim=1)
        return RecurrentState.begin(carried, self._sources(read))

    def _sources(self, read: RnnState) -> Sources:
        memory, hidden_dim = read.memory, self.model.config.hidden_dim
        if isinstance(memory, Tensor):  # one place, at which every step looks
            values = memory.unsqueeze(1)
            keys, real = values.new_zeros(len(values), 1, hidden_dim), torch.ones(len(values))
        else:
            keys, values, real = memory.keys, memory.values, memory.lengths
        return Sources(
            keys.contiguous().numpy(), values.contiguous().numpy(), real.to(torch.int64).numpy()
        )

    def _show(self, before: RecurrentState, after: RecurrentState) -> None:
        """Show whoever observes what a step looked at, as ``attend`` would."""
        look = self.model.look
        if look is None or current_observer() is None:
            return
        carried = (before if self._asks_before else after).rows()
        begin = (len(self.model.cells) - 1) * self._state_dim
        top = carried[:, begin : begin + self.model.config.hidden_dim]
        query, view = look.ask(top)[:, None], before.view
        with at("cross", 0):
            announce(query, view.keys, CallOptions(_score_of(look), view.mask))


# Those that a step can work out.
_SCORES = (Additive, Bilinear, Dot)


def _score_of(look: ScoredAttention) -> Score:
    return look.score(torch.float32)


def _asking(look: ScoredAttention | None) -> Tensor | None:
    """Projection of queries before the score, (A, h); None without one."""
    if isinstance(look, AdditiveAttention):
        return look.query.weight
    return look.w.T if isinstance(look, BilinearAttention) else None


def _units(look: ScoredAttention | None) -> Tensor | None:
    return look.w if isinstance(look, AdditiveAttention) else None
