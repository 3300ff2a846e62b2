"""Recurrent encoder-decoders: one fixed context vector, or attention at every step.

``attention = "none"`` is the encoder-decoder of Cho et al. (2014), https://arxiv.org/abs/1406.1078,
and Sutskever et al. (2014): the sentence goes through one vector. ``attention = "additive"`` is
Bahdanau et al. (2015), https://arxiv.org/abs/1409.0473: a context of its own for every word; with
``decoder = "luong"`` and the other scores, Luong et al. (2015), https://arxiv.org/abs/1508.04025.
How it may look otherwise (near, at one position, onwards only) is in ``recurrent_attention.py``.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import at, lengths
from regard.attention.observing import EDITOR, OBSERVER
from regard.layers import (
    AdditiveAttention,
    BilinearAttention,
    DotAttention,
    Dropout,
    LocationAttention,
    RecurrentEncoder,
    ScoredAttention,
    TokenEmbedding,
)
from regard.layers.input_feeding import FedMemory, unroll_fed
from regard.layers.inputs import check_state, pairs, real_positions, step_tokens, texts
from regard.layers.pointer import Pointer, check_shared
from regard.layers.recurrent import RecurrentCell
from regard.layers.unrolled import AdditiveMemory, is_changed, takes_sequences, unroll
from regard.models.configs.generation import RnnSeq2SeqConfig
from regard.models.interfaces import DecodingState, Seq2Seq, SourceMemory
from regard.models.recurrent_attention import (
    AttentionOutput,
    AttentionState,
    AttentionVariant,
    Covering,
    Mixture,
    Near,
    Sampled,
    Soft,
    reinforce,
)


@dataclass(frozen=True)
class RnnState(DecodingState):
    """Decoder state between two tokens."""

    layers: tuple[Float[Tensor, "B ..."], ...]  # each decoder layer's state
    # The memory of attention, or the fixed context vector (B, Y).
    memory: SourceMemory | Float[Tensor, "B Y"]
    attention: AttentionState | None = None  # coverage, or positions of bumps
    # The last step's answer, which the next one reads (Luong).
    fed: Float[Tensor, "B C"] | None = None
    source: Int[Tensor, "B S"] | None = None  # ids that may be copied


class RnnSeq2Seq(Seq2Seq[RnnState]):
    """Reads the source in both directions, writes the target word by word.

    The ``bahdanau`` decoder: the query that predicts token t is the top state after token t - 1;
    the next state is made from it, the last token and the context, and a maxout layer makes the
    prediction from all three. After Bahdanau et al. (2015), https://arxiv.org/abs/1409.0473,
    appendix A.2, but the maxout layer reads the new state instead of the last, and the GRU's reset
    gate works on the product with the state, as in torch, instead of on the state.

    The ``luong`` decoder: the state h_t after the last token is the query, and
    ``tanh(W [c_t; h_t])`` makes the prediction and is read by the next step: Luong et al. (2015),
    sections 3 and 3.3, with this encoder of two directions.

    The tables of both sides stay two where they number the same tokens.

    Args:
        end_id: The token that ends a target; 3 in every tokenizer here.

    Raises:
        SettingError: Words are to be copied between two vocabularies.
    """

    def __init__(
        self,
        config: RnnSeq2SeqConfig,
        *,
        source_vocab: int,
        target_vocab: int,
        shared_vocab: bool = False,
        end_id: int = 3,
    ) -> None:
        super().__init__()
        self.config = config
        self.end_id = end_id
        self.max_length = config.max_length if config.attention == "location" else None
        embed, hidden = config.embed_dim, config.hidden_dim
        self.source_embedding = TokenEmbedding(source_vocab, embed)
        self.target_embedding = TokenEmbedding(target_vocab, embed)
        self.output = self.target_embedding
        if not config.tie_embeddings:
            self.output = TokenEmbedding(target_vocab, embed, scaled=False)
        self.output_bias = nn.Parameter(torch.zeros(target_vocab)) if config.output_bias else None
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
        carried = hidden if config.beginning == "backward" else 2 * hidden
        self.first = nn.ModuleList(nn.Linear(carried, cell.state_dim) for cell in cells)
        is_luong = config.decoder == "luong"
        extra_dim = embed if is_luong else context_dim
        self.context_gates = nn.Linear(extra_dim, cells[0].num_gates * hidden, bias=False)
        self.attention = _SCORES[config.attention](config)
        self.way = _variant(config)
        self.readout = (
            nn.Linear(hidden + context_dim, embed)
            if is_luong
            else nn.Linear(hidden + embed + context_dim, 2 * embed)
        )
        self.pointer: Pointer | None = None
        if config.copy:
            check_shared("model.copy", shared_vocab)
            self.copying_layer = 0
            self.pointer = Pointer((embed if is_luong else hidden) + embed + context_dim)

    def forward(
        self,
        source: Int[Tensor, "B S"],
        source_lengths: Int[Tensor, " B"],
        target: Int[Tensor, "B T"],
        target_lengths: Int[Tensor, " B"] | None = None,
    ) -> tuple[Float[Tensor, "B T C"], Float[Tensor, ""] | None]:
        """The readouts; while training, also the loss of coverage or of drawn positions.

        See :meth:`Seq2Seq.forward`.
        """
        source, source_lengths, target, target_lengths = pairs(
            source, source_lengths, target, target_lengths
        )
        state = self.start(source, source_lengths)
        embedded = self.dropout(self.target_embedding(target))
        gates = self._cells[0].project(embedded)
        outputs: list[AttentionOutput] = []
        if (unrolled := self._unroll(gates, state)) is not None:
            tops, contexts, weights = unrolled
        else:
            steps = []
            for step_gates in gates.unbind(1):
                top, output, state = self._advance(step_gates, state)
                steps.append(top)
                outputs.append(output)
            tops, contexts = torch.stack(steps, 1), torch.stack([o.context for o in outputs], 1)
            weights = _stacked([output.weights for output in outputs])
        states = self._read(tops, embedded, contexts, weights, source)
        if not (self.training and (self.config.hard or self.config.coverage)):
            return states, None
        if target_lengths is None:
            target_lengths = target.new_full((len(target),), target.shape[1])
        is_real = real_positions(target_lengths, target.shape[1])
        penalties = _stacked([output.penalty for output in outputs])
        if isinstance(self.way, Covering) and weights is not None:
            penalties = self.way.penalties(weights)
        assert penalties is not None
        weight = self.config.entropy_weight if self.config.hard else self.config.coverage_weight
        auxiliary = weight * (penalties * is_real).sum()
        if (log_probs := _stacked([output.log_prob for output in outputs])) is not None:
            gains = self._gains(states, target, target_lengths)
            auxiliary = auxiliary + self.config.reward_weight * reinforce(log_probs, gains, is_real)
        return states, auxiliary

    def project(self, states: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch V"]:
        of_vocabulary = partial(self.output.logits, bias=self.output_bias)
        if self.pointer is not None:
            return self.pointer.logits(states, self.config.embed_dim, of_vocabulary)
        return of_vocabulary(states)

    def start(self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, " B"]) -> RnnState:
        source, source_lengths = texts("source", source, source_lengths)
        embedded = self.source_embedding(source)
        states, last = self.encoder(self.dropout(embedded), source_lengths)
        return self.begin(source, source_lengths, embedded, states, last)

    def begin(
        self,
        source: Int[Tensor, "B S"],
        source_lengths: Int[Tensor, " B"],
        embedded: Float[Tensor, "B S X"],
        states: Float[Tensor, "B S Y"],
        last: Float[Tensor, "B Y"],
    ) -> RnnState:
        """The state before the first token of a source whose vectors the encoder read.

        ``last`` are the last states of its two directions side by side.
        """
        carried = last[:, self.config.hidden_dim :] if self.config.beginning == "backward" else last
        layers = tuple(torch.tanh(first(carried)).to(last.dtype) for first in self.first)
        fed = None
        if self.config.decoder == "luong":
            fed = last.new_zeros(last.shape[0], self.config.embed_dim)
        if self.way is None:
            return RnnState(layers=layers, memory=last, fed=fed)
        keys = states
        if self.config.attention == "dot":
            forwards, backwards = states.chunk(2, dim=-1)
            keys = forwards + backwards
        memory = SourceMemory(
            keys if self.attention is None else self.attention.prepare(keys),
            embedded if self.config.values == "embeddings" else states,
            source_lengths,
            lengths(source_lengths),
        )
        attention = self.way.start(memory)
        return RnnState(layers, memory, attention, fed, None if self.pointer is None else source)

    def step(
        self, token: Int[Tensor, " B"], state: RnnState
    ) -> tuple[Float[Tensor, "B V"], RnnState]:
        check_state(state, RnnState)
        token = step_tokens(token, state.num_rows)
        embedded = self.dropout(self.target_embedding(token))
        top, output, state = self._advance(self._cells[0].project(embedded), state)
        states = self._read(top, embedded, output.context, output.weights, state.source)
        return torch.log_softmax(self.project(states).float(), dim=-1), state

    def _advance(self, gates: Tensor, state: RnnState) -> tuple[Tensor, AttentionOutput, RnnState]:
        """Output state, attention weights and the state after one step."""
        top_of = self._cells[-1].output
        if state.fed is not None:  # Luong
            layers = self._recur(gates + self.context_gates(state.fed), state.layers)
            top = top_of(layers[-1])
            output = self._attend(top, state)
            top = torch.tanh(self.readout(torch.cat([output.context, top], dim=-1)))
            return top, output, replace(state, layers=layers, attention=output.state, fed=top)
        output = self._attend(top_of(state.layers[-1]), state)
        layers = self._recur(gates + self.context_gates(output.context), state.layers)
        return top_of(layers[-1]), output, replace(state, layers=layers, attention=output.state)

    def _unroll(
        self, gates: Tensor, state: RnnState
    ) -> tuple[Tensor, Tensor, Tensor | None] | None:
        """Output states, contexts and weights by compiled passes; None where they cannot."""
        cell, memory = self._cells[0], state.memory
        if len(self._cells) > 1 or OBSERVER.get() is not None or EDITOR.get() is not None:
            return None
        gated, of_memory = gates, None
        parts: list[nn.Module] = [cell, cell.hidden, self.context_gates]
        if not isinstance(memory, Tensor):
            if (of_memory := self._memory_of_passes(memory)) is None:
                return None
            parts += [cast(nn.Module, self.way), *cast(nn.Module, self.attention).modules()]
            parts += [self.readout] * (self.config.decoder == "luong")
        elif self.config.decoder == "luong":
            return None
        else:
            gated = gates + self.context_gates(memory).unsqueeze(1)
        inputs = (gated, state.layers[0], cell.hidden.weight, cell.hidden.bias)
        if any(map(is_changed, parts)) or not takes_sequences(*inputs, *(of_memory or ())[:-1]):
            return None
        if isinstance(of_memory, FedMemory):
            return unroll_fed(self.config.cell, *inputs, of_memory)
        states, contexts, weights = unroll(self.config.cell, *inputs, of_memory)
        if contexts is None:
            assert isinstance(memory, Tensor)
            contexts = memory.unsqueeze(1).expand(-1, gates.shape[1], -1)
        return states, contexts, weights

    def _memory_of_passes(self, memory: SourceMemory) -> AdditiveMemory | FedMemory | None:
        """A memory and the weights that passes attend to it by; None where they cannot."""
        attention, way, is_luong = self.attention, self.way, self.config.decoder == "luong"
        if type(way) not in (Soft, Covering) or attention is None or attention.dropout:
            return None
        nothing, of_steps = memory.keys.new_empty(0), self.context_gates.weight
        scored: tuple[Tensor, Tensor]
        if type(attention) is AdditiveAttention:
            scored = (attention.query.weight, attention.w)
        elif type(attention) is BilinearAttention and is_luong:
            scored = (attention.w.t(), nothing)
        elif type(attention) is DotAttention and is_luong and not attention.is_scaled:
            scored = (nothing, nothing)
        else:
            return None
        source = (memory.keys, memory.values, memory.lengths)
        coverage = way.w if isinstance(way, Covering) else nothing
        if not is_luong:
            return AdditiveMemory(*scored, of_steps, coverage, *source)
        if isinstance(way, Covering):
            return None
        return FedMemory(*scored, of_steps, self.readout.weight, self.readout.bias, *source)

    def _recur(self, inputs: Tensor, before: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """The state of each layer one step later."""
        cells = self._cells
        layers: list[Tensor] = []
        for layer, cell in enumerate(cells):
            if layer > 0:
                inputs = cell.project(self.dropout(cell.output(layers[-1])))
            layers.append(cell(inputs, before[layer]))
        return tuple(layers)

    def _attend(self, query: Tensor, state: RnnState) -> AttentionOutput:
        memory = state.memory
        if isinstance(memory, Tensor):
            return AttentionOutput(memory, AttentionState())
        assert self.way is not None
        with at("cross", 0):
            output: AttentionOutput = self.way(self.attention, query, memory, state.attention)
        return output

    def _read(
        self,
        top: Tensor,
        embedded: Tensor,
        context: Tensor,
        weights: Tensor | None,
        source: Tensor | None,
    ) -> Tensor:
        """State that predicts the next token, by maxout (Bahdanau) or as it is; and copies."""
        joined = torch.cat([top, embedded, context], dim=-1)
        if self.config.decoder == "bahdanau":
            top = self.readout(joined).unflatten(-1, (-1, 2)).amax(-1)
        best: Tensor = self.dropout(top)
        if self.pointer is None:
            return best
        assert weights is not None
        assert source is not None
        ids = source if weights.dim() == 2 else source.unsqueeze(1).expand_as(weights)
        states: Tensor = self.pointer(best, joined, weights, ids)
        return states

    @torch.no_grad()
    def _gains(
        self, states: Tensor, target: Int[Tensor, "B T"], target_lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B T"]:
        """The log-probability of the token that follows each, which at last is the end."""
        labels = torch.cat([target[:, 1:], target.new_full((len(target), 1), self.end_id)], 1)
        labels = labels.scatter(1, target_lengths[:, None] - 1, self.end_id)
        steps = zip(states.unbind(1), labels.unbind(1), strict=True)
        losses = [F.cross_entropy(self.project(s).float(), y, reduction="none") for s, y in steps]
        return -torch.stack(losses, 1)

    @property
    def _cells(self) -> list[RecurrentCell]:
        return cast(list[RecurrentCell], list(self.cells))


# How a query and a source state match, by ``attention``; Graves' bumps match nothing.
_SCORES: dict[str, Callable[[RnnSeq2SeqConfig], ScoredAttention | None]] = {
    "additive": lambda config: AdditiveAttention(
        config.hidden_dim, 2 * config.hidden_dim, config.attention_dim
    ),
    "dot": lambda config: DotAttention(is_scaled=False),
    "general": lambda config: BilinearAttention(config.hidden_dim, 2 * config.hidden_dim),
    "location": lambda config: LocationAttention(config.hidden_dim, config.max_length),
    "mixture": lambda config: None,
    "none": lambda config: None,
}


def _variant(config: RnnSeq2SeqConfig) -> AttentionVariant | None:
    """The decoder's attention to the source; None if it has none."""
    if config.attention == "none":
        return None
    if config.attention == "mixture":
        return Mixture(config.hidden_dim, config.num_gaussians)
    if config.hard:
        return Sampled(mean_share=config.mean_share)
    if config.local != "none":
        is_predictive = config.local == "predictive"
        return Near(config.hidden_dim, config.reach, is_predictive=is_predictive)
    if config.coverage:
        widths = {"additive": config.attention_dim, "general": 2 * config.hidden_dim}
        return Covering(widths.get(config.attention, config.hidden_dim))
    return Soft(shows_weights=config.copy)


def _stacked(steps: list[Tensor | None]) -> Tensor | None:
    """Stack steps, (B, T, ...); None if there are none."""
    present = [step for step in steps if step is not None]
    return torch.stack(present, 1) if present else None
