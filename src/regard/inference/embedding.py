"""Texts as vectors: the mean of the states that a model reads them into."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.config import JsonValue
from regard.devices import moved
from regard.devices.memory import in_halves
from regard.errors import SettingError
from regard.inference.predictor import Predictor
from regard.models import RnnSeq2Seq, Transformer
from regard.models.interfaces import TextReader
from regard.tasks import OnePassTask
from regard.text import Pair, batched

# Tokens of a batch that is read at once, padding included.
_BATCH_TOKENS = 8192


@dataclass(frozen=True, slots=True)
class Embedding:
    """A text as a vector."""

    vector: tuple[float, ...]

    def text(self) -> str:
        """The numbers, with a space between them."""
        return " ".join(map(str, self.vector))

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        return {"embedding": self.vector}


class Embedder:
    """Gives texts as vectors: the mean of its encoder's states, or of what its head stands on."""

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor
        self._reader = _reader(predictor)

    @torch.no_grad()
    def embed(self, examples: Sequence[object]) -> list[Embedding]:
        """The vector of each example, as the run's task has asked for it."""
        self._predictor.model.eval()
        if self._predictor.is_seq2seq:
            vectors = self._of_sources(cast("Sequence[Pair]", examples))
        else:
            vectors = self._of_texts(examples)
        rows = [row.float().cpu().tolist() for row in vectors]
        return [Embedding(tuple(float(f"{value:.6g}") for value in row)) for row in rows]

    def _of_texts(self, examples: Sequence[object]) -> list[Tensor]:
        task, model = self._predictor.task, self._predictor.model
        assert isinstance(task, OnePassTask)
        encoded = task.encode(examples)
        vectors: dict[int, Tensor] = {}

        def read(indices: Sequence[int]) -> None:
            batch = moved(
                task.collate([encoded[index] for index in indices]), self._predictor.device
            )
            with self._recorded() as recorded:
                task.predict(model, batch)
            (states,), (lengths,) = recorded
            vectors.update(zip(indices, means(states, lengths), strict=True))

        for indices in batched(task.lengths(encoded).tolist(), _BATCH_TOKENS):
            in_halves(read, indices, self._predictor.device)
        return [vectors[index] for index in range(len(encoded))]

    def _of_sources(self, pairs: Sequence[Pair]) -> list[Tensor]:
        """Of a source in parts the mean of all their tokens; nothing of one without any."""
        task, model = self._predictor.sequence_task, self._predictor.seq2seq
        parts = [
            (owner, list(part.source))
            for owner, pair in enumerate(pairs)
            for part in task.encoded_parts(pair.source)
            if len(part.source)
        ]
        sums: dict[int, Tensor] = {}

        def read(indices: Sequence[int]) -> None:
            read = task.pad_sources([parts[index][1] for index in indices])
            source, lengths = moved(read, self._predictor.device)
            with self._recorded() as (recorded, _):
                model.start(source, lengths)
            (states,), counts = recorded, lengths + int(model.begins_source)
            weighed = torch.cat([means(states, counts) * counts[:, None], counts[:, None]], dim=1)
            sums.update(zip(indices, weighed, strict=True))

        for indices in batched([len(ids) + 1 for _, ids in parts], _BATCH_TOKENS):
            in_halves(read, indices, self._predictor.device)
        vectors = [torch.zeros(0) for _ in pairs]
        for index, (owner, _) in enumerate(parts):
            vectors[owner] = sums[index] + vectors[owner] if len(vectors[owner]) else sums[index]
        return [each[:-1] / each[-1:] for each in vectors]

    @contextmanager
    def _recorded(self) -> Iterator[tuple[list[Tensor], list[Tensor]]]:
        """Records the reader's states, and the lengths that it is given, inside the block."""
        states, lengths = list[Tensor](), list[Tensor]()

        def record(module: nn.Module, inputs: tuple[Tensor, ...], output: object) -> None:
            states.append(output[0] if isinstance(output, tuple) else cast(Tensor, output))
            lengths.extend(inputs[1:2])

        handle = self._reader.register_forward_hook(record)
        try:
            yield states, lengths
        finally:
            handle.remove()


def means(
    states: Float[Tensor, "B N C"] | Float[Tensor, "R C"], lengths: Int[Tensor, " B"]
) -> Float[Tensor, "B C"]:
    """The mean state of each row; of rows whose padding was left out, they follow each other."""
    if states.dim() == 2:
        return torch.stack([row.mean(0) for row in torch.split(states, lengths.tolist())])
    positions = torch.arange(states.shape[1], device=states.device)
    is_real = (positions < lengths[:, None])[..., None]
    return states.masked_fill(~is_real, 0).sum(1) / lengths[:, None]


def _reader(predictor: Predictor) -> nn.Module:
    """The part of the model whose states are those of one text."""
    model = predictor.model
    if isinstance(model, Transformer):
        return model.encoder_norm
    if isinstance(model, RnnSeq2Seq):
        return model.encoder
    if predictor.recipe.task in ("classification", "tagging"):
        return next(part for part in model.modules() if isinstance(part, TextReader))
    raise SettingError(
        "--embed must be for a run that labels or tags texts, or writes with a transformer or an "
        f"rnn_seq2seq; got {predictor.recipe.task} with {predictor.recipe.model_type}."
    )
