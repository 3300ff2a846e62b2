"""The recurrent language model of Mikolov et al. (2010): all that came before, in one vector.

https://www.isca-archive.org/interspeech_2010/mikolov10_interspeech.html
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.layers import Dropout, TokenEmbedding
from regard.layers.inputs import check_state, rows_of_ids, step_tokens, texts, valid_ids
from regard.models.configs.generation import RecurrentLmConfig
from regard.models.interfaces import AlignedPrompt, DecodingState, LanguageModel


@dataclass(frozen=True)
class RecurrentLmState(DecodingState):
    """State of a recurrent language model between two tokens."""

    # Each layer's state, batch first; an LSTM's cells beside it.
    layers: tuple[Float[Tensor, "B L h"], ...]
    # The prompt's last tokens, not read yet; they take the place of the next step's.
    pending: Int[Tensor, " B"] | None = None


class RecurrentLm(LanguageModel[RecurrentLmState]):
    """Predicts each token from a state that has read those before it.

    ``h_t = φ(x_t W + h_{t−1} U + b)``, and the logits are ``h_t E``; with ``gru`` (Cho et al.,
    2014) or ``lstm`` (Hochreiter & Schmidhuber, 1997) in its place.

    Args:
        config: Sizes and options.
        vocab_size: Number of token ids, V.
        pad_id: The id of padding; None if every id is a token.

    Example:
        >>> model = RecurrentLm(RecurrentLmConfig(embed_dim=8, hidden_dim=6), vocab_size=11).eval()
        >>> model.project(model(torch.ones(2, 5, dtype=torch.long))).shape
        torch.Size([2, 5, 11])
    """

    is_recurrent = True

    def __init__(
        self, config: RecurrentLmConfig, *, vocab_size: int, pad_id: int | None = 0
    ) -> None:
        super().__init__()
        self.config, self.vocab_size = config, vocab_size
        self.max_length = None
        embed, hidden = config.embed_dim, config.hidden_dim
        self.embedding = TokenEmbedding(vocab_size, embed, pad_id=pad_id)
        self.dropout = Dropout(config.dropout)
        sizes = {
            "num_layers": config.num_layers,
            "batch_first": True,
            "dropout": config.dropout if config.num_layers > 1 else 0.0,
        }
        self.recurrence: nn.RNNBase = (
            nn.RNN(embed, hidden, nonlinearity=config.activation, **sizes)
            if config.cell == "rnn"
            else {"gru": nn.GRU, "lstm": nn.LSTM}[config.cell](embed, hidden, **sizes)
        )
        self.readout = (
            nn.Linear(hidden, embed) if config.tie_embeddings and embed != hidden else nn.Identity()
        )
        self.output = self.embedding
        if not config.tie_embeddings:
            self.output = TokenEmbedding(vocab_size, hidden, pad_id=pad_id, scaled=False)
        self.output_dim = embed if config.tie_embeddings else hidden
        self.output_bias = nn.Parameter(torch.zeros(vocab_size)) if config.output_bias else None

    def forward(
        self, ids: Int[Tensor, "B N"], lengths: Int[Tensor, " B"] | None = None
    ) -> Float[Tensor, "B N C"]:
        ids = rows_of_ids("ids", ids)
        if lengths is not None:
            ids, _ = texts("ids", ids, lengths)
        return self._read(ids, None)[0]

    def project(self, states: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch V"]:
        return self.output.logits(states, self.output_bias)

    def start(
        self, prompt: Int[Tensor, "B S"], prompt_lengths: Int[Tensor, " B"]
    ) -> RecurrentLmState:
        """The state before a continuation of the prompt; see :meth:`Decoder.start`.

        Raises:
            ShapeError: A row of a prompt is empty, or longer than it is wide.
        """
        prompt = valid_ids("token ids", prompt, self.vocab_size)
        cut = AlignedPrompt.of(prompt, prompt_lengths)
        B, L, h = len(prompt), self.config.num_layers, self.config.hidden_dim
        nothing = self.embedding.weight.new_zeros(B, L, h)
        count = 2 if self.config.cell == "lstm" else 1
        layers: tuple[Tensor, ...] = (nothing,) * count
        for column, token in enumerate(cut.aligned.unbind(1)):
            _, after = self._read(token[:, None], layers)
            is_real = (column >= cut.padding)[:, None, None]
            layers = tuple(torch.where(is_real, *pair) for pair in zip(after, layers, strict=True))
        return RecurrentLmState(layers, cut.last)

    def step(
        self, token: Int[Tensor, " B"], state: RecurrentLmState
    ) -> tuple[Float[Tensor, "B V"], RecurrentLmState]:
        check_state(state, RecurrentLmState)
        token = step_tokens(token, state.num_rows)
        token = valid_ids("token ids", token, self.vocab_size)
        token = token if state.pending is None else state.pending
        states, layers = self._read(token[:, None], state.layers)
        logits = self.project(states[:, 0])
        return torch.log_softmax(logits.float(), dim=-1), RecurrentLmState(layers)

    def _read(
        self, ids: Tensor, layers: tuple[Tensor, ...] | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The states after each token, and those of every layer after the last."""
        embedded = self.dropout(self.embedding(ids))
        # torch wants layers first, and has one tensor where there is no cell.
        turned = [state.transpose(0, 1).contiguous() for state in layers or ()]
        before = None if not turned else turned[0] if len(turned) == 1 else tuple(turned)
        # Under autocast inputs come in half precision, and a recurrence is a long sum.
        whole = embedded.to(next(self.recurrence.parameters()).dtype)
        with torch.autocast(whole.device.type, enabled=False):
            out, after = self.recurrence(whole, before)
        final = (after,) if isinstance(after, Tensor) else after
        states: Tensor = self.readout(self.dropout(out))
        return states, tuple(state.transpose(0, 1) for state in final)
