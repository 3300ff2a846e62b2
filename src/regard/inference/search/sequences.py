"""A search over a sequence-to-sequence model's steps: sources in, what the model writes out."""

from collections.abc import Callable, Sequence

import torch

from regard.decoding import Hypothesis
from regard.devices import moved
from regard.devices.memory import in_halves
from regard.inference.look import cross_maps
from regard.inference.search.searcher import Searcher
from regard.models import Seq2Seq
from regard.tasks import SequenceTask
from regard.tasks.sequences.sequence_task import EncodedSequences, SequenceBatch, longest_output
from regard.tasks.sequences.translations import Translations
from regard.text import batched


class SequenceSearch:
    """Writes outputs that are about as long as their sources."""

    def __init__(
        self,
        model: Seq2Seq,
        task: SequenceTask,
        searcher: Searcher,
        *,
        device: torch.device,
        batch_tokens: int,
    ) -> None:
        self._model, self._task, self._searcher = model, task, searcher
        self._device, self._batch_tokens = device, batch_tokens

    @torch.no_grad()
    def __call__(
        self, parts: Sequence[EncodedSequences], *, progress: Callable[[int], None] | None = None
    ) -> list[Translations]:
        """The outputs for each part of a text; none for one without tokens."""
        outputs = [Translations.of_nothing(part.text) for part in parts]
        filled = [number for number, part in enumerate(parts) if len(part.source)]
        sizes = [(len(parts[number].source) + 1) * self._searcher.width for number in filled]

        def write(indices: Sequence[int]) -> None:
            batch = moved(self._task.collate([parts[number] for number in indices]), self._device)
            for number, best_first in zip(indices, self._search(batch), strict=True):
                outputs[number] = self._task.decoded(parts[number], best_first)

        for group in batched(sizes, self._batch_tokens):
            in_halves(write, [filled[index] for index in group], self._device)
            if progress is not None:
                progress(len(group))
        return outputs

    def _search(self, batch: SequenceBatch) -> list[list[Hypothesis]]:
        """The hypotheses of each source."""
        lengths, most = batch.padded.source_lengths, self._model.max_length
        return self._searcher.answers(
            self._model.steps,
            self._model.start(batch.padded.source, lengths),
            limits=longest_output(lengths, self._searcher.decoding.max_ratio),
            sources=lengths,
            # One less, for the begin token that a look puts before the output.
            longest=None if most is None else most - 1,
            seeds=[each.text for each in batch.encoded],
            is_constrained=[each.is_first for each in batch.encoded],
        )


def aligned(
    model: Seq2Seq,
    task: SequenceTask,
    parts: Sequence[EncodedSequences],
    outputs: Sequence[Translations],
    *,
    layers: Sequence[int] | None = None,
    batch_tokens: int,
) -> list[Translations]:
    """The outputs, each with the alignment of its best, by what copies words or by all layers."""
    if layers is None and model.copying_layer is not None:
        layers = [model.copying_layer]
    filled = [number for number, part in enumerate(parts) if len(part.source)]
    sources = [parts[number].source for number in filled]
    tokens, with_maps = [outputs[number].best.tokens for number in filled], list(outputs)
    for index, weights in cross_maps(
        model, task, sources, tokens, layers=layers, batch_tokens=batch_tokens
    ):
        number = filled[index]
        with_maps[number] = task.aligned(parts[number], outputs[number], weights[:-1])
    return with_maps
