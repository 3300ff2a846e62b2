"""Draw the figures of the course, and store what their numbers are.

python -m tools.figures [NAME ...]    draw them into docs/figures/course, all by default
"""

import argparse
import json
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from tools import figures
from tools.figures.drawing import PICTURES, fingerprint, write

FOLDER = Path(__file__).parents[2] / "docs" / "figures" / "course"

# Every module here registers its figures.
for _module in iter_modules(figures.__path__):
    if _module.name != "__main__":
        import_module(f"tools.figures.{_module.name}")


def main() -> None:
    """Draw the figures that the command line names."""
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


if __name__ == "__main__":
    main()
