"""regard's side of the character models: a shipped recipe trained, and its loss.

    python -m benchmarks.peers.regard_characters RECIPE --text FOLDER --run RUN --updates 300

prints one JSON line: the milliseconds of every update (data, forward, backward and optimizer;
validation left out) and the mean loss over the whole validation part, in nats a character.
"""

import argparse
import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from benchmarks.peers.regard_speed import Stopwatch
from benchmarks.peers.windows import whole_loss
from regard.cli.recipes import packaged_recipe
from regard.config import parse_settings
from regard.devices import CPU
from regard.tasks import Recipe, read_recipe
from regard.text import EOS_ID
from regard.training.session import fit as train


def recipe_of(recipe: str, text: Path, *, updates: int, settings: Sequence[str] = ()) -> Recipe:
    """A shipped recipe on ``train.txt`` and ``valid.txt`` of a folder, for so many updates."""
    files = [f"data.train={text / 'train.txt'}", f"data.valid={text / 'valid.txt'}"]
    lengths = [f"training.updates={updates}", f"training.validate_every={updates}"]
    return read_recipe(packaged_recipe(recipe), parse_settings([*files, *lengths, *settings]))


def measure(
    recipe: str, text: Path, run: Path, *, updates: int, settings: Sequence[str]
) -> dict[str, Any]:
    """Train a recipe on ``train.txt`` of a folder, and ask for the loss of its ``valid.txt``."""
    made = recipe_of(recipe, text, updates=updates, settings=settings)
    stopwatch = Stopwatch()
    trained = train(made, run, reporter=stopwatch)
    model, tokenizer = trained.predictor.model.eval().to(CPU), trained.predictor.task.tokenizer
    letters = (text / "valid.txt").read_text("utf-8")
    known = {letter: tokenizer.encode(letter) for letter in set(letters) - {"\n", " "}}
    # A space alone is no text; between others it is a token.
    known |= {"\n": [EOS_ID], " ": tokenizer.encode("a a")[1:2]}
    ids = torch.tensor([known[letter][0] for letter in letters])
    return {
        # Of every update but the first.
        "milliseconds": [round(1000 * (b - a), 3) for a, b in pairwise(stopwatch.ends)],
        "loss": whole_loss(lambda read: model.project(model(read)), ids, context=made.data.context),
        "parameters": sum(p.numel() for p in model.parameters()),
        "training": dict(made.training),
    }


def main() -> None:
    """Read the arguments and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recipe")
    parser.add_argument("--text", type=Path, required=True, help="folder of the two parts")
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--updates", type=int, required=True)
    parser.add_argument("--set", dest="settings", action="append", default=[])
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    found = measure(
        given.recipe,
        given.text.resolve(),
        given.run,
        updates=given.updates,
        settings=given.settings,
    )
    print(json.dumps(found))


if __name__ == "__main__":
    main()
