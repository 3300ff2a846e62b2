import shlex
import shutil

import pytest
from tests.end_to_end.pages import ROOT, blocks, commands

pytestmark = pytest.mark.slow

README = ROOT / "README.md"


@pytest.fixture
def home(corpus, run, tmp_path, monkeypatch):
    """A folder with the files and runs that the README names."""
    shutil.copytree(run, tmp_path / "tatoeba-zh-en")
    shutil.copytree(run, tmp_path / "runs" / "ende")
    pairs = (corpus / "train.tsv").read_text("utf-8").splitlines()
    (tmp_path / "pairs.tsv").write_text("\n".join(pairs) + "\n", "utf-8")
    for column, name in enumerate(("train.en", "train.de")):
        side = [line.split("\t")[column] for line in pairs]
        (tmp_path / name).write_text("\n".join(side) + "\n", "utf-8")
    rows = [f"The room was {n % 7} steps away,{('good', 'bad')[n % 2]}" for n in range(40)]
    (tmp_path / "reviews.csv").write_text("\n".join(["review,label", *rows]) + "\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_shows_both_ways_in():
    assert len(blocks(README, "python")) >= 2
    named = {line.split("regard ")[1].split()[0] for line in commands(README)}
    assert named >= {"demo", "train", "predict", "evaluate", "look"}


# Shapes are checked where each command has its tests.
@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize("line", commands(README))
def test_its_commands_work(line, regard, home):
    piped, _, command = line.rpartition("|")
    words = shlex.split(command)
    assert words.pop(0) == "regard"
    if words[0] == "train":  # the same words, a training of seconds
        if "--minutes" in words:
            words[words.index("--minutes") + 1] = "0.02"
        elif "reviews.csv" in words:
            words += ["--set", "training.epochs=1", "--set", "training.least_updates=0"]
        if "runs/ende" in words:
            words[words.index("runs/ende")] = "runs/short"
            words += ["--set", "training.updates=2", "--set", "tokenizer.vocab_size=950"]
    stdin = shlex.split(piped)[1].encode() + b"\n" if piped else b""
    done = regard(*words, stdin=stdin)
    assert done.code == 0, done
    assert done.out or words[0] == "train"
