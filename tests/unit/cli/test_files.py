"""Texts of many files on a command line."""

import pytest

from regard.cli import run_command
from regard.cli.jobs import parse_arguments
from regard.training.recipes.resolving import default_run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    (tmp_path / "shards").mkdir()
    for number in range(2):
        rows = "".join(f"a{number}{n}\tb{number}{n}\n" for n in range(20))
        (tmp_path / "shards" / f"{number}.tsv").write_text(rows, encoding="utf-8")
    return tmp_path


def test_folders_and_patterns_of_pairs_are_files_to_train_on(folder):
    for name in ("shards", "shards/*.tsv"):
        recipe = parse_arguments([str(folder / name)]).resolve({"training.minutes": 1})
        assert recipe.data.train == (str(folder / name),)
    assert default_run(str(folder / "shards")).name == "shards"
    assert default_run(str(folder / "shards" / "*.tsv")).name == "shards"


@pytest.mark.parametrize("option", [["predict", "run", "--output"], ["serve"]])
def test_a_loop_of_links_is_no_bug(tmp_path, capsys, option):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert run_command([*option, str(tmp_path / "loop")]) == 2
    assert "loop must be a" in capsys.readouterr().err
