"""A recurrent language model that is ready to write on."""

import torch
from jaxtyping import Int
from torch import Tensor, nn

from regard.kernels import recurrent as kernels
from regard.models.recurrent_lm import RecurrentLm
from regard.runtime.base import PreparedLanguageModel
from regard.runtime.recurrent.decoder import (
    Linear,
    RecurrentDecoder,
    RecurrentState,
    Sources,
    layers_of,
    packed,
)
from regard.runtime.steps import why_not_compiled


class PreparedRecurrentLm(PreparedLanguageModel[RecurrentState]):
    """A recurrent language model whose steps cost little; it gives the same answers.

    Its weights may be copies: prepare it again when the model has learned more.

    Args:
        model: In evaluation mode.

    Example:
        >>> from regard.models import RecurrentLmConfig
        >>> from regard.runtime import prepared
        >>> config = RecurrentLmConfig(embed_dim=8, hidden_dim=6)
        >>> model, ids = RecurrentLm(config, vocab_size=11).eval(), torch.tensor([[5, 6], [8, 9]])
        >>> torch.equal(prepared(model)(ids), model(ids))
        True
        >>> PreparedRecurrentLm.refuse(model.double()) is None  # it must be in float32
        False
    """

    is_recurrent = True

    model: RecurrentLm

    def __init__(self, model: RecurrentLm) -> None:
        super().__init__(model)
        readout = Linear()
        if isinstance(model.readout, nn.Linear):
            readout = Linear(model.readout.weight, model.readout.bias)
        self._steps = RecurrentDecoder(
            packed(layers_of(model.recurrence), embedding=model.embedding, readout=readout),
            kernels.Options(
                cell=kernels.CELLS.index(model.recurrence.mode),
                asks_before=False,
                asks_after=False,
            ),
            output=model.output,
            output_bias=model.output_bias,
        )

    @staticmethod
    def refuse(model: RecurrentLm) -> str | None:
        """Why a model cannot be prepared, or None if it can."""
        return why_not_compiled(model, model)

    @torch.no_grad()
    def start(
        self, prompt: Int[Tensor, "B S"], prompt_lengths: Int[Tensor, " B"]
    ) -> RecurrentState:
        """The state before a continuation of each prompt, whose last token comes first."""
        # Each by itself: what one gets does not depend on the others.
        reads = [
            self.model.start(prompt[row : row + 1, :length], prompt_lengths[row : row + 1])
            for row, length in enumerate(prompt_lengths.tolist())
        ]
        carried = torch.cat([torch.cat(read.layers, dim=-1).flatten(1) for read in reads])
        last = [read.pending for read in reads if read.pending is not None]
        return RecurrentState.begin(carried, Sources.none(), torch.cat(last) if last else None)
