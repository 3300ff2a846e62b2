"""Three translators of about one size, each trained for the same CPU time.

A recurrent network with one fixed context vector, the same network with additive attention, and a
Transformer. What they share is here: sizes, training settings, and a clock that counts the
seconds the process computes, so that other work on the machine takes nothing from a budget.
"""

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import regard.training.trainer as trainer
from benchmarks.training import train
from regard.inference import Predictor
from regard.tasks import recipe_from_table

FIXED, ADDITIVE, TRANSFORMER = "RNN, fixed context", "RNN, additive attention", "Transformer"

# Parameters with vocabularies of 2,500 and 5,000: 4.1, 4.3 and 4.5 million.
_RECURRENT = {"type": "rnn_seq2seq", "embed_dim": 256, "hidden_dim": 256, "dropout": 0.3}
SYSTEMS: dict[str, dict[str, Any]] = {
    FIXED: {**_RECURRENT, "attention": "none"},
    ADDITIVE: {**_RECURRENT, "attention": "additive"},
    TRANSFORMER: {
        "type": "transformer",
        "model_dim": 256,
        "num_heads": 4,
        "num_encoder_layers": 2,
        "num_decoder_layers": 2,
        "ffn_dim": 512,
        "dropout": 0.2,
        "tie_embeddings": "target",
        "norm": "pre",
    },
}


def argument_parser(description: str, *, minutes: float | None) -> argparse.ArgumentParser:
    """Takes what every script here is told: ``work``, ``minutes``, ``threads`` and ``dry``."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, help="folder of texts and runs")
    parser.add_argument("--minutes", type=float, default=minutes, help="CPU minutes of each model")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dry", action="store_true", help="write no record")
    return parser


def recipe_table(
    system: str,
    *,
    data: Mapping[str, Any],
    tokenizer: Mapping[str, Any],
    minutes: float,
    batch_tokens: int = 1024,
    seed: int = 1,
) -> dict[str, Any]:
    """The recipe of one system; all but the model is the same for the three."""
    return {
        "task": "translation",
        "data": dict(data),
        "tokenizer": dict(tokenizer),
        "model": dict(SYSTEMS[system]),
        "training": {
            "minutes": minutes,
            "batch_tokens": batch_tokens,
            "learning_rate": 0.002,
            "warmup": 200,
            "schedule": "linear",
            "label_smoothing": 0.1,
            "clip_norm": 1.0,
            "validate_every": 400,
            "validation_pairs": 0,
            "seed": seed,
        },
        "decoding": {"beam_size": 5, "length_penalty": 1.0},
    }


def train_for(table: Mapping[str, Any], run: Path) -> tuple[Predictor, dict[str, Any]]:
    """Train by a recipe whose minutes are CPU minutes, or go on where it was stopped."""
    with cpu_clock():
        trained = train(recipe_from_table(table), run)
    summary = trained.summary
    return trained.predictor, {
        "parameters": sum(p.numel() for p in trained.predictor.model.parameters()),
        "cpu_minutes": round(summary["seconds"] / 60, 2),
        "updates": summary["updates"],
        "target_tokens": summary["target_tokens"],
        "weights": summary["weights"],
        "validation": summary["validation"],
    }


def translate(predictor: Predictor, sources: Sequence[str]) -> list[str]:
    """The best translation of each source by the recipe's search."""
    return [found[0].text for found in predictor.translate(sources)]


def folder_name(*parts: str) -> str:
    """A run folder's name from words for people."""
    words = " ".join(parts).lower().replace(",", "").split()
    return "-".join(words)


@contextmanager
def cpu_clock() -> Iterator[None]:
    """Inside, the trainer's seconds are those this process computed, in all its threads."""
    kept = trainer.time
    trainer.time = SimpleNamespace(perf_counter=time.process_time)  # type: ignore[assignment]
    try:
        yield
    finally:
        trainer.time = kept
