"""A search over a sequence-to-sequence model's steps: sources in, outputs out."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from regard.decoding import Step
from regard.devices import moved
from regard.devices.memory import in_halves
from regard.inference.look import cross_maps
from regard.inference.search.searcher import Searcher
from regard.models import Seq2Seq
from regard.tasks import SequenceTask
from regard.tasks.sequences.sequence_task import EncodedSequences, longest_output
from regard.tasks.sequences.translations import Translations
from regard.text import batched


@torch.no_grad()
def search(
    model: Seq2Seq,
    task: SequenceTask,
    searcher: Searcher,
    parts: Sequence[EncodedSequences],
    *,
    batch_tokens: int,
    record: Callable[[Any], tuple[Step[Any], Any]] | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Translations]:
    """The outputs for each part of a text; ``record`` makes a step and state that are noted."""
    outputs = [Translations.of_nothing(part.text) for part in parts]
    filled = [number for number, part in enumerate(parts) if len(part.source)]
    sizes = [(len(parts[number].source) + 1) * searcher.width for number in filled]
    most, device = model.max_length, searcher.device

    def write(indices: Sequence[int]) -> None:
        batch = moved(task.collate([parts[number] for number in indices]), device)
        lengths = batch.padded.source_lengths
        start = model.start(batch.padded.source, lengths)
        step, state = (model.steps, start) if record is None else record(start)
        hypotheses = searcher.answers(
            step,
            state,
            limits=longest_output(lengths, searcher.decoding.max_ratio),
            sources=lengths,
            # One less, for the begin token that a look puts before the output.
            longest=None if most is None else most - 1,
            seeds=[source.text for source in batch.encoded],
            is_constrained=[source.is_first for source in batch.encoded],
        )
        for number, best_first in zip(indices, hypotheses, strict=True):
            outputs[number] = task.decoded(parts[number], best_first)

    for group in batched(sizes, batch_tokens):
        in_halves(write, [filled[index] for index in group], device)
        if progress is not None:
            progress(len(group))
    return outputs


def aligned(
    model: Seq2Seq,
    task: SequenceTask,
    parts: Sequence[EncodedSequences],
    outputs: Sequence[Translations],
    *,
    layers: Sequence[int] | None = None,
    batch_tokens: int,
) -> list[Translations]:
    """The outputs, each with the alignment of its best, by the copying layer or by all layers."""
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
