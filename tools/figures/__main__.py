"""Draw the figures of the course, and store what their numbers are.

python -m tools.figures [NAME ...]    draw them into docs/figures/course, all by default
"""

import argparse
import json
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import torch

from tools import figures
from tools.figures import cues, pooling, selfattention
from tools.figures.drawing import PICTURES, fingerprint, write

FOLDER = Path(__file__).parents[2] / "docs" / "figures" / "course"
EXAMPLES = "examples.json"

# Every module here registers its figures.
for _module in iter_modules(figures.__path__):
    if _module.name != "__main__":
        import_module(f"tools.figures.{_module.name}")


def examples() -> dict[str, object]:
    """The numbers that the course's interactive parts begin with, by their names."""
    points = [[round(n, 3) for n in pair] for pair in torch.cat(pooling.points(50), 1).tolist()]
    layer = selfattention
    matrices = {"query": layer.W_QUERY, "key": layer.W_KEY, "value": layer.W_VALUE}
    return {
        "cues": [thing[2:] for thing in cues.THINGS],
        "descent": points,
        "kernel": points,
        "layer": {"words": layer.WORDS, "embeddings": layer.EMBEDDINGS, **matrices},
    }


def main() -> None:
    """Draw the figures that the command line names, and store what interactive parts begin with."""
    parser = argparse.ArgumentParser(prog="python -m tools.figures", description=__doc__)
    parser.add_argument("names", nargs="*", help="figures, by name; by default all")
    names = parser.parse_args().names or list(PICTURES)
    for name in names:
        write(name, FOLDER)
        print(FOLDER / f"{name}.svg")
    stored = FOLDER / "data.json"
    prints = json.loads(stored.read_text("utf-8")) if stored.exists() else {}
    prints |= {name: fingerprint(PICTURES[name].data()) for name in names}
    prints = {name: prints[name] for name in sorted(PICTURES)}
    stored.write_text(json.dumps(prints, indent=1) + "\n", "utf-8")
    lines = [f" {json.dumps(name)}: {_compact(each)}" for name, each in examples().items()]
    (FOLDER / EXAMPLES).write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def _compact(example: object) -> str:
    return json.dumps(example, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    main()
