"""A small run, trained once by command on sentences of the phrasebook, for all tests to use."""

import io
import random
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

import pytest
from tests.end_to_end.browsing import chinese as chinese
from tests.end_to_end.browsing import chromium as chromium
from tests.end_to_end.browsing import tab as tab

from regard.cli import run_command
from regard.text.phrasebook import phrases

RECIPE = """
task = "translation"
[data]
train = "train.tsv"
test = "test.tsv"
source_language = "zh"
target_language = "en"
max_length = 24
[tokenizer]
type = "words"
shared = false
[model]
type = "rnn_seq2seq"
embed_dim = 32
hidden_dim = 32
attention_dim = 16
values = "embeddings"
dropout = 0.0
[training]
updates = {updates}
batch_tokens = 1024
learning_rate = 0.02
warmup = 10
schedule = "linear"
validate_every = 40
precision = "float32"
"""


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


class Command:
    """Runs commands in this process."""

    def __call__(self, *arguments, stdin=b""):
        out, err = io.StringIO(), io.StringIO()
        before = sys.stdin
        sys.stdin = io.TextIOWrapper(io.BytesIO(stdin))
        try:
            with redirect_stdout(out), redirect_stderr(err):
                code = run_command([str(argument) for argument in arguments])
        finally:
            sys.stdin = before
        return Done(code, out.getvalue(), err.getvalue())

    def refused(self, *arguments, stdin=b""):
        """The message of a command that does not work: one line, and status 2."""
        done = self(*arguments, stdin=stdin)
        assert done.code == 2, done
        *before, message = done.err.splitlines()
        assert message.startswith("error: "), done
        assert not any(line.startswith(("error:", "Traceback")) for line in before), done
        return message


@pytest.fixture(scope="session")
def regard():
    return Command()


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """A folder with a few hundred sentence pairs, and a recipe for them."""
    folder = tmp_path_factory.mktemp("corpus")
    drawn = random.Random(0).sample(phrases("train"), 330)
    lines = [(phrase.source, phrase.target) for phrase in drawn]
    for name, part in (("train", lines[:300]), ("test", lines[300:])):
        (folder / f"{name}.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in part), "utf-8")
    (folder / "small.toml").write_text(RECIPE.format(updates=80), "utf-8")
    (folder / "tiny.toml").write_text(RECIPE.format(updates=2), "utf-8")
    return folder


@pytest.fixture(scope="session")
def run(regard, corpus):
    """A finished run; shapes are checked when it is used."""
    trained = regard("train", corpus / "small.toml", "--run", corpus / "run")
    assert trained.code == 0, trained
    return corpus / "run"


@pytest.fixture(scope="session")
def other_run(regard, corpus):
    """A run that learned next to nothing."""
    trained = regard("train", corpus / "tiny.toml", "--run", corpus / "other")
    assert trained.code == 0, trained
    return corpus / "other"
