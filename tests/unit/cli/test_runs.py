"""``regard runs`` prints a table or JSON."""

import json
import re
import shlex
import shutil

import pytest
import torch

from regard.cli import run_command
from regard.errors import RunError
from regard.runs import Run
from regard.runs.card import Provenance


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder with ``runs/a`` and ``runs/b``."""
    for name, rate in (("a", 0.1), ("b", 0.2)):
        table = {"task": "translation", "training": {"learning_rate": rate, "updates": 10}}
        with Run.create(
            tmp_path / "runs" / name, table, "translation", Provenance(name="tiny")
        ) as run:
            run.append_metrics({"update": 10, "split": "valid", "loss": 10 * rate})
            run.save_checkpoint(10, {"w": torch.ones(1)}, None)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_table(home, capsys):
    (home / "runs" / "notes").mkdir()
    (home / "runs" / "b" / "run.json").write_text("{}")
    assert run_command(["runs"]) == 0
    captured = capsys.readouterr()
    assert "loss 1 at 10" in captured.out
    assert "10 of 10" in captured.out
    assert [line.split()[0] for line in captured.out.splitlines() if "tiny" in line] == ["a"]
    assert [line.split()[-1] for line in captured.out.splitlines() if line.startswith("b ")] == [
        "damaged"
    ]
    assert "warning: runs/b/run.json must carry the checksum" in captured.err
    assert "folders without a run: notes" in captured.err


def test_json(home, capsys):
    assert run_command(["runs", "runs", "--json"]) == 0
    runs = json.loads(capsys.readouterr().out)
    assert [(run["run"], run["best"], run["state"]) for run in runs] == [
        ("runs/a", 1.0, "stopped"),
        ("runs/b", 2.0, "stopped"),
    ]


def test_nothing_to_list(tmp_path, capsys):
    assert run_command(["runs", str(tmp_path)]) == 0
    assert "no runs in" in capsys.readouterr().err
    assert run_command(["runs", str(tmp_path / "absent")]) == 2
    assert "must be a folder of runs; got nothing there" in capsys.readouterr().err


def test_without_a_folder_of_runs_the_cure_finds_the_run_that_is_here(home, capsys):
    (home / "runs" / "a").rename(home / "regard-demo")
    (home / "runs").rename(home / "others")
    assert run_command(["runs"]) == 2
    cure = re.search(r"`regard (.+)` lists those here", capsys.readouterr().err)
    assert cure
    assert run_command(cure[1].split()) == 0
    assert "regard-demo" in capsys.readouterr().out


def test_a_name_with_two_stars_is_no_pattern():
    with pytest.raises(RunError, match="must be a run folder; got nothing there"):
        Run.open("runs/a**b")


def test_a_run_of_a_task_that_is_gone_is_still_described(tmp_path, capsys):
    table = {"task": "gone", "data": {"train": ["x.txt"]}, "model": {"type": "small"}}
    with Run.create(tmp_path / "old", table, "gone", Provenance(name="old")) as run:
        run.finish({"w": torch.ones(1)}, {"updates": 1})
    assert run_command(["info", str(tmp_path / "old")]) == 0
    assert "model       small" in capsys.readouterr().out


def test_info_of_a_bundle_names_it(points_run, tmp_path, capsys):
    bundle = tmp_path / "points.regard"
    assert run_command(["export", str(points_run), str(bundle)]) == 0
    capsys.readouterr()
    assert run_command(["info", str(bundle), "--json"]) == 0
    info = json.loads(capsys.readouterr().out)
    assert info["run"] == str(bundle)
    assert info["next"] == [
        f"regard {command}"
        for command in (
            f"predict {bundle} FILE",
            f"evaluate {bundle} FILE",
            f"look {bundle} NUMBERS",
        )
    ]
    assert info["model"] == "kernel_regression with 1 parameter"
    assert info["training"] == "done, after 0 updates"  # its summary has none
    assert "folder" not in info


def test_commands_that_come_next_can_be_pasted(points_run, tmp_path, capsys):
    folder = tmp_path / "my runs" / "it's"
    shutil.copytree(points_run, folder)
    assert run_command(["info", str(folder), "--json"]) == 0
    command, *_ = json.loads(capsys.readouterr().out)["next"]
    assert shlex.split(command) == ["regard", "predict", str(folder), "FILE"]
