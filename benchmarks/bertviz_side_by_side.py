"""The same model and text in a page of this package and in pages of bertviz, opened in Chromium.

    python -m benchmarks.bertviz_side_by_side --bertviz PYTHON [--scripts FOLDER] [--dry]

A random BERT of 12 layers and 12 heads (of 16) reads 64, 512 and 4,096 tokens. Each page is made
in a process of its own and opened in a headless Chromium of its own: the processor's seconds to
make it, from the model's forward to the file; its bytes; the memory of the process, its imports
included; the seconds from the address to a first picture (bertviz: lines are drawn; regard: the
view is there), and the memory of the browser's processes then. What takes longer than three
minutes or more than 8 GB is given up, and that is recorded.

``PYTHON`` is that of a virtual environment with bertviz, which this package does not need, torch
and transformers. bertviz's pages load d3 5.7.0, jQuery and RequireJS from the network;
``--scripts`` is a folder with ``d3.min.js``, ``jquery.min.js`` and ``require.js``, given to them in
the network's place, so that its speed does not count.
"""

import argparse
import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.measuring import (
    ROOT,
    Figure,
    machine,
    sized,
    thread_environment,
    write_record,
)

LENGTHS = sized((64, 512, 4096), (16,))
SIDES = {"regard": "regard", "head_view": "bertviz, head_view", "model_view": "bertviz, model_view"}
LIMIT_SECONDS = 180.0
LIMIT_BYTES = 8 << 30
# What says that there is something to see.
_DRAWN = {
    "regard": "() => document.querySelector('main.view:not([aria-busy]) > *') !== null",
    "head_view": "() => document.querySelectorAll('svg line').length > 0",
    "model_view": "() => document.querySelectorAll('svg line').length > 0",
}
_SCRIPTS = {"d3": "d3.min.js", "jquery": "jquery.min.js", "require": "require.js"}

# Runs in either environment: makes one page, and says what it cost.
MAKE = """
import json, resource, sys, time
import torch
from transformers import BertConfig, BertModel
side, length, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
torch.manual_seed(0)
torch.set_num_threads(1)
config = BertConfig(
    vocab_size=1000, hidden_size=192, num_hidden_layers=12, num_attention_heads=12,
    intermediate_size=384, max_position_embeddings=4096,
    attn_implementation="sdpa" if side == "regard" else "eager",
)
model = BertModel(config).eval()
ids = torch.randint(0, 1000, (1, length))
words = ("it is not only the length of a text that makes a page slow , it is what one does").split()
tokens = [words[n % len(words)] for n in range(length)]
if side == "regard":
    import regard
    from regard.viewer import show
else:
    import bertviz
began = time.process_time()
with torch.no_grad():
    if side == "regard":
        with regard.watch(model, keep=length <= 512) as seen:
            model(ids)
        show(seen, tokens).save(path)
    else:
        weights = model(ids, output_attentions=True).attentions
        page = getattr(bertviz, side)(weights, tokens, html_action="return")
        open(path, "w", encoding="utf-8").write(page.data)
seconds = time.process_time() - began
print(json.dumps({"seconds": seconds,
    "bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What became of one page.

    Attributes:
        made_in: The processor's seconds to make it; None if it could not be made.
        made_with: Most bytes of the process that made it.
        size: Bytes of the page.
        opened_in: Seconds to a first picture; None if there was none.
        opened_with: Bytes of the browser's processes, or the most before it was given up.
        failure: Why something is None.
    """

    made_in: float | None = None
    made_with: int | None = None
    size: int | None = None
    opened_in: float | None = None
    opened_with: int | None = None
    failure: str | None = None


def main() -> None:
    """Make and open every page, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Raw)
    parser.add_argument("--bertviz", type=Path, help="Python that has bertviz; left out without")
    parser.add_argument("--scripts", type=Path, help="folder of d3, jQuery and RequireJS")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dry", action="store_true", help="64 tokens, once, no record")
    arguments = parser.parse_args()
    started_on = machine()
    lengths, rounds = (LENGTHS[:1], 1) if arguments.dry else (LENGTHS, arguments.rounds)
    sides = [side for side in SIDES if side == "regard" or arguments.bertviz is not None]
    for side in SIDES.keys() - sides:
        print(f"left out: {SIDES[side]}, as --bertviz names no Python that has it")
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for length in lengths:
        found[str(length)] = {side: [] for side in sides}
        for _ in range(rounds):
            for side, samples in found[str(length)].items():
                if samples and samples[-1]["failure"]:
                    continue  # it would fail again
                python = Path(sys.executable) if side == "regard" else arguments.bertviz
                outcome = measure(side, length, python, arguments.scripts)
                samples.append(asdict(outcome))
                print(f"{length} tokens, {SIDES[side]}: {said(outcome)}", flush=True)
    if arguments.dry or len(sides) < len(SIDES):
        return
    write_record(
        "bertviz_side_by_side",
        title="Pages of the same attention: this package and bertviz",
        figures=figures(found),
        details={
            "pages": found,
            "bertviz": version_of("bertviz", arguments.bertviz),
            "limits": {"seconds": LIMIT_SECONDS, "bytes": LIMIT_BYTES},
        },
        packages=("torch", "transformers", "playwright"),
        started_on=started_on,
    )


def measure(side: str, length: int, python: Path, scripts: Path | None) -> Outcome:
    """One page of one side: made and opened."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        made = make(side, length, python, path)
        if isinstance(made, str):
            return Outcome(failure=f"not made: {made}")
        known = {"made_in": made["seconds"], "made_with": made["bytes"]}
        size = path.stat().st_size
        opened, memory = open_page(path, _DRAWN[side], scripts)
        if isinstance(opened, str):
            return Outcome(**known, size=size, opened_with=memory, failure=f"not opened: {opened}")
        return Outcome(**known, size=size, opened_in=opened, opened_with=memory)


def make(side: str, length: int, python: Path, path: Path) -> Mapping[str, Any] | str:
    """What making the page cost, or why it was not made."""
    environment = {**thread_environment(1), "PYTHONPATH": str(ROOT / "src")}
    command = [str(python), "-c", MAKE, side, str(length), str(path)]
    try:
        done = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            timeout=10 * LIMIT_SECONDS,
            check=False,
            preexec_fn=_limit,
        )
    except subprocess.TimeoutExpired:
        return f"more than {10 * LIMIT_SECONDS:g} s"
    if done.returncode == -signal.SIGXCPU:
        return f"more than {LIMIT_SECONDS:g} s"
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        return lines[-1][:200]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def open_page(path: Path, drawn: str, scripts: Path | None) -> tuple[float | str, int]:
    """Seconds to a first picture or why there was none, and the browser's memory."""
    from playwright.sync_api import Error, Route, sync_playwright

    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))))

    def answer(route: Route) -> None:
        address = route.request.url
        if address.startswith("file:"):
            route.continue_()
            return
        name = next((file for key, file in _SCRIPTS.items() if f"/{key}" in address), None)
        if scripts is None or name is None:
            route.abort()
        else:
            route.fulfill(body=(scripts / name).read_bytes(), content_type="text/javascript")

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        memory = Memory(os.getpid())
        try:
            page = browser.new_page()
            page.route("**/*", answer)
            page.set_default_timeout(LIMIT_SECONDS * 1000)
            crashed: list[str] = []
            page.on("crash", lambda _: crashed.append("the tab crashed"))
            began = time.perf_counter()
            try:
                page.goto(path.as_uri(), wait_until="commit")
                page.wait_for_function(drawn)
            except Error as error:
                why = crashed[0] if crashed else str(error).splitlines()[0]
                return (
                    f"no picture in {LIMIT_SECONDS:g} s" if "Timeout" in why else why
                ), memory.stop()
            return time.perf_counter() - began, memory.stop()
        finally:
            memory.stop()
            browser.close()


class Memory:
    """The most memory that the descendants of a process had, watched from a thread.

    What pages of memory they share counts once for each that has a part of it.
    """

    def __init__(self, root: int) -> None:
        self._root, self._most, self._done = root, 0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        """No more; the most there was."""
        self._done.set()
        self._thread.join()
        return self._most

    def _watch(self) -> None:
        while not self._done.wait(0.1):
            self._most = max(self._most, sum(map(_proportional, descendants(self._root))))


def descendants(root: int) -> list[int]:
    """The processes that a process started, and those that they did."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        children.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    found, queue = [], [root]
    while queue:
        queue += (next_ones := children.get(queue.pop(), []))
        found += next_ones
    return found


def _proportional(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024


def figures(found: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]) -> list[Figure]:
    """A line of docs/measured.md for each length."""
    lines = []
    for length, sides in found.items():
        beside = "; ".join(f"{SIDES[side]}: {summed(sides[side])}" for side in list(SIDES)[1:])
        lines.append(
            Figure(
                what=f"Page of 12 layers × 12 heads, {int(length):,} tokens: made, size, "
                "to a first picture, memory of Python and of the browser",
                ours=summed(sides["regard"]),
                beside=beside,
                note="1 thread; bertviz's scripts from this machine",
            )
        )
    return lines


def summed(samples: Sequence[Mapping[str, Any]]) -> str:
    """Medians of several pages of one kind, or what became of them.

    Example:
        >>> summed([asdict(Outcome(failure="not made: out of memory"))])
        'not made: out of memory'
    """
    middle = {
        name: statistics.median(each[name] for each in samples if each[name] is not None)
        for name in ("made_in", "made_with", "size", "opened_in", "opened_with")
        if any(each[name] is not None for each in samples)
    }
    failure = next((each["failure"] for each in samples if each["failure"]), None)
    return said(Outcome(**middle, failure=failure))


def said(outcome: Outcome) -> str:
    """An outcome in one line.

    Example:
        >>> said(Outcome(made_in=2.0, made_with=10**9, size=2 * 10**6, failure="not opened: crash"))
        '2.0 s, 2.0 MB, not opened: crash (1.0 GB)'
    """
    if outcome.made_in is None or outcome.size is None:
        return outcome.failure or "nothing"
    picture = outcome.failure if outcome.opened_in is None else f"{outcome.opened_in:.1f} s"
    memories = [each for each in (outcome.made_with, outcome.opened_with) if each is not None]
    memory = ", ".join(f"{each / 1e9:.1f} GB" for each in memories)
    return f"{outcome.made_in:.1f} s, {outcome.size / 1e6:.1f} MB, {picture} ({memory})"


def version_of(package: str, python: Path) -> str:
    """The version of a package in another environment."""
    script = f"from importlib.metadata import version; print(version({package!r}))"
    done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _limit() -> None:
    """What the process that is started may take."""
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT_BYTES, LIMIT_BYTES))
    seconds = int(LIMIT_SECONDS)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))


class _Raw(argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of the docstring."""


if __name__ == "__main__":
    main()
