"""Additive, dot and scaled dot scores after training, in narrow heads and in one wide head.

Vaswani et al. (2017), section 3.2.1: additive attention and the dot product do alike where d_k is
small; where it is large, the dot product falls behind unless it is divided by √d_k. The same
Transformer is trained on the phrasebook for the same updates with each score, its 128 columns cut
into 16 heads of 8, or left as one head of 128. Untrained: ``examples/experiments/scores.py``.

    python -m benchmarks.trained_scores --work W [--updates 600] [--threads 1] [--dry]

Run again after an interruption, it goes on where it was.
"""

import argparse
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from benchmarks import measuring
from benchmarks.attention_mechanisms import measure
from benchmarks.equal_budgets import folder_name, train_for
from regard.cli.recipes import packaged_recipe
from regard.tasks import read_recipe

SCORES = {"scaled_dot": "scaled dot", "dot": "dot", "additive": "additive"}
WIDTHS = measuring.sized((8, 128), (64,))
SEEDS = (1,)


def recipe_table(score: str, width: int, updates: int, seed: int) -> dict[str, Any]:
    """The recipe of one run: the restricted Transformer's, unrestricted."""
    table = read_recipe(packaged_recipe("transformer-restricted")).table()
    model = {key: value for key, value in table["model"].items() if key != "window"}
    heads = model["model_dim"] // width
    table["model"] = {**model, "score": score, "num_heads": heads}
    table["training"] = {**table["training"], "updates": updates, "seed": seed}
    return table


def figures(results: Mapping[str, Any], updates: int) -> list[measuring.Figure]:
    """One line for each width of a head."""
    lines = []
    for width in WIDTHS:
        right = {score: _right(results, score, width) for score in SCORES}
        minutes = {
            score: statistics.mean(
                each["training"]["cpu_minutes"] for each in results[_name(score, width)]
            )
            for score in SCORES
        }
        others = "; ".join(f"{SCORES[score]}: {right[score]}" for score in ("dot", "additive"))
        times = " / ".join(f"{minutes[score]:.1f}" for score in SCORES)
        lines.append(
            measuring.Figure(
                what=f"Transformer, phrasebook, outputs right on test / new: heads of {width}",
                ours=f"scaled dot: {right['scaled_dot']}",
                beside=others,
                note=f"{updates} updates, seeds: {len(SEEDS)}; {times} CPU minutes",
            )
        )
    return lines


def _right(results: Mapping[str, Any], score: str, width: int) -> str:
    """The means over the seeds."""
    shown = []
    for split in ("test", "new"):
        every = [each["measured"][split]["exact_match"] for each in results[_name(score, width)]]
        shown.append(f"{statistics.mean(every):.1f} %")
    return " / ".join(shown)


def _name(score: str, width: int) -> str:
    return f"{score}, {width}"


def main() -> None:
    """Train and measure each, write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, help="folder of runs")
    parser.add_argument("--updates", type=int, default=600, help="of each model")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dry", action="store_true", help="write no record")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    before, updates = measuring.machine(), arguments.updates
    results: dict[str, Any] = {}
    for width in WIDTHS:
        for score in SCORES:
            name = _name(score, width)
            for seed in SEEDS:
                table = recipe_table(score, width, updates, seed)
                run = arguments.work / folder_name(name, str(updates), str(seed))
                predictor, facts = train_for(table, run)
                found = {"training": facts, "recipe": table, "measured": measure(predictor)}
                results.setdefault(name, []).append(found)
                right = found["measured"]["test"]["exact_match"]
                print(name, seed, f"{right:.1f} %", facts["cpu_minutes"], flush=True)
    if not arguments.dry:
        measuring.write_record(
            "trained_scores",
            title="Scores of attention after training, in narrow and in wide heads",
            figures=figures(results, updates),
            details={"updates": updates, "threads": arguments.threads, "results": results},
            started_on=before,
        )


if __name__ == "__main__":
    main()
