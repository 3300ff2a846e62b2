"""A run with random weights, and files to answer."""

import pytest
import torch

from regard.runs import Run
from regard.tasks import TASKS, recipe_from_table
from regard.text import Pair


def make_run(path, *, seed=0):
    """A translator of letters that has learned nothing."""
    recipe = recipe_from_table(
        {
            "task": "translation",
            "tokenizer": {"type": "characters"},
            "model": {"type": "rnn_seq2seq", "embed_dim": 8, "hidden_dim": 8, "attention_dim": 4},
            "data": {"max_length": 32},
            "decoding": {"beam_size": 2},
        }
    )
    pairs = [Pair(f"{a}{b} c", f"{b}{a} c", (), "x:1") for a in "abcdef" for b in "ghijkl"]
    task = TASKS["translation"].task.learn(recipe, pairs)
    torch.manual_seed(seed)
    with Run.create(path, recipe.table(), recipe.task) as run:
        with run.new_tokenizer_folder() as folder:
            task.save(folder)
        run.finish(task.build_model().state_dict())
    return path


@pytest.fixture(scope="session")
def translator(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("bulk") / "run")


@pytest.fixture(scope="session")
def other_translator(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("bulk") / "other", seed=1)


@pytest.fixture
def files(tmp_path):
    """Five files of different kinds and lengths."""
    import gzip
    import json

    home = tmp_path / "files"
    (home / "deep").mkdir(parents=True)
    rows = [[f"{a}{b}" for a in "abc" for b in letters] for letters in ("gh", "ij", "kl", "g", "h")]
    (home / "a.txt").write_text("\n".join(rows[0]) + "\n", "utf-8")
    (home / "b.txt").write_text("\n".join([*rows[1], "", rows[1][0]]) + "\n", "utf-8")
    (home / "c.tsv").write_text("".join(f"{row}\tx\n" for row in rows[2]), "utf-8")
    with gzip.open(home / "d.txt.gz", "wt", encoding="utf-8") as packed:
        packed.write("\n".join(rows[3]))
    records = "".join(json.dumps({"source": row}) + "\n" for row in rows[4])
    (home / "deep" / "e.jsonl").write_text(records, "utf-8")
    return home


def contents(folder):
    """The bytes of every file of answers."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("lock", "bulk.json")
    }


@pytest.fixture
def patterns(files):
    return [f"{files}/**/*.*"]


@pytest.fixture
def one_thread():
    """As many threads as a worker has: scores' last digits depend on how sums are shared out."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
