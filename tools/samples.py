"""Printed blocks of pages: what programs print when they run.

python -m tools.samples [NAME ...]    run them, by default all; write what they print
                                      into docs/figures/samples.json, and on pages
                                      into the blocks below `<!-- made: NAME -->`
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

from regard.cli.demo import SENTENCE, TRANSLATOR
from tools.website.reference import documented, public

DOCS = Path(__file__).parents[1] / "docs"
STORED = DOCS / "figures" / "samples.json"
_BLOCK = re.compile(
    r"(?<=<!-- made: )([\w-]+)( -->\n```\w+\n).*?(?=^```)", re.DOTALL | re.MULTILINE
)


def metrics() -> str:
    """The lines of a training on the phrasebook at its fiftieth update."""
    with tempfile.TemporaryDirectory() as folder:
        _train(folder, "training.validate_every=50", "training.updates=100")
        lines = (Path(folder) / "run" / "metrics.jsonl").read_text("utf-8").splitlines(True)
    return "".join(line for line in lines if json.loads(line)["update"] == 50)


def waiting() -> str:
    """The last line of progress of a training by two processes."""
    with tempfile.TemporaryDirectory() as folder:
        printed = _train(folder, "training.updates=60", options=("--processes", "2"))
    return [line for line in printed.splitlines(True) if "waiting" in line][-1]


def served() -> str:
    """The answer of a server to the sentence of the demo."""
    body = json.dumps({"text": SENTENCE}).encode()
    with serving() as address:
        request = Request(f"{address}predict", body, {"Content-Type": "application/json"})
        with urlopen(request) as answer:
            text: str = answer.read().decode()
    return f"{text}\n"


def public_names() -> str:
    """The public names of every package, which docs/names.md promises."""
    lines = []
    for package in documented():
        listed = textwrap.wrap(" ".join(public(package)), width=96, break_on_hyphens=False)
        lines += [package, *(f"    {line}" for line in listed)]
    return "\n".join([*lines, ""])


@contextmanager
def serving() -> Iterator[str]:
    """The address of a server of the translator that comes with the package."""
    command = [sys.executable, "-m", "regard", "serve", TRANSLATOR, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if found := re.search(rb"http://127\.0\.0\.1:\d+", line):
                    yield f"{found[0].decode()}/"
                    return
            raise RuntimeError("the server must say its address; it does not.")
        finally:
            process.terminate()


def from_scratch() -> str:
    """The BLEU of chapter 8's Transformer and of the library's own, trained alike."""
    return _example("from_scratch")


def karate() -> str:
    """The sides of the karate club's members, by attention over its edges."""
    return _example("karate")


def _example(name: str) -> str:
    command = [sys.executable, "-m", f"examples.experiments.{name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _train(folder: str, *settings: str, options: tuple[str, ...] = ()) -> str:
    """Train the translator of the phrasebook, and return what the command prints."""
    command = [sys.executable, "-m", "regard", "train", "demo", "--run", f"{folder}/run", *options]
    words = [word for setting in settings for word in ("--set", setting)]
    done = subprocess.run([*command, *words], capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


SAMPLES: Mapping[str, Callable[[], str]] = {
    "metrics": metrics,
    "waiting": waiting,
    "served": served,
    "from-scratch": from_scratch,
    "karate": karate,
    "public-names": public_names,
}


def filled(page: str, samples: Mapping[str, str]) -> str:
    """A page with what was printed in the place of its blocks."""
    return _BLOCK.sub(
        lambda at: f"{at[1]}{at[2]}{samples[at[1]]}" if at[1] in samples else at[0], page
    )


def main() -> None:
    """Run the programs that the command line names, and write what they print."""
    parser = argparse.ArgumentParser(prog="python -m tools.samples", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*SAMPLES, []], metavar="NAME", default=[])
    names = parser.parse_args().names or list(SAMPLES)
    stored = json.loads(STORED.read_text("utf-8")) if STORED.exists() else {}
    stored |= {name: SAMPLES[name]() for name in names}
    STORED.write_text(
        json.dumps(stored, ensure_ascii=False, indent=1, sort_keys=True) + "\n", "utf-8"
    )
    for page in sorted(DOCS.rglob("*.md")):
        if (text := filled(before := page.read_text("utf-8"), stored)) != before:
            page.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
