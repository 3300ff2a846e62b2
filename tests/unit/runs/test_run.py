import json
import os
import shutil
from pathlib import Path

import pytest
import torch

from regard.errors import RunError
from regard.files import fill_file
from regard.runs import Checkpoint, DamageError, Run, RunWarning, is_run
from regard.runs.card import read_initial_recipe
from regard.tasks import recipe_from_table

WEIGHTS = {"w": torch.tensor([1.0, 2.0])}


@pytest.fixture
def home(tmp_path):
    return tmp_path / "run"


@pytest.fixture
def trained(home):
    """A finished run with two checkpoints."""
    with Run.create(home, {"task": "translation", "seed": None}, "translation") as run:
        with run.new_tokenizer_folder() as folder:
            (folder / "source").mkdir()
            (folder / "source" / "words.txt").write_text("爱\n")
        for step in (1, 2):
            run.append_metrics({"step": step})
            run.save_checkpoint(step, WEIGHTS, {"step": step})
        run.finish(WEIGHTS, {"steps": 2, "loss": float("nan")})
    return home


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_a_finished_run_reads_back(trained):
    run = Run.open(str(trained))
    assert (run.task, run.recipe, run.is_finished) == ("translation", {"task": "translation"}, True)
    assert run.summary == {"steps": 2, "loss": None}
    assert torch.equal(run.load_model()["w"], WEIGHTS["w"])
    assert (run.tokenizer_folder / "source" / "words.txt").read_text() == "爱\n"
    assert run.metrics() == [{"step": 1}, {"step": 2}]
    assert [saved.step for saved in run.checkpoints()] == [1, 2]
    assert [saved.step for saved in run.newest_checkpoints(5)] == [1, 2]


def test_the_folder_is_laid_out_as_documented(trained):
    assert sorted(path.name for path in trained.iterdir()) == [
        "checkpoints",
        "lock",
        "metrics.jsonl",
        "model.safetensors",
        "recipe.toml",
        "run.json",
        "tokenizer",
    ]
    card = json.loads((trained / "run.json").read_text())
    assert (card["format"], card["regard"], card["task"]) == (1, "0.1.0", "translation")


def test_create_refuses_a_folder_that_holds_something(home, trained):
    with pytest.raises(RunError, match="must be a new folder; it already holds a run"):
        Run.create(home, {}, "translation")
    other = home.with_name("other")
    other.mkdir()
    (other / "thesis.doc").touch()
    with pytest.raises(RunError, match=r"must be a new or empty folder; it holds thesis\.doc"):
        Run.create(other, {}, "translation")


def test_create_takes_over_what_a_killed_create_left(home):
    home.mkdir()
    for name in ("lock", "recipe.toml", ".tmp-run.json"):
        (home / name).touch()
    assert not is_run(home)
    Run.create(home, {"a": 1}, "translation").close()
    assert is_run(home)
    assert Run.open(home).recipe == {"a": 1}
    assert not (home / ".tmp-run.json").exists()


def test_a_folder_that_is_no_run_is_named(tmp_path):
    with pytest.raises(RunError, match="absent must be a run folder; got nothing there"):
        Run.open(tmp_path / "absent")
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="file must be a run folder; got a file"):
        Run.open(tmp_path / "file")
    with pytest.raises(RunError, match=r"must be a run folder; run\.json is missing"):
        Run.open_for_training(tmp_path)


def test_a_newer_version_is_named_even_if_it_seals_otherwise(trained):
    (trained / "run.json").write_text('{"format": 2, "news": true}')
    expected = (
        r"run was made by a newer version of regard \(format 2\);"
        r" this is 0\.1\.0, which reads up to 1\. Upgrade regard\."
    )
    for opening in (Run.open, Run.open_for_training):
        with pytest.raises(RunError, match=expected):
            opening(trained)


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"format": 1}', b"[1]"])
def test_a_damaged_card_is_named(trained, content):
    (trained / "run.json").write_bytes(content)
    with pytest.raises(DamageError, match=r"run\.json must carry the checksum of its content"):
        Run.open(trained)


def test_a_missing_or_broken_recipe_is_named(trained):
    (trained / "recipe.toml").write_text('task = "another"')
    with pytest.raises(DamageError, match=r"recipe\.toml must have the recorded sha256 .* Restore"):
        Run.open(trained)
    (trained / "recipe.toml").unlink()
    with pytest.raises(RunError, match=r"recipe\.toml must be readable; got 'No such file"):
        Run.open(trained)


def test_a_file_is_no_place_for_a_run(tmp_path):
    (tmp_path / "taken").write_text("something")
    with pytest.raises(RunError, match=r"taken must be a folder; it is a file"):
        Run.create(tmp_path / "taken", {}, "translation")
    assert (tmp_path / "taken").read_text() == "something"


def test_a_tokenizer_that_is_absent_or_damaged_is_named(trained):
    flip(trained / "tokenizer" / "source" / "words.txt")
    with pytest.raises(DamageError, match=r"source/words\.txt must have the recorded sha256"):
        _ = Run.open(trained).tokenizer_folder
    (trained / "tokenizer" / "checksums.json").unlink()
    with pytest.raises(DamageError, match=r"checksums\.json must be readable"):
        _ = Run.open(trained).tokenizer_folder
    shutil.rmtree(trained / "tokenizer")
    assert not Run.open(trained).has_tokenizer
    with pytest.raises(RunError, match="tokenizer must hold the tokenizer; there is none"):
        _ = Run.open(trained).tokenizer_folder


def test_damaged_final_weights_are_refused_and_training_makes_them_anew(trained):
    flip(trained / "model.safetensors")
    with pytest.raises(DamageError, match=r"model\.safetensors .* Run its training again"):
        Run.open(trained).load_model()
    with pytest.warns(RunWarning, match="It is being made now"):
        run = Run.open_for_training(trained)
    with run:
        assert not run.is_finished
        run.finish(WEIGHTS)
    assert torch.equal(Run.open(trained).load_model()["w"], WEIGHTS["w"])


def test_before_the_end_the_newest_checkpoint_is_used_with_a_warning(home):
    with Run.create(home, {}, "translation") as run:
        with pytest.raises(RunError, match="must hold weights; there are none yet"):
            run.load_model()
        run.save_checkpoint(7, WEIGHTS, None)
        with pytest.warns(RunWarning, match="has not finished training; the weights of step 7"):
            assert torch.equal(run.load_model()["w"], WEIGHTS["w"])
        assert run.summary is None


def test_training_on_after_the_end_is_unfinished_until_it_ends(trained):
    with Run.open_for_training(trained) as run:
        run.save_checkpoint(2, WEIGHTS, {"step": 2})
        assert run.is_finished
        run.save_checkpoint(3, WEIGHTS, None)
        assert not run.is_finished
        assert torch.equal(run.load_model()["w"], WEIGHTS["w"])
        run.finish({"w": torch.zeros(2)})
    assert Run.open(trained).is_finished
    assert Run.open(trained).load_model()["w"].tolist() == [0, 0]


def test_finishing_again_never_looks_like_damage(trained, monkeypatch):
    with Run.open_for_training(trained) as run:
        monkeypatch.setattr(Path, "replace", _stop_after(trained / "model.safetensors"))
        with pytest.raises(KeyboardInterrupt):
            run.finish({"w": torch.zeros(2)})
    with pytest.warns(RunWarning, match="has not finished training; the weights of step 2"):
        assert torch.equal(Run.open(trained).load_model()["w"], WEIGHTS["w"])


def _stop_after(target):
    replace = Path.replace

    def stopping(old, new):
        replace(old, new)
        if new == target:
            raise KeyboardInterrupt
        return new

    return stopping


def test_resume_brings_the_folder_back_to_the_checkpoint(trained):
    with Run.open_for_training(trained) as run:
        run.append_metrics({"step": 3})
        flip(trained / "checkpoints" / "000000002" / "model.safetensors")
        with pytest.warns(RunWarning, match="damaged and not used"):
            checkpoint = run.resume()
        assert checkpoint.step == 1
        assert run.metrics() == [{"step": 1}]
        assert [saved.step for saved in run.checkpoints()] == [1]
        assert checkpoint == run.resume()


@pytest.mark.parametrize(
    ("content", "message", "rest"),
    [
        (None, "holds 0", ""),
        ('{"update": 1}\n{"upd', "holds 14, up to update 1", '{"update": 1}\n'),
        ("", "holds 0", ""),
    ],
)
def test_figures_that_are_gone_are_missed(home, content, message, rest):
    path = home / "metrics.jsonl"
    with Run.create(home, {}, "translation") as run:
        for step in (1, 2):
            run.append_metrics({"update": step})
        run.save_checkpoint(2, WEIGHTS, None)
        path.unlink() if content is None else path.write_text(content)
        rule = "metrics.jsonl must hold 28 bytes of figures, written up to update 2"
        with pytest.warns(RunWarning, match=rf"{rule}; it {message}\. The"):
            run.resume()
        run.append_metrics({"update": 3})
        assert path.read_text() == rest + '{"update": 3}\n'
        run.save_checkpoint(3, WEIGHTS, None)
        run.resume()  # says it once


def deleting(checkpoint, original):
    """A method of a checkpoint, at whose first call a training deletes that checkpoint."""

    def method(self):
        if self == checkpoint and self.folder.exists():
            self.delete()
        return original(self)

    return method


@pytest.mark.parametrize("method", ["check", "load_model"])
def test_a_checkpoint_that_a_training_deletes_meanwhile_is_not_damaged(home, monkeypatch, method):
    with Run.create(home, {}, "translation") as run:
        run.save_checkpoint(1, WEIGHTS, None)
        newest = run.save_checkpoint(2, {"w": torch.zeros(2)}, None)
    monkeypatch.setattr(Checkpoint, method, deleting(newest, getattr(Checkpoint, method)))
    with pytest.warns(
        RunWarning, match="has not finished training; the weights of step 1"
    ) as warnings:
        assert torch.equal(Run.open(home).load_model()["w"], WEIGHTS["w"])
    assert len(warnings) == 1


def test_weights_that_a_training_writes_anew_meanwhile_are_not_damaged(trained):
    reader = Run.open(trained)
    with Run.open_for_training(trained) as run:
        run.finish({"w": torch.zeros(2)})
    assert torch.equal(reader.load_model()["w"], torch.zeros(2))


def test_the_loser_of_two_starts_reads_who_was_first(home):
    with (
        Run.create(home, {}, "translation"),
        pytest.raises(RunError, match=r"already in use by process .* train into another folder"),
    ):
        Run.create(home, {}, "translation")
    with pytest.raises(RunError, match="The same command goes on with it; to begin anew, choose"):
        Run.create(home, {}, "translation")


def test_a_torn_last_record_is_left_out_and_a_broken_one_before_is_named(trained):
    path = trained / "metrics.jsonl"
    with path.open("ab") as file:
        file.write('{"text": "爱'.encode()[:-1])
    assert Run.open(trained).metrics() == [{"step": 1}, {"step": 2}]
    path.write_text('{"step": 1}\n{"step"\n{"step": 3}\n')
    with pytest.raises(RunError, match=r"metrics\.jsonl:2 must be a line of JSON"):
        Run.open(trained).metrics()
    path.unlink()
    assert Run.open(trained).metrics() == []


def test_a_run_open_for_reading_cannot_be_written(trained):
    run = Run.open(trained)
    writes = [
        lambda: run.save_checkpoint(3, WEIGHTS, None),
        lambda: run.append_metrics({}),
        lambda: run.finish(WEIGHTS),
        lambda: run.prune(keep_last=1),
        run.resume,
        lambda: run.new_tokenizer_folder().__enter__(),
    ]
    for write in writes:
        with pytest.raises(
            RunError, match=r"it is open for reading\. Open it with Run\.open_for_t"
        ):
            write()


class PowerWatch:
    def __init__(self, monkeypatch):
        self.paths = {}
        self.seen = set()
        self.unsynced_bytes = set()
        self.unsynced_names = set()
        for name in ("open", "write", "fsync", "replace", "rename", "mkdir"):
            monkeypatch.setattr(os, name, self._watched(getattr(os, name), getattr(self, name)))

    def _watched(self, original, note):
        def call(*args, **kwargs):
            result = original(*args, **kwargs)
            note(*args[:2], **({"result": result} if note == self.open else {}))
            return result

        return call

    def open(self, path, flags, result):
        path = Path(path)
        if flags & os.O_CREAT and path not in self.seen and ".tmp-" not in str(path):
            self.unsynced_names.add(path.parent)
        self.seen.add(path)
        self.paths[result] = path

    def write(self, descriptor, _):
        self.unsynced_bytes.add(self.paths[descriptor])

    def fsync(self, descriptor):
        self.unsynced_bytes.discard(self.paths[descriptor])
        self.unsynced_names.discard(self.paths[descriptor])

    def replace(self, old, new):
        if ".tmp-" not in Path(new).name:  # a name nobody looks for: it is being deleted
            assert not [path for path in self.unsynced_bytes if path.is_relative_to(old)], new
            self.unsynced_names.add(Path(new).parent)

    rename = replace

    def mkdir(self, path, _):
        if ".tmp-" not in Path(path).name:
            self.unsynced_names.add(Path(path).parent)


def test_everything_is_synced_before_the_rename_that_shows_it(home, monkeypatch):
    power = PowerWatch(monkeypatch)
    with Run.create(home, {}, "translation") as run:
        with run.new_tokenizer_folder() as folder:
            fill_file(folder / "words", b"love")
        assert not power.unsynced_names
        run.save_checkpoint(0, WEIGHTS, 0)
        for step in (1, 2, 2):
            run.append_metrics({"step": step})
            run.save_checkpoint(step, WEIGHTS, step)
            assert not power.unsynced_names
            assert home / "metrics.jsonl" not in power.unsynced_bytes
        run.finish(WEIGHTS)
        assert not power.unsynced_names
    assert power.unsynced_bytes <= {home / "lock"}


@pytest.mark.parametrize(
    ("name", "before", "now"),
    [
        ("temperature", 1e-30, 1e-6),
        ("temperature", 1e39, 1000),
        ("repetition_penalty", 1e-300, 0.01),
        ("beam_size", 5000, 1000),
        ("min_length", 100_000, 64),
        ("length_penalty", float("inf"), 10),
    ],
)
def test_a_search_beyond_its_bounds_is_kept_to_them_with_a_warning(home, name, before, now):
    method = "beam" if name in ("beam_size", "length_penalty") else "sample"
    table = {"task": "translation", "data": {"max_length": 64}, "decoding": {"method": method}}
    Run.create(home, table, "translation").close()
    file = home / "recipe.toml"
    file.write_text(file.read_text("utf-8") + f"{name} = {before!r}\n", "utf-8")
    with pytest.warns(RunWarning, match=rf"decoding\.{name} = .*, which is out of bounds now"):
        recipe = read_initial_recipe(file, None)
    assert recipe["decoding"] == {"method": method, name: now}
    recipe_from_table(recipe)


def test_retired_settings_of_a_search_are_left_out_with_a_warning(home):
    off = {"groups": 1, "diversity": 0.5, "beam_size": 3}
    with Run.create(home, {"decoding": off}, "translation") as run:
        assert run.recipe["decoding"]["beam_size"] == 3
    warned = {"match": r"old was made with decoding\.groups = 3, which is no longer a setting"}
    with pytest.warns(RunWarning, **warned):
        Run.create(home.parent / "old", {"decoding": off | {"groups": 3}}, "translation").close()
    with pytest.warns(RunWarning, **warned):
        assert Run.open(home.parent / "old").recipe["decoding"] == {"beam_size": 3}
