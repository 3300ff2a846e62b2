"""``regard data encode`` and ``regard data cached``, and texts of many files on a command line."""

import pytest

from regard.cli.app import run_command
from regard.cli.train import find_recipe
from regard.training.packaged import default_run

RECIPE = """
task = "translation"
tokenizer.type = "words"
training = {updates = 1, corpus = "%s"}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    (tmp_path / "shards").mkdir()
    for number in range(2):
        rows = "".join(f"a{number}{n}\tb{number}{n}\n" for n in range(20))
        (tmp_path / "shards" / f"{number}.tsv").write_text(rows, encoding="utf-8")
    (tmp_path / "disk.toml").write_text(RECIPE % "disk", encoding="utf-8")
    (tmp_path / "auto.toml").write_text(RECIPE % "auto", encoding="utf-8")
    return tmp_path


def test_a_text_is_encoded_listed_and_deleted(folder, capsys):
    told = ["data", "encode", str(folder / "disk.toml"), str(folder / "shards" / "*.tsv")]
    assert run_command([*told, "--processes", "1"]) == 0
    said = capsys.readouterr()
    key, count, place = said.out.rstrip("\n").split("\t")
    assert count == "39 samples"
    assert place == str(folder / "home" / "regard" / "corpora" / key)
    assert "encoding: 40 lines" in said.err
    assert "trained from memory" not in said.err
    run_command(["data", "cached"])
    listed = capsys.readouterr().out
    assert listed.startswith(f"{key}\t")
    assert "\t39 samples\t" in listed
    assert str(folder / "shards" / "0.tsv") in listed
    run_command(["data", "cached", "--delete", "all"])
    assert f"deleted {key}" in capsys.readouterr().err
    run_command(["data", "cached"])
    assert capsys.readouterr().out == ""


def test_a_text_that_is_trained_from_memory_is_said_to_be(folder, capsys):
    told = ["data", "encode", str(folder / "auto.toml"), str(folder / "shards")]
    run_command([*told, "--processes", "1", "--cache", str(folder / "told")])
    said = capsys.readouterr()
    assert str(folder / "told") in said.out
    assert "set training.corpus=disk to use it" in said.err


def test_a_task_without_is_refused(folder, capsys):
    recipe = folder / "labels.toml"
    recipe.write_text('task = "classification"\ntraining.updates = 1\n', encoding="utf-8")
    assert run_command(["data", "encode", str(recipe), str(folder / "shards")]) == 2
    assert "must be memory for classification" in capsys.readouterr().err


def test_folders_and_patterns_of_pairs_are_files_to_train_on(folder):
    for name in ("shards", "shards/*.tsv"):
        recipe = find_recipe([str(folder / name)], minutes=1)
        assert recipe.data.train == (str(folder / name),)
    assert default_run([str(folder / "shards")]).name == "shards"
    assert default_run([str(folder / "shards" / "*.tsv")]).name == "shards"
