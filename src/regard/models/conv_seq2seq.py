"""The convolutional encoder-decoder of Gehring et al. (2017), https://arxiv.org/abs/1705.03122."""

from dataclasses import dataclass, replace
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import weight_norm

from regard.attention import Dot, at, attend, lengths
from regard.checks import check_count, check_fraction
from regard.errors import SettingError
from regard.layers import Dropout, LearnedPositions, TokenEmbedding
from regard.layers.inputs import check_state, pairs, real_positions, step_tokens, texts
from regard.models.configs.generation import ConvSeq2SeqConfig
from regard.models.interfaces import DecodingState, Seq2Seq, SourceMemory

# The sum of two numbers of one variance has twice that: halve it again (section 3.4).
HALF = 0.5**0.5
# Of words and positions alike (section 4.2). Nothing scales the dot products: were embeddings of
# unit size, each query would begin with one key, and hardly hear of the others.
EMBEDDING_DEVIATION = 0.1


@dataclass(frozen=True)
class ConvState(DecodingState):
    """Decoder state between two tokens."""

    # The last inputs of each layer's convolution, all that it can see of earlier tokens.
    past: tuple[Float[Tensor, "B P C"], ...]
    # The source: the encoder's outputs z as keys, and with the embeddings added as values.
    read: SourceMemory
    length: int  # tokens so far


class ConvSeq2Seq(Seq2Seq[ConvState]):
    """Reads and writes by stacks of gated convolutions; every layer of the decoder attends.

    A layer of the encoder is ``(v(conv(h)) + h) √½``. A layer of the decoder attends in between:
    with ``g`` the embeddings of the target so far, ``d = (W h + b + g) √½`` is matched with the
    encoder's outputs z by plain dot products, and the values are z + e, embeddings e included.
    As in the authors' code, every sum of two is multiplied by √½, contexts by the √m of section
    3.4, and the gradient of z is divided by 2n, n the number of layers that attend to it; the paper
    divides by n.

    The tables of both sides stay two where they number the same tokens.

    Raises:
        SettingError: The kernel is even.
    """

    def __init__(
        self,
        config: ConvSeq2SeqConfig,
        *,
        source_vocab: int,
        target_vocab: int,
        shared_vocab: bool = False,
    ) -> None:
        super().__init__()
        self.config = config
        self.max_length = config.max_length
        embed, hidden = config.embed_dim, config.hidden_dim
        self.source_embedding = TokenEmbedding(source_vocab, embed, scaled=False)
        self.target_embedding = TokenEmbedding(target_vocab, embed, scaled=False)
        self.source_positions = LearnedPositions(embed, max_length=config.max_length)
        self.target_positions = LearnedPositions(embed, max_length=config.max_length)
        self.output = self.target_embedding
        if not config.tie_embeddings:
            self.output = TokenEmbedding(target_vocab, embed, scaled=False)
        for table in (
            *(self.source_embedding.weight, self.target_embedding.weight),
            *(self.source_positions.table, self.target_positions.table),
        ):
            table.data *= EMBEDDING_DEVIATION * embed**0.5  # drawn with 1/√E
        self.output_bias = nn.Parameter(torch.zeros(target_vocab)) if config.output_bias else None
        self.dropout = Dropout(config.dropout)
        self.encoder_input = _linear(config, embed, hidden)
        self.encoder = nn.ModuleList(
            _convolution(config, is_causal=False) for _ in range(config.num_encoder_layers)
        )
        self.encoder_output = _linear(config, hidden, embed)
        self.decoder_input = _linear(config, embed, hidden)
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.num_decoder_layers))
        self.decoder_output = _linear(config, hidden, embed)

    def forward(
        self,
        source: Int[Tensor, "B S"],
        source_lengths: Int[Tensor, " B"],
        target: Int[Tensor, "B T"],
        target_lengths: Int[Tensor, " B"] | None = None,
    ) -> tuple[Float[Tensor, "B T E"], None]:
        source, source_lengths, target, _ = pairs(source, source_lengths, target, target_lengths)
        read = self._read(source, source_lengths)
        states, _ = self._write(target, read, [None] * len(self.decoder), first=0)
        return states, None

    def project(self, states: Float[Tensor, "*batch E"]) -> Float[Tensor, "*batch V"]:
        return self.output.logits(states, self.output_bias)

    def start(self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, " B"]) -> ConvState:
        read = self._read(*texts("source", source, source_lengths))
        width = self.config.hidden_dim
        nothing = read.keys.new_zeros(len(source), self.config.kernel_size - 1, width)
        return ConvState((nothing,) * len(self.decoder), read, 0)

    def step(
        self, token: Int[Tensor, " B"], state: ConvState
    ) -> tuple[Float[Tensor, "B V"], ConvState]:
        check_state(state, ConvState)
        token = step_tokens(token, state.num_rows)
        states, past = self._write(token[:, None], state.read, state.past, first=state.length)
        log_probs = torch.log_softmax(self.project(states[:, 0]).float(), dim=-1)
        return log_probs, replace(state, past=tuple(past), length=state.length + 1)

    def _read(self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, " B"]) -> SourceMemory:
        is_real = real_positions(source_lengths, source.shape[1]).unsqueeze(-1)
        embedded = self.dropout(self.source_positions(self.source_embedding(source)))
        states = self.encoder_input(embedded)
        for convolution in self.encoder:
            change, _ = convolution(states * is_real)
            states = (change + states) * HALF
        outputs, scale = self.encoder_output(states), 1 / (2 * len(self.decoder))
        keys = outputs * scale + outputs.detach() * (1 - scale)  # the gradient alone is scaled
        values = (keys + embedded) * HALF
        # Under autocast outputs come in half precision, and embeddings do not.
        return SourceMemory(keys.to(values.dtype), values, source_lengths, lengths(source_lengths))

    def _write(
        self,
        target: Int[Tensor, "B T"],
        read: SourceMemory,
        past: list[None] | tuple[Tensor, ...],
        *,
        first: int,
    ) -> tuple[Float[Tensor, "B T E"], list[Tensor]]:
        """The outputs for tokens from position ``first`` on, and their part of later inputs."""
        embedded = self.target_positions(self.target_embedding(target), first=first)
        embedded = self.dropout(embedded)
        states = self.decoder_input(embedded)
        next_past: list[Tensor] = []
        for layer, block in enumerate(self.decoder):
            with at("cross", layer):
                states, inputs = block(states, embedded, read, past[layer])
            next_past.append(inputs)
        return self.dropout(self.decoder_output(states)), next_past


class GatedConvolution(nn.Module):
    """A convolution over each position's neighbourhood, half of it gated by the other half."""

    # ``v(A, B) = A * sigmoid(B)`` with ``[A B] = W x + b`` over k positions: the gated linear unit
    # of Dauphin et al. (2017), https://arxiv.org/abs/1612.08083, as Gehring et al. (2017) use it.
    # Beyond the ends stand zeros. Weight norm learns lengths and directions of the weights apart:
    # Salimans & Kingma (2016), https://arxiv.org/abs/1602.07868.

    def __init__(
        self,
        model_dim: int,
        kernel_size: int,
        *,
        is_causal: bool = False,
        dropout: float = 0.0,
        has_weight_norm: bool = False,
    ) -> None:
        super().__init__()
        check_count("kernel_size", kernel_size)
        check_fraction("dropout", dropout)
        if not is_causal and kernel_size % 2 == 0:
            raise SettingError(
                f"kernel_size must be odd, to have a middle, unless is_causal; got {kernel_size}."
            )
        self.dropout = dropout
        before = kernel_size - 1 if is_causal else kernel_size // 2
        self.before, self.after = before, kernel_size - 1 - before
        self.convolution = nn.Conv1d(model_dim, 2 * model_dim, kernel_size)
        # Gates halve their inputs: Gehring et al., section 3.5.
        deviation = (4 * (1 - dropout) / (kernel_size * model_dim)) ** 0.5
        nn.init.normal_(self.convolution.weight, std=deviation)
        assert self.convolution.bias is not None
        nn.init.zeros_(self.convolution.bias)
        if has_weight_norm:
            weight_norm(self.convolution)

    def forward(
        self, states: Float[Tensor, "B N C"], past: Float[Tensor, "B P C"] | None = None
    ) -> tuple[Float[Tensor, "B N C"], Float[Tensor, "B P C"]]:
        """The positions one layer further on, and the last inputs: ``past`` of later positions."""
        B, N, C = states.shape
        inputs = F.dropout(states, self.dropout, training=self.training)
        before = inputs.new_zeros(B, self.before, C) if past is None else past
        inputs = torch.cat([before, inputs, inputs.new_zeros(B, self.after, C)], dim=1)
        gated = F.glu(self.convolution(inputs.transpose(1, 2)).transpose(1, 2), dim=-1)
        return gated, inputs[:, N : N + self.before]


class DecoderLayer(nn.Module):
    """A convolution over the target so far, then attention to the source."""

    def __init__(self, config: ConvSeq2SeqConfig) -> None:
        super().__init__()
        self.convolution = _convolution(config, is_causal=True)
        self.query = _linear(config, config.hidden_dim, config.embed_dim)
        self.context = _linear(config, config.embed_dim, config.hidden_dim)

    def forward(
        self,
        states: Float[Tensor, "B N C"],
        embedded: Float[Tensor, "B N E"],
        read: SourceMemory,
        past: Float[Tensor, "B P C"] | None,
    ) -> tuple[Float[Tensor, "B N C"], Float[Tensor, "B P C"]]:
        """The states one layer further on, and the convolution's last inputs."""
        changed, inputs = self.convolution(states, past)
        query = (self.query(changed) + embedded) * HALF
        mixed = attend(
            query.to(read.keys.dtype), read.keys, read.values, score=Dot(), mask=read.mask
        )
        # The mean of m values has a variance of 1/m of theirs (section 3.4).
        context = self.context(mixed * read.lengths.sqrt()[:, None, None])
        return ((changed + context) * HALF + states) * HALF, inputs


def _convolution(config: ConvSeq2SeqConfig, *, is_causal: bool) -> GatedConvolution:
    return GatedConvolution(
        config.hidden_dim,
        config.kernel_size,
        is_causal=is_causal,
        dropout=config.dropout,
        has_weight_norm=config.weight_norm,
    )


def _linear(config: ConvSeq2SeqConfig, input_dim: int, output_dim: int) -> nn.Linear:
    """A projection that keeps the variance after dropout (section 3.5)."""
    linear = nn.Linear(input_dim, output_dim)
    nn.init.normal_(linear.weight, std=((1 - config.dropout) / input_dim) ** 0.5)
    nn.init.zeros_(linear.bias)
    return cast(nn.Linear, weight_norm(linear)) if config.weight_norm else linear
