"""The training of ``regard demo --train``: says how long it takes, and compiles loops beside it."""

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from regard.cli.recipes import packaged_recipe
from regard.inference import Predictor
from regard.tasks import read_recipe
from regard.tasks.sequences.translation import TranslationTask
from regard.text.phrasebook import phrases
from regard.training import ConsoleReporter, train
from regard.training.callbacks import Update, Validation

# Updates that are timed, the first ones being slower; and how many the tests and the page take.
_FIRST, _LAST, _AFTER = 3, 15, 120
# Sentences that need every loop that a translator is made of.
_SENTENCES = 256
_COMPILE = "from regard.cli.demo.training import compile_loops; compile_loops()"


def trained(run: Path) -> Predictor:
    """The translator, trained into a run folder."""
    recipe = read_recipe(packaged_recipe("demo"))
    compiler = None
    with suppress(OSError):  # then they are compiled when they are needed
        compiler = subprocess.Popen(
            [sys.executable, "-c", _COMPILE],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    try:
        reporter = DemoReporter(int(str(recipe.training["updates"])), compiler)
        return train(recipe, run, reporter=reporter).predictor
    finally:
        if compiler is not None:
            compiler.terminate()
            compiler.wait()


class DemoReporter(ConsoleReporter):
    """A bar of the training, and from its first updates how long all of it takes."""

    def __init__(self, updates: int, compiler: "subprocess.Popen[bytes] | None") -> None:
        super().__init__(quiet=True)
        self._updates, self._compiler = updates, compiler
        self._first_update_at = 0.0

    def on_start(self, lines: object, **_: str) -> None:
        """Say nothing: the command has named the training."""

    def on_update(self, update: Update, /) -> None:
        """Estimate the time once; wait for the compiler before its loops are needed."""
        super().on_update(update)
        if update.number == _FIRST:
            self._first_update_at = time.perf_counter()
        elif update.number == _LAST and self._first_update_at:
            an_update = (time.perf_counter() - self._first_update_at) / (_LAST - _FIRST)
            training, testing = an_update * (self._updates - _LAST), an_update * _AFTER
            self._print(
                f"takes about {training + testing:.0f} s on this machine: {training:.0f} s of "
                f"training, {testing:.0f} s of tests and of writing the page"
            )
        elif update.number == self._updates and self._compiler is not None:
            self._compiler.wait()

    def on_validation(self, validation: Validation, /) -> None:
        """Say nothing: the demo tests more."""

    def on_finish(self, path: Path, summary: object, seconds: float) -> None:
        """Say how long it took."""
        self._print(f"trained in {seconds:.0f} s, in {path}")


def compile_loops() -> None:
    """Compile loops of translation, by an untrained model of the demo's recipe, at low priority."""
    if hasattr(os, "nice"):
        os.nice(10)
    recipe = read_recipe(packaged_recipe("demo"))
    task = TranslationTask.learn(recipe, TranslationTask.read(recipe, "valid"))
    predictor = Predictor(task.build_model().eval(), task)
    sources = [phrase.source for phrase in phrases("valid")]
    predictor.translate(sources[:_SENTENCES], beam_size=1)
    predictor.translate(sources[:2])  # by the recipe's beam
    predictor.use.look(sources[0], explain=False)
