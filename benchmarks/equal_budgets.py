"""Models that are each trained for the same CPU time.

A clock counts the seconds that the process computes, so that other work on the machine takes
nothing from a budget.
"""

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import regard.training.trainer as trainer
from benchmarks import measuring
from benchmarks.training import train
from regard.inference import Predictor
from regard.tasks import recipe_from_table


def argument_parser(description: str, *, minutes: float | None) -> argparse.ArgumentParser:
    """The parser of a script here, with ``--minutes``."""
    parser = measuring.command(description, work="folder of texts and runs")
    parser.add_argument("--minutes", type=float, default=minutes, help="CPU minutes of each model")
    return parser


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
