"""The Transformer's decoder by itself: a language model.

GPT: Radford et al. (2018); pre-norm and the scaled beginning are those of GPT-2, Radford et al.
(2019), https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention import KeyValueCache, Mask, alibi, causal, window
from regard.attention import lengths as until
from regard.attention.biases import PositionBias
from regard.layers import Dropout, TokenEmbedding
from regard.layers.heads import Packing
from regard.layers.inputs import check_state, rows_of_ids, step_tokens, texts, valid_ids
from regard.layers.positions import added_positions
from regard.layers.residual import final_norm
from regard.models.configs.generation import DecoderConfig
from regard.models.interfaces import AlignedPrompt, DecodingState, LanguageModel
from regard.models.readers import transformer_layers


@dataclass(frozen=True)
class DecoderState(DecodingState):
    """Decoder state between two tokens."""

    past: tuple[KeyValueCache, ...]  # keys and values of the tokens so far, one cache per layer
    # How many of them each row has too many, at its beginning; None is none.
    padding: Int[Tensor, " B"] | None = None
    # The prompt's last tokens, not read yet; they take the place of the next step's.
    pending: Int[Tensor, " B"] | None = None


class Decoder(LanguageModel[DecoderState]):
    """Predicts each token from those before it.

    Args:
        config: Sizes and options.
        vocab_size: Number of token ids, V.
        pad_id: The id of padding; None if every id is a token.

    Example:
        >>> config = DecoderConfig(model_dim=8, num_heads=2, num_layers=1, ffn_dim=16)
        >>> model = Decoder(config, vocab_size=11).eval()
        >>> model.project(model(torch.ones(2, 5, dtype=torch.long))).shape
        torch.Size([2, 5, 11])
    """

    def __init__(self, config: DecoderConfig, *, vocab_size: int, pad_id: int | None = 0) -> None:
        super().__init__()
        self.config, self.vocab_size = config, vocab_size
        self.output_dim = width = config.model_dim
        self.max_length = config.max_length if config.positions == "learned" else None
        is_scaled = config.positions == "sinusoidal"  # their size is one, as in the paper
        self.embedding = TokenEmbedding(vocab_size, width, pad_id=pad_id, scaled=is_scaled)
        self.output = self.embedding
        if not config.tie_embeddings:
            self.output = TokenEmbedding(vocab_size, width, pad_id=pad_id, scaled=False)
        self.positions = added_positions(config.positions, width, max_length=config.max_length)
        self.dropout = Dropout(config.dropout)
        self.layers = transformer_layers(config, "decoder", num_key_heads=config.num_key_heads)
        self.norm = final_norm(config.norm, config.norm_kind, width, eps=config.norm_eps)
        self._initialise()

    def forward(
        self, ids: Int[Tensor, "B N"], lengths: Int[Tensor, " B"] | None = None
    ) -> Float[Tensor, "B N C"]:
        """The states from which :meth:`project` predicts the token after each.

        No state sees padding; with lengths, it costs nothing where there is much of it.
        """
        ids = rows_of_ids("ids", ids)
        if lengths is not None:
            ids, lengths = texts("ids", ids, lengths)
        states = self._embed(ids, first=0)
        packing = Packing.if_worthwhile(lengths, ids.shape[1])
        if packing is not None:
            states = packing.pack(states)
        states, _ = self.layers(states, mask=self._mask(None), bias=self._bias(), packing=packing)
        states = self.norm(states)
        return states if packing is None else packing.pad(states)

    def project(self, states: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch V"]:
        return self.output.logits(states)

    def start(self, prompt: Int[Tensor, "B S"], prompt_lengths: Int[Tensor, " B"]) -> DecoderState:
        """The state before a continuation of the prompt.

        A search gives a first token for all rows to go on from; here each row goes on from the last
        token of its prompt instead, whatever token is given. Without a prompt (S = 0), the token
        counts.

        Raises:
            ShapeError: A row of a prompt is empty, or longer than it is wide.
        """
        prompt = valid_ids("token ids", prompt, self.vocab_size)
        cut = AlignedPrompt.of(prompt, prompt_lengths)
        past = self.layers.empty_caches(len(prompt))
        padding = None if cut.is_even else cut.padding
        state = DecoderState(past=past, padding=padding, pending=cut.last)
        return self.read(cut.aligned, state)[1] if cut.aligned.shape[1] else state

    def step(
        self, token: Int[Tensor, " B"], state: DecoderState
    ) -> tuple[Float[Tensor, "B V"], DecoderState]:
        check_state(state, DecoderState)
        token = step_tokens(token, state.num_rows)
        token = valid_ids("token ids", token, self.vocab_size)
        token = token if state.pending is None else state.pending
        states, state = self.read(token[:, None], state)
        logits = self.project(states[:, 0])
        state = DecoderState(past=state.past, padding=state.padding)
        return torch.log_softmax(logits.float(), dim=-1), state

    def read(
        self, ids: Int[Tensor, "B N"], state: DecoderState
    ) -> tuple[Float[Tensor, "B N C"], DecoderState]:
        """The states of more tokens, and the state with their keys and values."""
        padding, length = state.padding, state.past[0].length
        states = self._embed(ids, first=length if padding is None else length - padding)
        states, past = self.layers(
            states, mask=self._mask(padding), bias=self._bias(), past=state.past
        )
        return self.norm(states), DecoderState(past, padding, state.pending)

    def _embed(self, ids: Tensor, *, first: int | Tensor) -> Tensor:
        embedded = self.embedding(ids)
        if self.positions is not None:
            embedded = self.positions(embedded, first=first)
        dropped: Tensor = self.dropout(embedded)
        return dropped

    def _mask(self, padding: Tensor | None) -> Mask:
        """Mask over earlier positions, without the left padding of shorter prompts."""
        reach = self.config.window
        past = causal() if reach is None else window(before=reach, after=0)
        return past if padding is None else past & ~until(padding)

    def _bias(self) -> PositionBias | None:
        return alibi() if self.config.positions == "alibi" else None

    def _initialise(self) -> None:
        """Initialise as GPT-2: deviation 0.02, less for the many that are added to the states."""
        for name, parameter in self.named_parameters():
            if parameter.dim() < 2:
                continue
            is_added = name.endswith(("attend.output.weight", "feed.outer.weight"))
            scale = (2 * len(self.layers)) ** -0.5 if is_added else 1.0
            nn.init.normal_(parameter, std=0.02 * scale)
        for table in (self.embedding, self.output):
            if table.pad_id is not None:
                table.weight.data[table.pad_id] = 0
