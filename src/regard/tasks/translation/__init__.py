"""A sentence for a sentence."""

from regard.tasks.translation.task import (
    batched,
    build_model,
    learn_tokenizer,
    longest_output,
    read_held_out,
    read_split,
    read_training,
    states_and_labels,
)

__all__ = [
    "batched",
    "build_model",
    "learn_tokenizer",
    "longest_output",
    "read_held_out",
    "read_split",
    "read_training",
    "states_and_labels",
]
