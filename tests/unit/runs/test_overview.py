import os

import pytest
import torch

from regard.errors import RunError
from regard.runs import Run
from regard.runs.lock import is_held
from regard.runs.overview import find_runs, overview


def test_a_run_in_a_line(runs, tmp_path):
    line = overview(runs.make(tmp_path / "a", name="transformer-tiny", losses=(2.0, 1.5, 1.7)))
    assert line.to_dict() == {
        "run": str(tmp_path / "a"),
        "recipe": "transformer-tiny",
        "state": "done",
        "updates": 30,
        "limit": 100,
        "metric": "loss",
        "best": 1.5,
        "best_update": 20,
        "each_second": 250.0,
        "counted": "tokens",
        "problem": None,
    }


def test_the_best_is_by_the_metric_that_the_run_goes_by(runs, tmp_path):
    line = overview(runs.make(tmp_path / "a", metric="bleu", losses=(2.0, 1.5, 1.7)))
    assert (line.metric, line.best, line.best_update) == ("bleu", 38.5, 20)


def test_of_a_task_from_outside_the_loss_is_still_better_where_it_is_less(runs, tmp_path):
    line = overview(runs.make(tmp_path / "a", task="from_outside", losses=(2.0, 1.5, 1.7)))
    assert line.best_update == 20
    assert line.counted == "terms of the loss"


def test_a_recipe_without_a_name_is_described_by_task_and_model(runs, tmp_path):
    assert overview(runs.make(tmp_path / "a")).recipe == "translation transformer"


def test_states(runs, tmp_path):
    done, stopped = tmp_path / "done", tmp_path / "stopped"
    runs.make(done)
    runs.make(stopped, finished=False)
    assert overview(done).state == "done"
    assert overview(stopped).state == "stopped"
    with Run.open_for_training(stopped):
        assert overview(stopped).state == "running"
    assert overview(stopped).state == "stopped"


def test_what_is_damaged_is_named_and_the_others_are_listed(runs, tmp_path):
    for name in ("card", "figures", "position", "whole"):
        runs.make(tmp_path / name)
    (tmp_path / "card" / "run.json").write_text('{"format": 1}')
    figures = tmp_path / "figures" / "metrics.jsonl"
    figures.write_text(figures.read_text().replace('{"update": 10,', "update 10", 1))
    (tmp_path / "position" / "checkpoints" / "000000020" / "state.json").write_text("{")
    by_name = {run.run.name: run for run in find_runs(tmp_path)[0]}
    assert by_name["card"].state == "damaged"
    assert "must carry the checksum" in by_name["card"].problem
    assert (by_name["figures"].state, by_name["figures"].best) == ("done", None)
    assert "metrics.jsonl:1 must be a line of JSON" in by_name["figures"].problem
    # The checkpoint before tells the speed.
    assert by_name["position"].each_second == 250
    assert "state.json must carry the checksum" in by_name["position"].problem
    assert by_name["whole"].problem is None


def test_a_count_that_no_number_holds_has_no_speed(runs, tmp_path):
    with Run.open_for_training(runs.make(tmp_path / "a", finished=False)) as run:
        position = {"update": 30, "tokens": 16**5000, "seconds": 4.0}
        run.save_checkpoint(30, {"w": torch.ones(2)}, {"position": position})
    line = overview(tmp_path / "a")
    assert (line.updates, line.each_second, line.problem) == (30, None, None)


def test_foreign_folders_are_named_and_runs_inside_of_folders_found(runs, tmp_path):
    runs.make(tmp_path / "old" / "ende" / "a")
    runs.make(tmp_path / "b")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "run.txt").write_text("no run")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "foreign.json").write_text("{}")
    (tmp_path / "circle").symlink_to(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "b")
    runs_found, others = find_runs(tmp_path)
    names = [run.run.relative_to(tmp_path).as_posix() for run in runs_found]
    assert names == ["b", "link", "old/ende/a"]
    assert [path.name for path in others] == ["circle", "notes"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look into everything")
def test_a_folder_that_is_not_ours_is_no_run(runs, tmp_path):
    runs.make(tmp_path / "a")
    (tmp_path / "locked").mkdir(mode=0)
    assert [path.name for path in find_runs(tmp_path)[1]] == ["locked"]


@pytest.mark.parametrize(("name", "actual"), [("absent", "nothing there"), ("file", "a file")])
def test_no_folder_is_an_error(tmp_path, name, actual):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=f"{name} must be a folder of runs; got {actual}"):
        find_runs(tmp_path / name)


def test_a_lock_of_a_process_number_that_another_has_now_is_not_held(tmp_path):
    (tmp_path / "lock").write_text(f'{{"process": {os.getpid()}, "host": "elsewhere"}}')
    assert not is_held(tmp_path)
