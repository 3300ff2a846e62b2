"""Commands with the files a person has in hand: a table with a header, and no recipe."""

import json

import pytest
from rich.cells import cell_len
from tests.end_to_end.tiny_tasks import sentence

from regard.runs import Run


def table(path, first, count):
    """Reviews with a header that nobody knows, labels before texts."""
    rows = (
        f'{("good", "bad")[n % 2]},"{sentence(n)}, they said"' for n in range(first, first + count)
    )
    path.write_text("\n".join(["verdict,what they wrote", *rows]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def trained(regard, tmp_path_factory):
    """A run that was trained on files alone, and the output of the command."""
    home = tmp_path_factory.mktemp("forgiving")
    files = [table(home / f"{name}.csv", 100 * n, 60) for n, name in enumerate(("all", "v", "t"))]
    done = regard(
        *("train", files[0], "--valid", files[1], "--test", files[2], "--run", home / "run"),
        *("--set", "training.epochs=1", "--set", "model.channels=4"),
    )
    assert done.code == 0, done
    return home, done


def test_a_file_alone_is_trained_on_as_what_it_is(trained):
    home, done = trained
    assert "is taken for texts with labels: 'what they wrote' has texts of some" in done.err
    assert "--set 'data.text=what they wrote' --set data.label=verdict" in done.err
    run = Run.open(home / "run")
    assert run.task == "classification"
    assert run.recipe["data"]["test"] == [str(home / "t.csv")]
    assert "60 texts to train on, 60 to validate on" in done.err


def test_files_behind_a_run_are_evaluated(regard, trained):
    home, _ = trained
    more = table(home / "more.csv", 300, 20)
    counts = [
        json.loads(regard("evaluate", home / "run", *files, "--json").out)["count"]
        for files in ((), (more,), (more, home / "v.csv"))
    ]
    assert counts == [60, 20, 80]
    message = regard.refused("evaluate", home / "run", "--source", more)
    assert "--source must be given as a file: regard evaluate … FILE" in message


def test_answers_to_several_files_go_into_one(regard, trained):
    home, _ = trained
    lines = home / "lines.txt"
    lines.write_text(f"{sentence(7)}\n\n", encoding="utf-8")
    more = table(home / "few.csv", 300, 3)
    out = home / "labels.txt"
    done = regard("predict", home / "run", more, lines, "--output", out)
    assert (done.code, done.out) == (0, "")
    answers = out.read_text(encoding="utf-8").splitlines()
    assert len(answers) == 5
    assert all(answer.partition("\t")[0] in ("good", "bad") for answer in answers[:4])
    assert answers[4] == ""
    (alone,) = regard(
        "predict", home / "run", stdin=f"{sentence(300)}, they said\n".encode()
    ).out.split("\n")[:1]
    assert alone == answers[0]
    message = regard.refused("predict", home / "run", lines, "--output", lines)
    assert "--output must be another file than those that are read" in message


def test_info_says_what_a_run_is(regard, trained):
    home, _ = trained
    info = json.loads(regard("info", home / "run", "--json").out)
    assert info["job"] == "classification"
    assert info["test text"] == [str(home / "t.csv")]
    assert "accuracy" in info["figures"]
    lines = regard("info", home / "run").out.splitlines()
    assert any(line.startswith("model") and "parameters" in line for line in lines)
    message = regard.refused("info", home / "rnu")
    assert f"Did you mean {home / 'run'}?" in message
    assert f"regard predict {home / 'run'} FILE" in lines[-3]


def test_a_check_infers_takes_settings_and_exits_with_zero(regard, trained):
    home, _ = trained
    done = regard("data", "check", home / "all.csv")
    assert done.code == 0, done
    assert "bad 30 (50.0%)" in done.out
    named = ("--set", "data.text=what they wrote", "--set", "data.label=verdict")
    same = regard("data", "check", "classification-bag", home / "all.csv", *named)
    assert same.out == done.out


def test_the_encoding_of_training_is_that_of_later_commands(regard, tmp_path):
    path, new = tmp_path / "a.tsv", tmp_path / "new.txt"
    rows = [f"żółć {n} nowa\t{'dobry' if n % 2 else 'zły'}\n" for n in range(60)]
    path.write_bytes("".join(rows).encode("cp1250"))
    new.write_bytes("żółć 3 nowa\n".encode("cp1250"))
    limits = ("--set", "training.updates=1", "--set", "training.epochs=none")
    limits += ("--set", "training.least_updates=0", "--run", tmp_path / "run")
    trained = regard("train", "classification-bag", path, "--encoding", "cp1250", *limits)
    assert trained.code == 0, trained
    done = regard("evaluate", tmp_path / "run")
    assert (done.code, "zły" in done.out) == (0, True), done
    assert regard("predict", tmp_path / "run", new).code == 0
    assert regard("train", "--resume", "--run", tmp_path / "run").code == 0


# There are too few of them to hold any out.
REFUSED = "! `regard train` refuses this: 1"


def problems(done):
    return [line for line in done.out.splitlines() if line.startswith("!")]


def test_line_ends_in_contexts_and_tags_of_one_sentence_are_no_problems(regard, tmp_path):
    record = {"question": "Who?", "context": "It is\nAnn.", "answers": ["Ann"]}
    (tmp_path / "a.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")
    done = regard("data", "check", "question-answering", tmp_path / "a.jsonl")
    assert problems(done) == [REFUSED]
    tagged = "Ann\tB-PER\nsat\tO\n\nAnn\tO\nsat\tO\n\n"
    (tmp_path / "a.conll").write_text(tagged, encoding="utf-8")
    done = regard("data", "check", "tagging-entities", tmp_path / "a.conll")
    assert problems(done) == [REFUSED]
    assert "- training texts labelled otherwise before: 1; " in done.out


def test_recipes_are_listed_and_printed(regard):
    assert max(map(cell_len, regard("recipes").out.splitlines())) <= 80
    listed = regard("recipes", "pair_matching").out
    assert "pair-matching-cross" in listed
    assert "logistic regression" in " ".join(listed.split())
    printed = regard("recipes", "show", "tagging-words").out
    assert printed.startswith("# Parts of speech")
    assert 'task = "tagging"' in printed
    assert "must be one of" in regard.refused("recipes", "nothing")
