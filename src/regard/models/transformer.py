"""The encoder-decoder Transformer of Vaswani et al. (2017), https://arxiv.org/abs/1706.03762."""

from dataclasses import dataclass, replace
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import KeyValueCache, Mask, PositionBias, alibi, at, lengths, window
from regard.attention.scores.content import make_score
from regard.layers import Dropout, RelativePositions, TokenEmbedding
from regard.layers.block import BlockStack, TransformerBlock
from regard.layers.heads import Packing
from regard.layers.inputs import check_state, pairs, step_tokens, texts
from regard.layers.pointer import CopyAttention, Pointer, check_shared
from regard.layers.positions import added_positions, turned_positions
from regard.layers.residual import final_norm, make_norm
from regard.models.configs.generation import TransformerConfig
from regard.models.interfaces import DecodingState, Seq2Seq
from regard.models.readers import block_options

# The largest distance told apart by Shaw et al. (2018), section 4.1: k.
MAX_DISTANCE = 16


@dataclass(frozen=True)
class TransformerState(DecodingState):
    """Decoder state between two tokens."""

    # Keys and values of the tokens so far, one cache per decoder layer.
    past: tuple[KeyValueCache, ...]
    memory: tuple[KeyValueCache, ...]  # keys and values of the source, one cache per decoder layer
    # Tokens of each source sentence; padding after them is masked.
    source_lengths: Int[Tensor, " B"]
    # Keys and ids of the tokens that may be copied, if any may.
    copying: tuple[Float[Tensor, "B S C"], Int[Tensor, "B S"]] | None = None


class Transformer(Seq2Seq[TransformerState]):
    """Reads a source sentence, writes a target sentence, attending to both.

    Args:
        shared_vocab: Whether both sides number the same tokens; without it, tying ``all`` tables
            falls back to the target's two.
        begin_id: The token that begins a text; 2 in every tokenizer here.

    Raises:
        SettingError: Words are to be copied between two vocabularies, or heads cannot be turned.

    Example:
        >>> config = TransformerConfig(model_dim=8, num_heads=2, ffn_dim=16)
        >>> model = Transformer(config, source_vocab=11, target_vocab=7).eval()
        >>> source, target = torch.ones(2, 5, dtype=torch.long), torch.ones(2, 4, dtype=torch.long)
        >>> states, _ = model(source, torch.tensor([5, 3]), target)
        >>> states.shape, model.project(states).shape
        (torch.Size([2, 4, 8]), torch.Size([2, 4, 7]))
    """

    def __init__(
        self,
        config: TransformerConfig,
        *,
        source_vocab: int,
        target_vocab: int,
        shared_vocab: bool = False,
        begin_id: int = 2,
    ) -> None:
        super().__init__()
        self.config = config
        self.begin_id = begin_id
        self.begins_source = config.source_begin
        longest = config.max_length - config.source_begin
        self.max_length = longest if config.positions == "learned" else None
        width = config.model_dim
        scaled = config.scale_embeddings
        self.target_embedding = TokenEmbedding(target_vocab, width, scaled=scaled)
        self.source_embedding = self.target_embedding
        if not (config.tie_embeddings == "all" and shared_vocab):
            self.source_embedding = TokenEmbedding(source_vocab, width, scaled=scaled)
        self.output = self.target_embedding
        if config.tie_embeddings == "none":
            self.output = TokenEmbedding(target_vocab, width, scaled=False)
        self.output_bias = nn.Parameter(torch.zeros(target_vocab)) if config.output_bias else None
        self.positions = added_positions(config.positions, width, max_length=config.max_length)
        self.target_positions = None
        if config.own_positions:
            self.target_positions = added_positions(
                config.positions, width, max_length=config.max_length
            )
        self.source_norm, self.target_norm = (
            make_norm(config.norm_kind, width, eps=config.norm_eps)
            if config.embedding_norm
            else nn.Identity()
            for _ in range(2)
        )
        self.dropout = Dropout(config.dropout)
        self.encoder = BlockStack(config.num_encoder_layers, partial(_block, config, "encoder"))
        self.decoder = BlockStack(config.num_decoder_layers, partial(_block, config, "decoder"))
        self.encoder_norm, self.decoder_norm = (
            final_norm(config.norm, config.norm_kind, width, eps=config.norm_eps) for _ in range(2)
        )
        if config.positions == "t5":  # the layers of a stack share one table, as in the paper
            self.encoder_bias = RelativePositions(config.num_heads)
            self.decoder_bias = RelativePositions(config.num_heads, is_bidirectional=False)
        if config.copy:
            check_shared("model.copy", shared_vocab)
            self.copying = CopyAttention(width)
            self.copying_layer = config.num_decoder_layers
            self.pointer = Pointer(2 * width)

    def forward(
        self,
        source: Int[Tensor, "B S"],
        source_lengths: Int[Tensor, " B"],
        target: Int[Tensor, "B T"],
        target_lengths: Int[Tensor, " B"] | None = None,
    ) -> tuple[Float[Tensor, "B T C"], None]:
        """The decoder's states, and no auxiliary loss; see :meth:`Seq2Seq.forward`.

        With target_lengths, padding costs nothing where there is much of it.
        """
        source, source_lengths, target, target_lengths = pairs(
            source, source_lengths, target, target_lengths
        )
        source_mask = lengths(source_lengths)
        source_packing = self._packing(source_lengths, source.shape[1])
        memory, values = self._encode(source, source_lengths, source_packing)
        packing = self._packing(target_lengths, target.shape[1])
        states = self._embed(target, first=0)
        if packing is not None:
            states = packing.pack(states)
        states, _ = self.decoder(
            states,
            mask=window(before=self.config.window, after=0),
            bias=self._bias(is_encoder=False),
            memory=self.decoder.project_memory(memory, values, packing=source_packing),
            memory_mask=source_mask,
            packing=packing,
        )
        states = self.decoder_norm(states)
        if packing is not None:
            states = packing.pad(states)
        if self.config.copy:
            keys = self._copy_keys(memory, source_packing)
            states = self._with_copies(states, keys, source_mask, source)
        return states, None

    def project(self, states: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch V"]:
        of_vocabulary = partial(self.output.logits, bias=self.output_bias)
        if self.config.copy:
            return self.pointer.logits(states, self.config.model_dim, of_vocabulary)
        return of_vocabulary(states)

    def start(
        self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, " B"]
    ) -> TransformerState:
        source, source_lengths = texts("source", source, source_lengths)
        packing = self._packing(source_lengths, source.shape[1])
        memory, values = self._encode(source, source_lengths, packing)
        return TransformerState(
            past=self.decoder.empty_caches(source.shape[0]),
            memory=tuple(self.decoder.project_memory(memory, values, packing=packing)),
            source_lengths=source_lengths,
            copying=(self._copy_keys(memory, packing), source) if self.config.copy else None,
        )

    def step(
        self, token: Int[Tensor, " B"], state: TransformerState
    ) -> tuple[Float[Tensor, "B V"], TransformerState]:
        check_state(state, TransformerState)
        token = step_tokens(token, state.num_rows)
        first = state.past[0].length
        states = self._embed(token[:, None], first=first)
        source_mask = lengths(state.source_lengths)
        reach = self.config.window
        states, past = self.decoder(
            states,
            mask=None if reach is None else window(before=reach, after=0),
            bias=self._bias(is_encoder=False),
            past=state.past,
            memory=state.memory,
            memory_mask=source_mask,
        )
        states = self.decoder_norm(states)
        if state.copying is not None:
            keys, source = state.copying
            states = self._with_copies(states, keys, source_mask, source)
        logits = self.project(states[:, 0])
        return torch.log_softmax(logits.float(), dim=-1), replace(state, past=past)

    def _encode(
        self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, " B"], packing: Packing | None
    ) -> tuple[Float[Tensor, "*positions C"], Float[Tensor, "*positions C"] | None]:
        """The encoder's states, and the values of cross-attention if they differ."""
        if self.config.source_begin:
            with_begin = F.pad(source, (1, 0), value=self.begin_id)
            inside = self._packing(source_lengths + 1, with_begin.shape[1])
            states = self._read(with_begin, lengths(source_lengths + 1), inside)
            states = (states if inside is None else inside.pad(states))[:, 1:]
            states = states if packing is None else packing.pack(states)
        else:
            states = self._read(source, lengths(source_lengths), packing)
        if self.config.values == "embeddings":
            values = self.source_embedding(source)
            return states, values if packing is None else packing.pack(values)
        return states, None

    def _read(
        self, source: Int[Tensor, "B S"], mask: Mask, packing: Packing | None
    ) -> Float[Tensor, "*positions C"]:
        states = self._embed(source, first=0, is_source=True)
        if packing is not None:
            states = packing.pack(states)
        reach = self.config.window
        near = mask if reach is None else mask & window(before=reach, after=reach)
        bias = self._bias(is_encoder=True)
        states, _ = self.encoder(states, mask=near, bias=bias, packing=packing)
        normed: Tensor = self.encoder_norm(states)
        return normed

    def _embed(self, ids: Tensor, *, first: int, is_source: bool = False) -> Tensor:
        table, positions, norm = (
            (self.source_embedding, self.positions, self.source_norm)
            if is_source
            else (self.target_embedding, self.target_positions or self.positions, self.target_norm)
        )
        embedded = table(ids)
        if positions is not None:
            embedded = positions(embedded, first=first)
        dropped: Tensor = self.dropout(norm(embedded))
        return dropped

    def _packing(self, lengths: Int[Tensor, " B"] | None, width: int) -> Packing | None:
        """Leave padding out where there is much of it; of a batch's mean and variance, always."""
        if self.config.norm_kind == "batch" and self.training and lengths is not None:
            return Packing(lengths, width)
        return Packing.if_worthwhile(lengths, width)

    def _bias(self, *, is_encoder: bool) -> PositionBias | None:
        """Bias that all layers of a stack add to the scores of self-attention."""
        if self.config.positions == "alibi":
            return alibi()
        if self.config.positions == "t5":
            bias: PositionBias = self.encoder_bias() if is_encoder else self.decoder_bias()
            return bias
        return None

    def _copy_keys(self, memory: Tensor, packing: Packing | None) -> Float[Tensor, "B S C"]:
        keys: Tensor = self.copying.key(memory)
        return keys if packing is None else packing.pad(keys)

    def _with_copies(
        self,
        states: Float[Tensor, "B T C"],
        keys: Float[Tensor, "B S C"],
        source_mask: Mask,
        source: Int[Tensor, "B S"],
    ) -> Float[Tensor, "B T Y"]:
        """The states, with the weights of copies beside them."""
        assert self.copying_layer is not None
        with at("cross", self.copying_layer):
            weights: Tensor = self.copying(states, keys, mask=source_mask)
        with_context = torch.cat([states, weights @ keys], dim=-1)
        ids = source.unsqueeze(1).expand_as(weights)
        joined: Tensor = self.pointer(states, with_context, weights, ids)
        return joined


def _block(config: TransformerConfig, kind: str, layer: int) -> TransformerBlock:
    head_dim = config.model_dim // config.num_heads
    return TransformerBlock(
        kind,
        layer,
        num_key_heads=config.num_key_heads,
        head_dropout=config.head_dropout,
        rotary=turned_positions(config.positions, head_dim),
        max_distance=MAX_DISTANCE if config.positions == "relative" else None,
        score=partial(make_score, config.score, config.num_heads, head_dim),
        has_memory=kind == "decoder",
        **block_options(config),
    )
