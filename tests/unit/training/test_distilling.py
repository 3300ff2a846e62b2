"""A student learns what its teacher writes, which is written once."""

import json
import random
import shutil

import pytest

from regard.errors import DataError, RunError, SettingError
from regard.inference import Predictor
from regard.runs import Run
from regard.tasks import recipe_from_table
from regard.training import distilling, resume, train, with_test

SMALL = {"type": "rnn_seq2seq", "embed_dim": 8, "hidden_dim": 8, "attention_dim": 8}
FEW = {"updates": 4, "batch_tokens": 120, "learning_rate": 0.01, "warmup": 3}
FEW |= {"validate_every": 2, "validation_pairs": 2, "precision": "float32"}
LANGUAGES = {"source_language": "zh", "target_language": "en"}


def rows(count):
    dice = random.Random(1)
    return ["".join(dice.choices("0123456789", k=dice.randint(3, 6))) for _ in range(count)]


def recipe(folder, data=None, decoding=None, **training):
    """A small translator of strings of digits."""
    names = {"train": "train.tsv", "valid": "valid.tsv"} if data is None else data
    table = {
        "data": names,
        "tokenizer": {"type": "characters"},
        "model": SMALL,
        "training": FEW | training,
        "decoding": {"min_length": 2, "max_ratio": 0.5, "beam_size": 2} | (decoding or {}),
    }
    return recipe_from_table(table, folder=folder)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with text and a teacher."""
    folder = tmp_path_factory.mktemp("home")
    lines = [f"{row}\t{row[::-1]}\n" for row in rows(60)]
    (folder / "train.tsv").write_text("".join(lines[:50] + lines[:5]), encoding="utf-8")
    (folder / "valid.tsv").write_text("".join(lines[50:]), encoding="utf-8")
    data = {"train": "train.tsv", "valid": "valid.tsv", **LANGUAGES}
    train(recipe(folder, data), folder / "teacher")
    return folder


@pytest.fixture
def asked(monkeypatch):
    """How many sources each call of the teacher translates."""
    calls, translate = [], Predictor.translate

    def counted(self, texts, **settings):
        calls.append(len(texts))
        return translate(self, texts, **settings)

    monkeypatch.setattr(Predictor, "translate", counted)
    return calls


def records(run):
    return [json.loads(line) for line in (run / "distilled.jsonl").read_text().splitlines()]


def test_the_targets_are_the_teachers_translations(home, tmp_path, asked):
    student = train(recipe(home, distill="teacher"), tmp_path / "student")
    about, *written = records(tmp_path / "student")
    sources = list(dict.fromkeys(rows(60)[:50]))
    assert [each["source"] for each in written] == sources
    assert asked == [len(sources)]
    teacher = Predictor.load(home / "teacher")
    found = {s: each[0].text for s, each in zip(sources, teacher.translate(sources), strict=True)}
    assert {each["source"]: each["translation"] for each in written} == found
    assert about["teacher"] == Run.open(home / "teacher").model_checksum
    # Who is given these pairs in a file learns the same.
    pairs = [f"{row}\t{found[row]}\n" for row in rows(60)[:50] + rows(60)[:5] if found[row]]
    (tmp_path / "train.tsv").write_text("".join(pairs), encoding="utf-8")
    shutil.copy(home / "valid.tsv", tmp_path)
    train(recipe(tmp_path), tmp_path / "other")
    one, other = (tmp_path / name / "model.safetensors" for name in ("student", "other"))
    assert one.read_bytes() == other.read_bytes()
    assert student.predictor.recipe.training["distill"] == str(home / "teacher")


def test_what_is_translated_is_kept_when_the_work_is_stopped(home, tmp_path, asked, monkeypatch):
    monkeypatch.setattr(distilling, "_GROUP", 10)
    translate = Predictor.translate

    def stopped(self, texts, **settings):
        if len(asked) == 2:
            raise KeyboardInterrupt
        return translate(self, texts, **settings)

    with monkeypatch.context() as patch:
        patch.setattr(Predictor, "translate", stopped)
        with pytest.raises(KeyboardInterrupt):
            train(recipe(home, distill="teacher"), tmp_path / "student")
    assert len(records(tmp_path / "student")) == 21
    with (tmp_path / "student" / "distilled.jsonl").open("a") as file:
        file.write('{"source": "12')  # as a kill leaves it
    asked.clear()
    train(recipe(home, distill="teacher"), tmp_path / "student")
    assert sum(asked) == len(records(tmp_path / "student")) - 21 > 0
    train(recipe(home, distill="teacher"), tmp_path / "whole")
    assert records(tmp_path / "student") == records(tmp_path / "whole")


def test_who_goes_on_needs_no_teacher(home, tmp_path, asked):
    shutil.copytree(home / "teacher", tmp_path / "teacher")
    train(recipe(home, distill=str(tmp_path / "teacher")), tmp_path / "student")
    shutil.rmtree(tmp_path / "teacher")
    resume(tmp_path / "student", settings=["training.updates=6"])
    assert Run.open(tmp_path / "student").summary["updates"] == 6
    assert len(asked) == 1
    with pytest.raises(RunError, match=r"training\.distill was .*/teacher', now '/elsewhere'"):
        resume(tmp_path / "student", settings=["training.distill=/elsewhere"])


def test_what_another_teacher_wrote_is_not_learned(home, tmp_path, asked):
    folder = tmp_path / "student"
    folder.mkdir()
    of_another = [{"teacher": "another", "decoding": {}}]
    of_another += [{"source": row, "translation": "7"} for row in rows(60)]
    (folder / "distilled.jsonl").write_text("\n".join(map(json.dumps, of_another)) + "\n")
    train(recipe(home, distill="teacher"), folder)
    assert sum(asked) == len(records(folder)) - 1 > 40
    assert len({each["translation"] for each in records(folder)[1:]} - {"7"}) > 0


def test_a_student_without_a_text_has_the_teachers(home, tmp_path):
    alone = with_test(recipe(home, data={}, distill="teacher"), tmp_path / "student")
    assert alone.files("train") == [home / "train.tsv"]
    assert (alone.data.source_language, alone.data.target_language) == ("zh", "en")
    kept = recipe(home, data={"max_length": 7, "test": "valid.tsv"}, distill="teacher")
    assert with_test(kept, tmp_path / "student").data.max_length == 7
    train(alone, tmp_path / "student")
    again = with_test(recipe(home, data={}, distill="teacher"), tmp_path / "student")
    train(again, tmp_path / "student")


def test_a_source_for_which_the_teacher_writes_nothing_is_left_out(home, tmp_path, monkeypatch):
    monkeypatch.setattr(distilling, "_translated", lambda _, texts, advance: ["", *texts[1:]])
    train(recipe(home, distill="teacher"), tmp_path / "student")
    assert records(tmp_path / "student")[1]["translation"] == ""
    assert Run.open(tmp_path / "student").is_finished


def test_a_teacher_that_writes_nothing_is_refused(home, tmp_path, monkeypatch):
    monkeypatch.setattr(distilling, "_translated", lambda _, texts, advance: [""] * len(texts))
    with pytest.raises(DataError, match=r"teacher writes nothing for any source\. Train it longer"):
        train(recipe(home, distill="teacher"), tmp_path / "student")


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"distill": "nowhere"}, RunError, "nowhere must be a run"),
        ({"distill": "unfinished"}, RunError, "unfinished must have finished training"),
        (
            {"distill": "other-task"},
            SettingError,
            "distill must name a run of translation; got one of language_modelling in .*other-task",
        ),
        (
            {"distill": "teacher", "data": {"train": "train.tsv", "source_language": "de"}},
            SettingError,
            r"must name a run of the same languages; got 'zh' as its source_language and 'de' as",
        ),
    ],
)
def test_a_teacher_that_does_not_fit_is_refused_before_any_work(
    home, tmp_path, asked, changed, error, message
):
    for name, task in (("unfinished", "translation"), ("other-task", "language_modelling")):
        if not (home / name).exists():
            Run.create(home / name, {"task": task}, task).close()
    run = Run.open_for_training(home / "other-task")
    run.finish({}, {})
    run.close()
    with pytest.raises(error, match=message):
        train(recipe(home, **changed), tmp_path / "student")
    assert not asked
    assert not (tmp_path / "student").exists()


def test_nothing_is_translated_for_a_folder_that_holds_something_else(home, tmp_path, asked):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RunError, match=r"must be a new or empty folder; it holds notes\.txt"):
        train(recipe(home, distill="teacher"), tmp_path)
    assert not asked


def test_other_tasks_have_no_teacher(tmp_path):
    table = {"task": "language_modelling", "training": {"updates": 1, "distill": "teacher"}}
    with pytest.raises(SettingError, match=r"training\.distill must be left out for language_mod"):
        train(recipe_from_table(table, folder=tmp_path), tmp_path / "student")
