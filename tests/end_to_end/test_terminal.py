"""Commands on a terminal: bars are drawn, and nothing breaks because of them.

Every report of progress is rendered at once, as it would be sooner or later in long work.
"""

import codecs
import os
import re
import signal
import sys
import zipfile
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from functools import partialmethod
from pathlib import Path
from threading import Event, Thread, main_thread

import pytest
from rich.progress import Progress

from regard.cli import output, run_command
from regard.text import phrasebook

pty = pytest.importorskip("pty", reason="there are no pseudo-terminals")

FIXTURES = Path(__file__).parents[1] / "fixtures" / "runs_33c24e5"
RUNS = ("translation-bpe", "tagging", "language-model")
# A translator that has learned something, and what can be a program of torch.
TRANSLATOR, CLASSIFIER = "translation-rnn", "classification-bag"
TRAINING = ("training.updates=4", "training.validate_every=2", "training.warmup=1")


class Terminal:
    """Runs a command of this process on a pseudo-terminal, and reads what it writes there."""

    def __init__(self):
        self.screen = ""

    def run(self, *arguments, out=None):
        """Run a command; its stderr is the terminal, and its stdout unless ``out`` is given."""
        ours, theirs = pty.openpty()
        reader = Thread(target=self._read, args=(ours,))
        reader.start()
        # Numba, when it compiles, has colorama hold the stdout of then to the end of the process.
        stream = open(theirs, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        with redirect_stderr(stream), redirect_stdout(out or stream):
            code = run_command([str(argument) for argument in arguments])
        stream.flush()
        os.close(theirs)
        reader.join()
        os.close(ours)
        return code

    def _read(self, descriptor):
        decoder = codecs.getincrementaldecoder("utf-8")()
        with suppress(OSError):  # on Linux, the end
            while part := os.read(descriptor, 65536):
                self.screen += decoder.decode(part)


class AtOnce:
    """A timer for which no time passes."""

    def __init__(self, seconds, function):
        self.start = function

    def cancel(self):
        """Nothing is left to cancel."""


@pytest.fixture
def terminal(monkeypatch, unchecked_shapes):
    monkeypatch.setattr(output, "Timer", AtOnce)
    monkeypatch.setattr(Progress, "update", partialmethod(Progress.update, refresh=True))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(FIXTURES / "texts")
    return Terminal()


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder of finished runs."""
    folder = tmp_path_factory.mktemp("runs")
    for name in (*RUNS, TRANSLATOR, CLASSIFIER):
        with zipfile.ZipFile(FIXTURES / f"{name}.zip") as packed:
            packed.extractall(folder / name)
        (folder / name / "run").rename(folder / f"{name}-run")
    return folder


@pytest.fixture
def brackets(tmp_path):
    """A file whose name would be an instruction in rich's markup."""
    path = tmp_path / "lines[red].txt"
    path.write_text("老师在厨房里喝茶。\n" * 3, "utf-8")
    return path


def bars_at_once(screen):
    """The most bars that stood one below the other on a screen."""
    frames = re.split(r"\r(?!\n)", screen)
    return max(sum("━" in line for line in frame.split("\n")) for frame in frames)


SHORT = [f"--set={setting}" for setting in TRAINING]
# Commands, where RUNS is the folder of runs and OUT a new file, and what stands on the screen.
COMMANDS = [
    *(
        (f"predict RUNS/{run}-run LINES --output OUT", ["reading lines[red].txt", "wrote OUT"])
        for run in RUNS
    ),
    *((f"evaluate RUNS/{run}-run", ["a second"]) for run in RUNS),
    (
        "predict RUNS/translation-bpe-run --input ask-chinese.txt --output OUT",
        ["answering files", "100%"],
    ),
    ("look RUNS/translation-bpe-run --file ask-chinese.txt --out OUT", ["wrote OUT"]),
    ("export RUNS/classification-bag-run --output OUT", ["wrote OUT"]),
    ("data check pairs.tsv", ["checking", "reading pairs.tsv"]),
    ("train rnn-attention pairs.tsv --run OUT", ["reading pairs.tsv", " at update 4: loss"]),
    ("train tagging-words names.conll --run OUT", ["reading names.conll", "epoch 1"]),
]


@pytest.mark.parametrize(("line", "expected"), COMMANDS)
def test_a_command_works_there(line, expected, terminal, runs, brackets, tmp_path):
    paths = {"RUNS": str(runs), "LINES": str(brackets), "OUT": str(tmp_path / "out")}
    words = [re.sub("RUNS|LINES|OUT", lambda m: paths[m[0]], word) for word in line.split()]
    code = terminal.run(*words, *(SHORT if words[0] == "train" else ()))
    assert code == 0 or words[0] == "data"
    screen = " ".join(terminal.screen.split())
    assert all(" ".join(each.replace("OUT", paths["OUT"]).split()) in screen for each in expected)
    if "LINES" in line:
        assert bars_at_once(terminal.screen) == 1
        assert (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("width", "columns"),
    [
        (120, ["run", "recipe", "updates", "best", "validation", "speed", "state"]),
        (95, ["run", "recipe", "updates", "best", "validation", "state"]),
        (80, ["run", "updates", "best", "validation", "state"]),
    ],
)
def test_a_list_of_runs_is_no_wider_than_the_terminal(width, columns, terminal, runs, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    assert terminal.run("runs", runs) == 0
    _, header, *rows = terminal.screen.splitlines()
    assert len(rows) == 10
    assert header.split() == columns
    assert max(map(len, (header, *rows))) <= width
    assert all(row.endswith(("done", "stopped")) for row in rows)


def test_answers_through_a_pipe(terminal, runs, brackets):
    with brackets.with_name("answers").open("w+", encoding="utf-8") as out:
        assert terminal.run("predict", runs / "translation-bpe-run", brackets, out=out) == 0
        assert out.seek(0) == 0
        assert [line.count("\x1b") for line in out] == [0, 0, 0]
    assert "a second" in terminal.screen


def test_demo(terminal, runs, monkeypatch):
    few = {split: phrasebook.phrases(split)[:16] for split in ("test", "new")}
    monkeypatch.setattr(phrasebook, "phrases", few.__getitem__)
    assert terminal.run("demo", "--train", "--run", runs / f"{TRANSLATOR}-run") == 0
    assert "translating" in terminal.screen
    assert bars_at_once(terminal.screen) == 1
    assert "The page with the attention of 13 sentences" in terminal.screen


@contextmanager
def typing(monkeypatch):
    """A terminal as stdin; gives the descriptor to type into."""
    keys, theirs = pty.openpty()
    with open(theirs, encoding="utf-8") as stdin, monkeypatch.context() as patch:  # noqa: PTH123
        patch.setattr(sys, "stdin", stdin)
        yield keys
    os.close(keys)


@pytest.mark.parametrize("run", ["translation-bpe-run", "language-model-run"])
def test_lines_that_are_typed(run, terminal, runs, monkeypatch):
    with typing(monkeypatch) as keys:
        os.write(keys, "老师在厨房里喝茶。\n\x04".encode())
        assert terminal.run("predict", runs / run) == 0
    assert terminal.screen.count("type a line and press Enter; Ctrl-D ends\r\n") == 1


def test_lines_of_a_pipe(terminal, runs, brackets, monkeypatch):
    with brackets.open(encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert terminal.run("predict", runs / "translation-bpe-run") == 0
    assert "Ctrl-D" not in terminal.screen


@pytest.mark.parametrize(
    ("line", "until", "expected"),
    [
        ("predict RUN", "Ctrl-D ends", 130),
        ("look RUN 我爱音乐 --serve --out OUT", "(Ctrl-C to stop)", 0),
    ],
)
def test_the_shell_goes_on_below_an_interrupted_command(
    line, until, expected, terminal, runs, tmp_path, monkeypatch
):
    def interrupt():
        while f"{until}\r\n" not in terminal.screen and not is_over.wait(0.01):
            pass
        while not is_over.is_set():  # one that comes just before a read is felt only after it
            signal.pthread_kill(main_thread().ident, signal.SIGINT)
            is_over.wait(2)

    paths = {"RUN": runs / "translation-bpe-run", "OUT": tmp_path / "page.html"}
    is_over, interrupting = Event(), Thread(target=interrupt)
    monkeypatch.setenv("COLUMNS", "200")
    with typing(monkeypatch):
        interrupting.start()
        try:
            assert terminal.run(*[paths.get(word, word) for word in line.split()]) == expected
        finally:
            is_over.set()
            interrupting.join()
    assert terminal.screen.endswith(f"{until}\r\n\r\n")


@pytest.mark.slow
def test_export_of_a_program(terminal, runs, tmp_path):
    run = runs / f"{CLASSIFIER}-run"
    assert terminal.run("export", run, tmp_path / "out", "--to", "torch") == 0
    assert "writing model.pt2" in terminal.screen


def test_serving(terminal, runs):
    def stop():
        while "(Ctrl-C to stop)" not in terminal.screen and not is_over.wait(0.01):
            pass
        if not is_over.is_set():
            signal.raise_signal(signal.SIGINT)

    is_over, stopping = Event(), Thread(target=stop)
    stopping.start()
    try:
        code = terminal.run("serve", runs / "tagging-run", "--port", 0)
    finally:
        is_over.set()
        stopping.join()
    assert code == 0
    assert "serving tagging-run at http://127.0.0.1:" in terminal.screen.replace("\r\n", " ")
