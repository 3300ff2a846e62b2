"""A model that translates: a GRU that begins with the mean of the source's embeddings.

Its base class says what it is used for: ``Seq2Seq``, ``LanguageModel``, ``TextReader``,
``PairReader`` or ``PairClassifier``.

    python examples/extending/model.py train examples/extending/model.toml pairs.tsv --run runs/mean
    echo "A dog runs." | python examples/extending/model.py predict runs/mean
    python examples/extending/model.py look runs/mean "A dog runs."

In the package: ``models/NAME.py``, its settings in ``models/configs/``, which needs no torch, and a
line of ``models/registry.py``.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.cli import main
from regard.models import Seq2Seq, register_model


@dataclass(frozen=True, kw_only=True, slots=True)
class MeanConfig:
    """Settings of a decoder on a mean."""

    hidden_dim: int = 8


@dataclass(frozen=True)
class Hidden:
    """The decoder's state."""

    hidden: Tensor

    def select(self, rows):
        return Hidden(self.hidden[rows])


class MeanSeq2Seq(Seq2Seq):
    """A GRU that begins with the mean of the source's embeddings."""

    max_length = None

    def __init__(self, config, *, source_vocab, target_vocab, shared_vocab):
        super().__init__()
        self.config = config
        self.source = nn.Embedding(source_vocab, config.hidden_dim)
        self.target = nn.Embedding(target_vocab, config.hidden_dim)
        self.cell = nn.GRUCell(config.hidden_dim, config.hidden_dim)
        self.output = nn.Linear(config.hidden_dim, target_vocab)

    def forward(self, source, source_lengths, target, target_lengths=None):
        hidden, states = self.start(source, source_lengths).hidden, []
        for column in target.T:
            hidden = self.cell(self.target(column), hidden)
            states.append(hidden)
        return torch.stack(states, dim=1), None

    def project(self, states):
        return self.output(states)

    def start(self, source, source_lengths):
        is_real = torch.arange(source.shape[1]) < source_lengths[:, None]
        summed = (self.source(source) * is_real[..., None]).sum(1)
        return Hidden(summed / source_lengths[:, None])

    def step(self, token, state):
        hidden = self.cell(self.target(token), state.hidden)
        return self.project(hidden).log_softmax(-1), Hidden(hidden)


register_model("mean", MeanConfig, MeanSeq2Seq)


if __name__ == "__main__":
    main()
