import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.cli import run_command
from regard.cli.jobs import parse_arguments
from regard.cli.recipes import packaged_recipe, packaged_recipes
from regard.config import build
from regard.errors import SettingError
from regard.tasks import TASKS, read_recipe
from regard.tasks.labels.classification import LabelledText
from regard.tasks.questions.multiple_choice import Choices
from regard.tasks.questions.pair_matching import LabelledPair
from regard.tasks.running_text.language_modelling import Passage
from regard.tasks.sequences.generation import DocumentExample
from regard.tasks.sequences.translation import TranslationTask
from regard.text import train_pair_tokenizer
from regard.text.reading.pictures import Picture
from regard.text.reading.points import Point
from regard.text.reading.questions import Answer, Question
from regard.text.reading.tagged import TaggedWords
from regard.text.tokenizers.tokenizer import TokenizerConfig
from regard.training import TrainingConfig
from regard.training.recipes.resolving import default_run

# Enough text for the vocabularies of each job.
JOB_EXAMPLES = {
    "classification": [LabelledText("ab", "1", "x", "a:1"), LabelledText("c", "0", "y", "a:2")],
    "language_modelling": [Passage(("ab", "c"), "a:1")],
    "masked_language_modelling": [Passage(("ab", "c"), "a:1")],
    "multiple_choice": [Choices("ab", "c d", ("c", "d"), 0, "a:1")],
    "pair_matching": [LabelledPair("ab", "c", label, "a:1") for label in ("match", "other")],
    "image_classification": [
        Picture(np.full((8, 8, 1), value, dtype=np.float32), label, "a:1")
        for value, label in ((0, "dark"), (1, "light"))
    ],
    "question_answering": [Question("ab", "c d", (Answer("c", 0),))],
    "regression": [Point((x,), x, ("x",), "a:1") for x in (0.0, 1.0, 2.0)],
    "sentence_extraction": [DocumentExample("ab. c.", "", ("c.",), "a:1")],
    "sentence_selection": [Question("ab", "c. d.", (Answer("c", 0),))],
    "tagging": [TaggedWords(("ab", "c"), ("O", "B-X"), "a:1")],
}


@pytest.mark.parametrize("name", packaged_recipes())
def test_every_recipe_builds_its_model_and_can_end(name):
    recipe = read_recipe(packaged_recipe(name))
    build(TrainingConfig, recipe.training, where="training")
    job = TASKS[recipe.task].task
    if not TASKS[recipe.task].is_written:
        examples = JOB_EXAMPLES[recipe.task]
        if recipe.tokenizer is not None:  # no vocabulary of a real size can be learned from these
            recipe = replace(recipe, tokenizer=TokenizerConfig(type="characters"))
        assert job.learn(recipe, examples).build_model()
        return
    settings = TokenizerConfig(type="characters", shared=recipe.tokenizer.shared)
    task = TranslationTask(recipe, train_pair_tokenizer(["ab"], ["cd"], settings))
    model, lengths = task.build_model().eval(), torch.tensor([5, 2])
    source, target = torch.randint(4, 6, (2, 5)), torch.randint(4, 6, (2, 3))
    logits = model.project(model(source, lengths, target)[0])
    assert logits.shape[:2] == target.shape
    assert logits.isfinite().all()


def test_every_recipe_says_what_it_is_for():
    assert {"demo", "rnn-attention", "transformer-base"} <= set(packaged_recipes())
    assert all(purpose.endswith(".") for purpose in packaged_recipes().values())
    assert packaged_recipes()["demo"].startswith("Chinese to English")


@pytest.mark.parametrize("name", [name for name in packaged_recipes() if name.startswith("rnn-")])
def test_recurrences_train_on_the_phrasebook_cut_into_characters_and_words(name):
    recipe = read_recipe(packaged_recipe(name))
    assert recipe.uses_phrasebook
    assert not recipe.data.source_end
    assert recipe.tokenizer.type == "words"
    assert recipe.model.output_bias
    # Luong's states, and the fixed vector, are of both directions.
    carried = {"luong": "both"}.get(recipe.model.decoder, "backward")
    assert recipe.model.beginning == ("both" if recipe.model.attention == "none" else carried)


def test_an_unknown_name_is_met_with_the_nearest():
    with pytest.raises(SettingError, match=r"'dmo' must be a recipe or .*Did you mean 'demo'\?"):
        parse_arguments(["dmo"]).resolve({})
    with pytest.raises(SettingError, match="must be a recipe or files of text; got nothing"):
        parse_arguments([]).resolve({})
    with pytest.raises(SettingError, match="demo comes with regard: leave out the ending"):
        parse_arguments(["demo.toml"]).resolve({})


def test_files_after_a_recipe_are_what_it_trains_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recipe = parse_arguments(["rnn-attention", "a.zh", "a.en"]).resolve({"model.cell": "lstm"})
    assert recipe.files("train") == [tmp_path / "a.zh", tmp_path / "a.en"]
    assert recipe.model.cell == "lstm"


def test_paths_set_for_a_packaged_recipe_start_here():
    recipe = parse_arguments(["rnn-attention"]).resolve({"data.train": "here.tsv"})
    assert recipe.files("train") == [Path("here.tsv")]


@pytest.mark.parametrize(
    ("source", "folder"),
    [("demo", "runs/demo"), ("a/b.tsv.gz", "runs/b"), ("x.zh", "runs/x"), ("a/b/*", "runs/b")],
)
def test_a_run_is_named_after_what_it_trains(source, folder):
    assert default_run(source) == Path(folder)


@pytest.mark.parametrize(
    ("page", "claim"), [("translation.md", "lists them all"), ("translation.zh.md", "列出全部配方")]
)
def test_the_command_that_a_page_names_lists_all_recipes(page, claim, capsys):
    text = (Path(__file__).parents[3] / "docs" / "how-to" / page).read_text("utf-8")
    named = re.search(rf"`regard ([^`]+)` {claim}", text)
    assert named
    assert run_command(named[1].split()) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in packaged_recipes())


@pytest.mark.parametrize(("is_old", "loses"), [(True, False), (False, True), (True, True)])
def test_a_figure_that_is_old_or_no_better_is_marked(is_old, loses, tmp_path, monkeypatch, capsys):
    figure = {"figure": "F1 21.7", "beside": "simple 30", "minutes": None}
    figures = {"tagging-words": {**figure, "old": is_old, "loses": loses}}
    (tmp_path / "figures.json").write_text(json.dumps(figures), "utf-8")
    monkeypatch.setattr("regard.cli.recipes._FIGURES", tmp_path / "figures.json")
    run_command(["recipes", "tagging-words"])
    marks = " ▼" * loses + " †" * is_old
    assert f"F1 21.7{marks} (simple 30)" in " ".join(capsys.readouterr().out.split())
