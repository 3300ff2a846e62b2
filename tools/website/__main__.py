"""``python -m tools.website``: the documentation, from what is written and what programs say."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from tools import notebooks
from tools.website import (
    about,
    built,
    commands,
    gallery,
    literature,
    measured,
    pages,
    reference,
    source,
)

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BUILD = ROOT / "build"
SOURCES = BUILD / "docs"


def generated() -> dict[str, str]:
    """All pages that programs write, by their places."""
    parts = (reference, commands, measured, gallery)
    written = [*(part.pages() for part in parts), literature.pages(DOCS), about.pages(ROOT)]
    return {place: text for each in written for place, text in each.items()}


def main() -> None:
    """Put the pages together and build the site from them; a warning is an error."""
    parser = argparse.ArgumentParser(prog="python -m tools.website", description=main.__doc__)
    parser.add_argument("--sources-only", action="store_true", help="put the pages together only")
    parser.add_argument("--no-gallery", action="store_true", help="train and draw nothing")
    parser.add_argument("--updates", type=int, help="train the models of the gallery for so long")
    options = parser.parse_args()
    sys.argv[:] = ["regard"]  # what the pages of commands are written for
    pages.assemble(ROOT, SOURCES, generated())
    for page in notebooks.pages():
        notebooks.write([page], SOURCES / page.parent.name)
    drawn = SOURCES / "gallery"
    if options.no_gallery:
        gallery.leave_blank(drawn)
    else:
        # Runs are kept, those that are shorter than they should be apart.
        runs = f"gallery-{options.updates}" if options.updates else "gallery"
        gallery.draw(drawn, BUILD / runs, updates=options.updates)
    if not options.sources_only:
        command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
        quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # a word on the builder's future
        if code := subprocess.run(command, cwd=ROOT, env=quiet, check=False).returncode:
            sys.exit(code)
        source.write(BUILD / "site" / "source")
        if wrong := built.problems(BUILD / "site"):
            sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
