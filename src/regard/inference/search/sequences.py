"""A search over a sequence-to-sequence model's steps: sources in, what the model writes out."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.decoding import Hypothesis, score_answers
from regard.decoding.step import StateT, Step
from regard.devices import moved
from regard.devices.memory import in_halves
from regard.inference.search.searcher import Searcher
from regard.inference.search.trail import Trail
from regard.models import Seq2Seq
from regard.tasks import SequenceTask
from regard.tasks.sequences.sequence_task import EncodedSequences, SequenceBatch, longest_output
from regard.tasks.sequences.translations import Translations
from regard.text import BOS_ID, EOS_ID, batched


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
        attention: bool = False,
        layers: Sequence[int] | None = None,
    ) -> None:
        self._model, self._task, self._searcher = model, task, searcher
        self._device, self._batch_tokens = device, batch_tokens
        self._attention, self._layers = attention, layers

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
            hypotheses, weights = self._search(batch)
            for number, best_first, rows in zip(indices, hypotheses, weights, strict=True):
                outputs[number] = self._task.decoded(parts[number], best_first, rows)

        for group in batched(sizes, self._batch_tokens):
            in_halves(write, [filled[index] for index in group], self._device)
            if progress is not None:
                progress(len(group))
        return outputs

    def _search(
        self, batch: SequenceBatch
    ) -> tuple[list[list[Hypothesis]], list[Float[Tensor, "T S"] | None]]:
        """The hypotheses of each source, and the weights of its best if attention is recorded."""
        source, lengths, model = batch.padded.source, batch.padded.source_lengths, self._model
        state = model.start(source, lengths)
        if not self._attention:
            return self._answers(model.steps, state, batch), [None] * len(source)
        copying = None if model.copying_layer is None else [model.copying_layer]
        trail = Trail(model.steps, layers=self._layers or copying)
        followed = trail.start(state, len(source), device=source.device)
        if self._searcher.has_copies:
            # Rows that hold the same tokens cannot be told apart: the best are read once more.
            hypotheses = self._answers(model.steps, state, batch)
            followed = trail.start(model.start(source, lengths), len(source), device=source.device)
            score_answers(
                trail.step,
                followed,
                [each[0].tokens for each in hypotheses],
                bos_id=BOS_ID,
                eos_id=EOS_ID,
                device=source.device,
            )
        else:
            hypotheses = self._answers(trail.steps, followed, batch)
        return hypotheses, _weights(trail, hypotheses, lengths)

    def _answers(
        self, step: Step[StateT], state: StateT, batch: SequenceBatch
    ) -> list[list[Hypothesis]]:
        lengths, most = batch.padded.source_lengths, self._model.max_length
        return self._searcher.answers(
            step,
            state,
            limits=longest_output(lengths, self._searcher.decoding.max_ratio),
            # One less, for the begin token that a look puts before the output.
            longest=None if most is None else most - 1,
            seeds=[each.text for each in batch.encoded],
            sources=lengths,
            is_constrained=[each.is_first for each in batch.encoded],
        )


def _weights(
    trail: Trail[StateT], hypotheses: Sequence[Sequence[Hypothesis]], lengths: Int[Tensor, " B"]
) -> list[Float[Tensor, "T S"] | None]:
    """Attention of the best output of each source over its tokens."""
    best = [each[0].tokens for each in hypotheses]
    return [
        rows[: len(tokens), :width]
        for rows, tokens, width in zip(
            trail.weights(best).cpu(), best, lengths.tolist(), strict=True
        )
    ]
