from dataclasses import replace

import pytest

from regard.errors import RunError
from regard.tasks import read_recipe
from regard.training.recipes.beginning import pretrained_hint, pretrained_recipe
from regard.training.recipes.packaged import packaged_recipe, packaged_recipes
from regard.training.recipes.previewing import infer_tasks
from regard.training.recipes.resolving import pretrained_settings, resolve

LABELS = "text,label\n" + "".join(
    f"the room was very nice {n},good\nit was bad {n},bad\n" for n in range(9)
)
LINES = "the cat sat on the mat .\nthe dog ran .\n" * 20
PAIRS = "".join(f"the cat sat here {n} .\t我有{n}只猫。\n" for n in range(20))


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with files, and configs of a BERT and of a GPT-2."""
    folder = tmp_path_factory.mktemp("beginning")
    for name, text in (("labels.csv", LABELS), ("lines.txt", LINES), ("pairs.tsv", PAIRS)):
        (folder / name).write_text(text, encoding="utf-8")
    for name in ("bert", "gpt2"):
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(f'{{"model_type": "{name}"}}')
    return folder


def tasks_of(home, file, name):
    return infer_tasks([str(home / file)], pretrained_settings(str(home / name)))


def test_a_file_is_learned_from_by_the_jobs_recipe_for_a_checkpoint(home):
    task = tasks_of(home, "labels.csv", "bert").best
    assert task.recipe == "classification-pretrained"
    assert task.command(["labels.csv"]) == "regard train classification-pretrained labels.csv"
    settings = pretrained_settings(str(home / "bert"))
    recipe = resolve(None, [str(home / "labels.csv")], settings, task=task)
    assert recipe.training["pretrained"] == str(home / "bert")


def test_running_text_goes_on_as_the_checkpoint_learned(home):
    for name, task in (("bert", "masked_language_modelling"), ("gpt2", "language_modelling")):
        tasks = tasks_of(home, "lines.txt", name)
        assert tasks.is_sure
        assert [read_recipe(packaged_recipe(each.recipe)).task for each in tasks.candidates] == [
            task
        ]


def test_a_recipe_that_learns_all_itself_gives_way(home):
    said = []
    settings = pretrained_settings("hf:me/bert")
    recipe = resolve("tagging-entities", [], settings, report=said.append)
    assert (recipe.name, recipe.training["pretrained"]) == ("tagging-pretrained", "hf:me/bert")
    assert said == [
        "tagging-pretrained is the recipe of tagging-entities's job for a pretrained model"
    ]
    assert resolve("classification-aspect", [], settings).head.pooling == "aspect"
    # A recipe of one's own is as it is.
    table = {"task": "tagging", "model": {"type": "transformer"}}
    assert resolve(table, [], settings).training["pretrained"] == "hf:me/bert"


def test_a_wrong_name_is_an_error_before_the_file_is_asked_about(home):
    with pytest.raises(
        RunError, match=r"got '.*/bret', no such folder. Of the Hugging Face Hub: --pre"
    ):
        tasks_of(home, "labels.csv", "bret")
    with pytest.raises(
        RunError, match=r"got '.*/beginning0', a folder without run.json, and without"
    ):
        tasks_of(home, "labels.csv", ".")
    with pytest.raises(RunError, match=r"got '.*/labels.csv', a file"):
        tasks_of(home, "labels.csv", "labels.csv")


def test_a_small_file_has_a_hint_at_what_has_read(home, monkeypatch):
    file = str(home / "labels.csv")
    task = infer_tasks([file], {}).best
    hint = pretrained_hint(task, [file])
    assert hint.endswith("--pretrained hf:sentence-transformers/all-MiniLM-L6-v2, or a folder")
    in_chinese = replace(task, examples=({"text": "房间很干净", "label": "好"},))
    assert "--pretrained hf:google-bert/bert-base-chinese," in pretrained_hint(in_chinese, [file])
    assert pretrained_hint(tasks_of(home, "labels.csv", "bert").best, [file]) is None
    pairs = infer_tasks([str(home / "pairs.tsv")], {}).best
    assert pretrained_hint(pairs, [str(home / "pairs.tsv")]) is None
    monkeypatch.setattr("regard.training.recipes.beginning._SMALL", 100)
    assert pretrained_hint(task, [file]) is None


@pytest.mark.parametrize("name", packaged_recipes())
def test_what_a_recipe_gives_way_to_does_its_job(name):
    recipe = read_recipe(packaged_recipe(name))
    begun = pretrained_recipe(name)
    if begun is None:
        assert recipe.task in {"translation", "image_classification", "regression"}
        return
    # The sentences of a text are answers to choose from.
    task = {"sentence_selection": "multiple_choice"}.get(recipe.task, recipe.task)
    assert read_recipe(packaged_recipe(begun[0]), begun[1]).task == task
