"""Recurrent encoder-decoders: one fixed context vector, or attention at every step.

``attention = "none"`` is the encoder-decoder of Cho et al. (2014), https://arxiv.org/abs/1406.1078,
and Sutskever et al. (2014): the sentence goes through one vector. ``attention = "additive"`` is
Bahdanau et al. (2015), https://arxiv.org/abs/1409.0473: a context of its own for every word.
"""

from dataclasses import dataclass, replace
from typing import Literal, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention import Mask, at, lengths
from regard.checks import check_at_least, check_fraction
from regard.errors import SettingError
from regard.layers import (
    AdditiveAttention,
    Dropout,
    RecurrentCell,
    RecurrentEncoder,
    TokenEmbedding,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class RnnSeq2SeqConfig:
    """Sizes and options of a recurrent encoder-decoder.

    Attributes:
        cell: ``rnn``, ``gru`` or ``lstm``, in the encoder and the decoder.
        attention: ``additive``, or ``none`` for one fixed context vector.
        values: What attention mixes: the encoder's ``states`` as in the paper, or the source
            ``embeddings``. With embeddings, a word's meaning reaches the output only through the
            attention paid to that very word, so the weights can be read as an alignment.
        embed_dim: Width of the embeddings of both sides.
        hidden_dim: Width of the decoder's state, and of each direction of the encoder.
        attention_dim: Width inside the additive score, h.
        num_layers: Stacked layers, in the encoder and the decoder.
        dropout: Share dropped of embeddings, between layers and before the last layer.
        tie_embeddings: Whether the last layer is the target embeddings' table.
    """

    cell: Literal["rnn", "gru", "lstm"] = "gru"
    attention: Literal["additive", "none"] = "additive"
    values: Literal["states", "embeddings"] = "states"
    embed_dim: int = 256
    hidden_dim: int = 256
    attention_dim: int = 256
    num_layers: int = 1
    dropout: float = 0.2
    tie_embeddings: bool = True

    def __post_init__(self) -> None:
        for name in ("embed_dim", "hidden_dim", "attention_dim", "num_layers"):
            check_at_least(name, getattr(self, name), 1)
        check_fraction("dropout", self.dropout)
        if self.attention == "none" and self.values == "embeddings":
            raise SettingError(
                "values must be states where attention is none; got 'embeddings'. "
                "Set attention = 'additive' to mix embeddings."
            )


@dataclass(frozen=True)
class Memory:
    """What attention looks at.

    Attributes:
        keys: The source states, projected for the score.
        values: What is mixed.
        lengths: How many of them are real.
        mask: The same as a mask, made once for all steps.
    """

    keys: Float[Tensor, "B S h"]
    values: Float[Tensor, "B S E"]
    lengths: Int[Tensor, " B"]
    mask: Mask

    def select(self, rows: Int[Tensor, " K"]) -> "Memory":
        """The memory of these rows, in this order."""
        kept = self.lengths[rows]
        return Memory(self.keys[rows], self.values[rows], kept, lengths(kept))


@dataclass(frozen=True)
class RnnState:
    """What decoding carries from one token to the next.

    Attributes:
        layers: Each decoder layer's state.
        memory: What attention looks at, or the fixed context vector (B, Y).
    """

    layers: tuple[Float[Tensor, "B ..."], ...]
    memory: Memory | Float[Tensor, "B Y"]

    def select(self, rows: Int[Tensor, " K"]) -> "RnnState":
        """The state of these rows, in this order; a row may come twice."""
        memory = self.memory
        return RnnState(
            layers=tuple(state[rows] for state in self.layers),
            memory=memory[rows] if isinstance(memory, Tensor) else memory.select(rows),
        )


class RnnSeq2Seq(nn.Module):
    """Reads the source in both directions, writes the target word by word.

    The query that predicts token t is the top decoder state after token t - 1; the next state is
    made from it, the last token and the context, and a maxout layer makes the prediction from all
    three. After Bahdanau et al. (2015), https://arxiv.org/abs/1409.0473, appendix A.2, but the
    maxout layer reads the new state instead of the last, and the GRU's reset gate works on the
    product with the state, as in torch, instead of on the state.

    Args:
        config: Sizes and options.
        source_vocab: Number of source ids.
        target_vocab: Number of target ids, V.
        shared_vocab: Whether both sides number the same tokens; the tables stay two all the same.
    """

    def __init__(
        self,
        config: RnnSeq2SeqConfig,
        *,
        source_vocab: int,
        target_vocab: int,
        shared_vocab: bool = False,
    ) -> None:
        super().__init__()
        self.config = config
        self.max_length: int | None = None
        embed, hidden = config.embed_dim, config.hidden_dim
        self.source_embedding = TokenEmbedding(source_vocab, embed)
        self.target_embedding = TokenEmbedding(target_vocab, embed)
        self.output = (
            self.target_embedding
            if config.tie_embeddings
            else TokenEmbedding(target_vocab, embed, scaled=False)
        )
        self.dropout = Dropout(config.dropout)
        self.encoder = RecurrentEncoder(
            config.cell, embed, hidden, num_layers=config.num_layers, dropout=config.dropout
        )
        context_dim = embed if config.values == "embeddings" else 2 * hidden
        cells = [
            RecurrentCell(config.cell, embed if layer == 0 else hidden, hidden)
            for layer in range(config.num_layers)
        ]
        self.cells = nn.ModuleList(cells)
        self.first = nn.ModuleList(nn.Linear(2 * hidden, cell.state_dim) for cell in cells)
        self.context_gates = nn.Linear(context_dim, cells[0].num_gates * hidden, bias=False)
        self.look = (
            AdditiveAttention(hidden, 2 * hidden, config.attention_dim)
            if config.attention == "additive"
            else None
        )
        self.readout = nn.Linear(hidden + embed + context_dim, 2 * embed)

    def forward(
        self,
        source: Int[Tensor, "B S"],
        source_lengths: Int[Tensor, " B"],
        target: Int[Tensor, "B T"],
        target_lengths: Int[Tensor, " B"] | None = None,
    ) -> tuple[Float[Tensor, "B T C"], None]:
        """The readouts for a whole target at once (teacher forcing).

        Args:
            source: Token ids, padded on the right.
            source_lengths: How many of them are real.
            target: The target shifted right: begins with the start token.
            target_lengths: How many of them are real; the states of padding mean nothing.

        Returns:
            States for :meth:`project`, and None: no auxiliary loss.
        """
        state = self.start(source, source_lengths)
        embedded = self.dropout(self.target_embedding(target))
        gates = self._cells[0].project(embedded)
        tops, contexts = [], []
        for step_gates in gates.unbind(1):
            top, context, state = self._advance(step_gates, state)
            tops.append(top)
            contexts.append(context)
        return self._read(torch.stack(tops, 1), embedded, torch.stack(contexts, 1)), None

    def project(self, states: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch V"]:
        """The logits of the next token from the readouts."""
        return self.output.logits(states)

    def start(self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, " B"]) -> RnnState:
        """The state before the first token: the source read, its last states carried over."""
        embedded = self.source_embedding(source)
        states, last = self.encoder(self.dropout(embedded), source_lengths)
        layers = tuple(torch.tanh(first(last)).to(last.dtype) for first in self.first)
        if self.look is None:
            return RnnState(layers=layers, memory=last)
        values = embedded if self.config.values == "embeddings" else states
        memory = Memory(self.look.prepare(states), values, source_lengths, lengths(source_lengths))
        return RnnState(layers=layers, memory=memory)

    def step(
        self, token: Int[Tensor, " B"], state: RnnState
    ) -> tuple[Float[Tensor, "B V"], RnnState]:
        """Log-probabilities of the token after ``token``, and the state that includes it."""
        embedded = self.dropout(self.target_embedding(token))
        top, context, state = self._advance(self._cells[0].project(embedded), state)
        logits = self.project(self._read(top, embedded, context))
        return torch.log_softmax(logits.float(), dim=-1), state

    def _advance(self, gates: Tensor, state: RnnState) -> tuple[Tensor, Tensor, RnnState]:
        """The top layer's output, the context it was made with, and the state after one step."""
        cells = self._cells
        context = self._context(cells[-1].output(state.layers[-1]), state.memory)
        inputs = gates + self.context_gates(context)
        layers: list[Tensor] = []
        for layer, cell in enumerate(cells):
            if layer > 0:
                inputs = cell.project(self.dropout(cell.output(layers[-1])))
            layers.append(cell(inputs, state.layers[layer]))
        return cells[-1].output(layers[-1]), context, replace(state, layers=tuple(layers))

    def _context(self, query: Tensor, memory: Memory | Tensor) -> Tensor:
        if isinstance(memory, Tensor) or self.look is None:
            assert isinstance(memory, Tensor)
            return memory
        with at("cross", 0):
            context: Tensor = self.look(query, memory.keys, memory.values, mask=memory.mask)
        return context

    def _read(self, top: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        """Maxout over pairs (Goodfellow et al., 2013) of the state, the last token, the context."""
        pairs = self.readout(torch.cat([top, embedded, context], dim=-1))
        best: Tensor = self.dropout(pairs.unflatten(-1, (-1, 2)).amax(-1))
        return best

    @property
    def _cells(self) -> list[RecurrentCell]:
        return cast(list[RecurrentCell], list(self.cells))
