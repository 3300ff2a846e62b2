"""The commands from training to looking, on a small run."""

import json
import re

import numpy as np
import pytest
from tests.end_to_end.pages import ROOT

from regard import __version__
from regard.cli.app import app
from regard.cli.demo import PAGE, SENTENCE, SENTENCES, SMALL_PAGE, TRANSLATOR, TYPING_PAGE
from regard.runs import Run
from regard.text.phrasebook import Phrase
from regard.viewer import Document


def test_training_says_what_it_did_and_where(regard, corpus, run):
    again = regard("train", corpus / "small.toml", "--run", run)
    assert again.code == 0
    assert "going on from update 80" in again.err
    assert "300 pairs" not in again.err  # some were held out
    counted = re.search(r"(\d+) pairs to train on, (\d+) to validate on", again.err)
    assert counted
    train, valid = map(int, counted.groups())
    assert 250 < train < train + valid <= 300
    assert valid >= 25
    assert f"next: regard predict {run}" in again.err
    assert again.out == ""


def test_predicting_is_a_filter(regard, run):
    text = "我爱中国\n\n  \n我爱中国 😀\r\n".encode()
    done = regard("predict", run, stdin=text)
    assert done.code == 0
    first, second, third, fourth = done.out.splitlines()
    assert first
    assert second == third == ""
    assert fourth
    assert regard("predict", run, stdin=b"").out == ""


def test_characters_that_the_model_never_saw_are_named_once(regard, run, tmp_path):
    done = regard("predict", run, stdin="我爱😀\n😀⌘\n我爱中国\n".encode())
    assert (done.code, done.err) == (0, "warning: not in the vocabulary: 😀 ⌘\n")
    assert regard("predict", run, stdin="我爱中国\n".encode()).err == ""
    many = "".join(map(chr, range(0x1F600, 0x1F619)))
    assert regard("predict", run, stdin=many.encode()).err.endswith(" 😓 and 5 more\n")
    looked = regard("look", run, "我爱😀", "--out", tmp_path / "page.html")
    assert looked.err.startswith("warning: not in the vocabulary: 😀\n")


def test_a_file_is_not_looked_into_as_if_its_name_were_the_text(regard, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "zh.txt").write_text("我爱中国\n", encoding="utf-8")
    for options in ((), ("--live",)):
        message = regard.refused("look", run, "zh.txt", *options)
        assert message.endswith(
            "got the name of a file, zh.txt. Look into its lines: --file zh.txt"
        )
    assert not (tmp_path / "attention.html").exists()
    looked = regard("look", run, "--file", "zh.txt")
    assert looked.code == 0
    assert looked.out.startswith("我爱中国 → ")


def test_a_long_line_is_translated_in_parts(regard, run):
    done = regard("predict", run, "--beam-size", 1, stdin=("我" * 240).encode())
    assert done.code == 0
    assert len(done.out.splitlines()) == 1
    assert done.err == (
        "warning: stdin:1: longer than the 24 tokens that the model was trained on; "
        "translated in 10 parts.\n"
    )


def test_many_odd_lines_are_named_and_then_counted(regard, run):
    text = b"\xff\n" * 25
    done = regard("predict", run, "--on-bad-line", "skip", stdin=text)
    assert done.code == 0
    assert done.out == "\n" * 25
    assert done.err.count("not UTF-8") == 10
    assert done.err.endswith("warning: 15 more lines like these.\n")


def test_alternatives_and_links_come_as_text(regard, run):
    several = regard("predict", run, "--n-best", 2, stdin="我\n你\n".encode()).out
    assert [line.split("\t")[0] for line in several.splitlines()] == ["1", "1", "2", "2"]
    linked = regard("predict", run, "--attention", stdin="我爱中国\n".encode()).out
    assert re.fullmatch(r"[^\t]+\t(\d+-\d+ ?)*\n", linked)


def test_evaluation_gives_figures_and_outputs_to_read(regard, run):
    done = regard("evaluate", run, "--beam-size", 1)
    assert done.code == 0
    assert done.out.startswith("30 sentences\n  BLEU ")
    for expected in ("nrefs:1|bs:1000", "chrF2 ", "exact match ", "baseline, the source itself"):
        assert expected in done.out
    assert "baseline, always" in done.out
    assert "sources of length" in done.out
    for kind, count in {"best": 3, "worst": 3, "random": 4}.items():
        assert len(re.findall(rf"^  {kind} #", done.out, re.MULTILINE)) == count


def test_evaluation_comes_as_json(regard, run):
    done = regard("evaluate", run, "--json", "--split", "valid", "--beam-size", 1)
    report = json.loads(done.out)
    assert report["regard"] == __version__
    assert report["count"] == 30
    assert report["scores"][0]["name"] == "BLEU"
    assert len(report["outputs"]) == 10
    assert report["speed"].keys() == {"per_second", "alone_ms", "peak_mib", "threads"}


def test_two_runs_are_compared(regard, run, other_run):
    done = regard("evaluate", run, "--compare", other_run, "--beam-size", 1)
    assert f"{other_run} → {run}" in done.out
    assert re.search(r"chrF2 [\d.]+ → [\d.]+ \(\+[\d.]+, p = 0\.0", done.out)
    assert re.search(r"\d+ sentences better, \d+ worse, \d+ equal", done.out)


def test_other_files_can_be_evaluated_with_several_references(regard, run, tmp_path):
    (tmp_path / "a.zh").write_text("我\n你\n", "utf-8")
    (tmp_path / "a.en").write_text("wrong\nwrong\n", "utf-8")
    right = regard("predict", run, tmp_path / "a.zh").out
    (tmp_path / "b.en").write_text(right, "utf-8")
    files = (tmp_path / "a.zh", tmp_path / "a.en")
    assert "exact match 0.00" in regard("evaluate", run, *files).out
    more = regard("evaluate", run, *files, tmp_path / "b.en")
    assert "exact match 100.00" in more.out


def test_columns_of_other_files_can_be_chosen(regard, run, tmp_path):
    file = tmp_path / "mine.tsv"
    file.write_text("I\t我\tCC-BY\nYou\t你\tCC-BY\n", "utf-8")
    message = regard.refused("evaluate", run, file)
    assert "Say which to read, the source's first: --set 'data.columns=[1,2]'." in message
    chosen = ("--set", "data.columns=[2,1]")
    assert "2 sentences" in regard("evaluate", run, file, *chosen, "--beam-size", 1).out
    assert "--set must be left out without files" in regard.refused("evaluate", run, *chosen)


def test_pairs_the_other_way_round_are_warned_of(regard, run, tmp_path):
    file = tmp_path / "mine.tsv"
    file.write_text("I am in the shop\t我在商店\nYou are the teacher\t你是老师\n", "utf-8")
    done = regard("evaluate", run, file, "--beam-size", 1)
    assert "warning: the pairs look exchanged; the run translates zh to en. Name the" in done.err
    chosen = ("--set", "data.columns=[2,1]")
    assert "exchanged" not in regard("evaluate", run, file, *chosen, "--beam-size", 1).err


def test_looking_draws_writes_and_opens_a_page(regard, run, tmp_path, monkeypatch):
    page, opened = tmp_path / "page.html", []
    monkeypatch.setattr("webbrowser.open", opened.append)
    done = regard("look", run, "我爱中国", "--output", page, "--open")
    assert opened == [page.as_uri()]
    assert done.code == 0
    heads = done.out.splitlines()[2].split()
    assert heads == ["我", "爱", "中", "国"]
    assert "left on the end of the source" in done.out
    assert f"wrote {page}" in done.err
    text = page.read_text("utf-8")
    assert "<!doctype html>" in text.lower()
    assert "我爱中国" in text
    forced = regard("look", run, "我爱中国", "--target", "I love China.", "--output", page)
    assert forced.out.startswith("我爱中国 → I love China.\n")


def test_a_corpus_is_checked(regard, corpus):
    done = regard("data", "check", corpus / "train.tsv", "--test", corpus / "train.tsv")
    assert done.code == 1
    assert "pairs: train: 300; test: 300" in done.out
    assert re.search(r"^! .*whose source occurs in training", done.out, re.MULTILINE)
    report = json.loads(regard("data", "check", corpus / "small.toml", "--json").out)
    assert report["counts"] == {"train": 300, "test": 30}


def test_a_recipe_that_comes_with_regard_is_checked_by_its_name(
    regard, little_phrasebook, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo").mkdir()  # a folder, such as a run's, is not meant
    report = json.loads(regard("data", "check", "demo", "--json").out)
    assert report["counts"]["train"] == 2 * 300  # the phrasebook and everyday sentences
    assert report["sides"]["source"]["unit"] == "characters"


def test_a_file_goes_over_a_recipe_of_its_name(regard, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo").write_text("我\n", "utf-8")
    assert "demo must be for one job; it may be for 2" in regard.refused("data", "check", "demo")


def phrase(source, target):
    """A pair whose words are linked one after the other."""
    ends = [i for i, char in enumerate(target) if char == " "]
    words = tuple(zip([0, *(end + 1 for end in ends)], [*ends, len(target)], strict=True))
    links = frozenset((i, i) for i in range(min(len(source), len(words))))
    characters = tuple((i, i + 1) for i in range(len(source)))
    return Phrase(source, target, characters, words, links, links, (), (target,))


@pytest.fixture
def little_phrasebook(monkeypatch, corpus):
    """The demo on a part of the phrasebook, with a small model."""
    names = {"train": "train.tsv", "valid": "test.tsv", "test": "test.tsv", "new": "test.tsv"}
    names["everyday"] = "train.tsv"

    def read_split(split):
        lines = (corpus / names[split]).read_text("utf-8").splitlines()
        phrases = [phrase(*line.split("\t")) for line in lines]
        return [phrase("我爱中国", "I love China."), *phrases] if split == "test" else phrases

    recipe = corpus / "demo.toml"
    settings = (corpus / "small.toml").read_text("utf-8")
    settings = settings.replace('"train.tsv"', '"phrasebook"').replace('test = "test.tsv"', "")
    recipe.write_text(settings.replace("updates = 80", "updates = 40"), "utf-8")
    monkeypatch.setattr("regard.text.phrasebook.phrases", read_split)
    monkeypatch.setattr("regard.cli.demo.training.packaged_recipe", lambda name: recipe)
    monkeypatch.setattr("regard.cli.demo.training._COMPILE", "")


@pytest.mark.usefixtures("little_phrasebook")
def test_the_demo_trains_measures_and_writes_its_page(regard, tmp_path):
    done = regard("demo", "--train", "--run", tmp_path / "demo")
    assert done.code == 0, done
    assert done.out.startswith(f"{SENTENCE} → ")
    assert done.out.splitlines()[2].split() == ["我", "爱", "中", "国"]
    assert re.search(r"exact match on 31 test sentences: [\d.]+ %", done.out)
    assert re.search(r"exact match on 30 sentences with new combinations: [\d.]+ %", done.out)
    assert re.search(r"exact match on 40 sentences that the authors wrote: [\d.]+ %", done.out)
    assert "within the phrasebook's grammar" in done.out
    assert done.out.partition("outside its grammar:\n")[2].count("\n    right: ") == 3
    assert re.search(r"takes about \d+ s on this machine: \d+ s of training", done.err)
    assert re.search(r"alignment error 0\.\d+ over output words that have a link", done.out)
    page = tmp_path / "demo" / PAGE
    assert f"13 sentences: {page}" in done.out
    assert '"sure":[[0,0],' in page.read_text("utf-8") or '"gold":null' in page.read_text("utf-8")
    data = re.search(r'id="regard-data"[^>]*>(.*?)</script>', page.read_text("utf-8"))[1]
    for example in Document.from_json(data).examples:  # views of `regard look`
        assert example.search is not None
        assert {each.method for each in example.importances} >= {"attention", "gradient × input"}
        assert len(example.surprise) == len(example.output_tokens)
    assert f"for sentences of yours: {tmp_path / 'demo' / TYPING_PAGE}" in done.out
    assert 'id="regard-model"' in (tmp_path / "demo" / TYPING_PAGE).read_text("utf-8")
    again = regard("demo", "--train", "--run", tmp_path / "demo")
    assert f"using the translator in {tmp_path / 'demo'}" in again.err
    assert again.out == done.out


@pytest.mark.slow
def test_the_small_demo_trains_with_attention_and_without(regard, tmp_path, monkeypatch):
    monkeypatch.setattr("regard.cli.demo.small._UPDATES", 100)
    done = regard("demo", "--small", "--run", tmp_path / "small")
    assert done.code == 0, done
    scores = dict(re.findall(r"^(with\w*) attention: BLEU ([\d.]+) on 100", done.out, re.MULTILINE))
    assert min(map(float, scores.values())) > 40
    assert len(re.findall(r"^  .* → .*  \(BLEU \d+", done.out, re.MULTILINE)) == 8
    train, test = (
        (tmp_path / "small" / name).read_text("utf-8").splitlines()
        for name in ("train.tsv", "test.tsv")
    )
    assert (len(train), len(test)) == (600, 100)
    assert not {*train} & {*test}
    page = (tmp_path / "small" / SMALL_PAGE).read_text("utf-8")
    assert page.count("<polyline") == 2
    assert page.count('<td style="--w:') > 50
    again = regard("demo", "--small", "--run", tmp_path / "small")
    assert again.out == done.out


def test_the_demo_trains_or_compares_and_not_both(regard):
    assert "--train and --small" in regard.refused("demo", "--train", "--small")


def test_the_demo_translates_at_once_and_writes_its_pages(regard, tmp_path):
    done = regard("demo", "--run", tmp_path / "demo")
    assert done.code == 0, done
    assert done.out.startswith(f"{SENTENCE} → I love China.\n")
    assert all(f"  {sentence} → " in done.out for sentence in SENTENCES)
    page = (tmp_path / "demo" / PAGE).read_text("utf-8")
    data = re.search(r'id="regard-data"[^>]*>(.*?)</script>', page)[1]
    assert len(Document.from_json(data).examples) == 1 + len(SENTENCES)
    assert 'id="regard-model"' in (tmp_path / "demo" / TYPING_PAGE).read_text("utf-8")
    assert "regard demo --train" in done.out


def test_the_name_of_the_translator_that_comes_along_is_a_run(regard, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert regard("predict", TRANSLATOR, stdin="我爱中国\n".encode()).out == "I love China.\n"
    assert "translation" in regard("info", TRANSLATOR).out


def test_course_and_readme_show_what_the_translator_looks_at(regard, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    as_data = ("--attention", "--output-format", "jsonl")
    printed = json.loads(regard("predict", TRANSLATOR, *as_data, stdin=SENTENCE.encode()).out)
    shown = json.loads((ROOT / "docs/figures/course/demo.jsonl").read_text("utf-8"))
    assert printed["links"] == shown["links"]
    assert np.array(printed["attention"]) == pytest.approx(np.array(shown["attention"]), abs=2e-3)


def test_a_run_in_one_file_does_what_its_folder_does(regard, run, tmp_path):
    bundle = tmp_path / "zhen.regard"
    exported = regard("export", run, bundle)
    assert (exported.code, exported.out, exported.err) == (0, "", f"wrote {bundle}\n")
    lines = "我爱中国\n他爱你\n".encode()
    assert regard("predict", bundle, stdin=lines).out == regard("predict", run, stdin=lines).out
    (test,) = Run.open(run).recipe["data"]["test"]
    assert regard("evaluate", bundle, test, "--json").code == 0
    assert "test.tsv must exist" in regard("evaluate", bundle).err
    for path, page in ((run, "run.html"), (bundle, "bundle.html")):
        assert regard("look", path, "我爱中国", "--out", tmp_path / page).code == 0
    assert (tmp_path / "run.html").read_bytes() == (tmp_path / "bundle.html").read_bytes()


def test_the_version_is_printed(regard):
    assert regard("--version").out.strip() == __version__


@pytest.mark.parametrize("command", [name for name in app if not name.startswith("-")])
def test_help_teaches_by_an_example_and_fits_a_page(regard, command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    helped = regard(command, "--help")
    assert helped.code == 0
    assert len(helped.out.splitlines()) <= 60
    if command not in ("data", "recipes"):  # whose commands have examples
        assert f"Example: regard {command}" in helped.out or "| regard" in helped.out


def test_settings_are_listed_with_their_defaults_and_meanings(regard):
    out = regard("settings").out
    for title in ("[data]", "[tokenizer]", '[model] with type = "transformer"', "[training]"):
        assert title in out
    assert "  num_heads = 8  Attention heads per layer, H; divides model_dim.\n" in out
    assert "  patience = none  Validations without improvement before training stops" in out
    assert all(len(line.split()) > 4 for line in out.splitlines() if line.startswith("  ")), out
    assert "[training]" not in regard("settings", "model").out
    message = regard.refused("settings", "modle")
    assert "what to list must be one of" in message
    assert "  document = 1  Column of the document in a table: its number from 1, or its" in out
    of_task = regard("settings", "generation").out
    assert "[data]\n" in of_task
    assert "[head]" not in of_task
    assert "Did you mean 'model'?" in message
