import re
import shlex
import shutil
import tomllib

import pytest
import torch
from tests.end_to_end.conftest import RECIPE
from tests.end_to_end.pages import ROOT, blocks, commands, save_gpt2, save_photos
from tests.unit.interop.tiny_folders import save_bert, save_vision

from regard.config import write_toml
from regard.viewer import Document

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "looking.md"
# A page that is served has its test beside other processes; nothing is downloaded here.
ELSEWHERE = ("--serve", "--allow-download")
COMMANDS = [line for line in commands(PAGE) if not any(word in line for word in ELSEWHERE)]
pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def home(run, other_run, tmp_path_factory):
    """A folder with the runs, the models and the files that the page names."""
    home = tmp_path_factory.mktemp("looking")
    torch.manual_seed(0)
    shutil.copytree(run, home / "tatoeba-zh-en")
    shutil.copytree(other_run, home / "runs" / "other")
    for seed in (1, 2, 3):
        shutil.copytree(run, home / "runs" / f"seed-{seed}")
    for name in ("lines.txt", "corpus.txt"):
        (home / name).write_text("我爱中国\n\n他爱你\n", "utf-8")
    (home / "article.txt").write_text("我爱中国。\n他昨天去北京了。\n", "utf-8")
    (home / "other.txt").write_text("我爱你。\n", "utf-8")
    save_bert(home / "bert", "BertForMaskedLM", max_position_embeddings=20)
    save_gpt2(home / "gpt2", "the animal that says meow is a cat dog")
    save_bert(home / "other-bert", "BertForMaskedLM", hidden_size=24)
    save_vision(home / "vit", "ViTForImageClassification")
    save_photos(home / "photos")
    shutil.copy(home / "photos" / "cat" / "1.png", home / "cat.png")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        yield home


@pytest.mark.parametrize("line", COMMANDS)
def test_its_commands_work(line, regard, home, corpus):
    words = shlex.split(line)
    assert words.pop(0) == "regard"
    if "tatoeba-zh-en" in words and "--layers" in words:
        words[words.index("--layers") + 1] = "0"  # the small run has one layer
    if "--sharpest" in words:
        words[words.index("--sharpest") + 1] = "0.0"  # the small models have few
    if "tatoeba-zh-en" in words and "--neurons" in words:
        model = {"type": "transformer", "model_dim": 16, "num_heads": 2, "ffn_dim": 24}
        table = tomllib.loads(RECIPE.format(updates=2)) | {"model": model}
        (corpus / "transformer.toml").write_text(write_toml(table), "utf-8")
        done = regard("train", corpus / "transformer.toml", "--run", "runs/transformer")
        assert done.code == 0, done
        words[words.index("tatoeba-zh-en")] = "runs/transformer"
        words[words.index("--neurons") + 1] = "0.1"
    if "runs/tagger" in words:
        text = "John B-PER\nlives O\nin O\nParis B-LOC\n\n" * 20
        (home / "tags.conll").write_text(text, "utf-8")
        short = ("--set", "training.updates=2", "--set", "training.epochs=none")
        done = regard("train", "tagging-words", "tags.conll", "--run", "runs/tagger", *short)
        assert done.code == 0, done
    if "runs/digits" in words:
        pytest.importorskip("sklearn")
        short = ("--set", "training.updates=2", "--set", "training.epochs=none")
        done = regard("train", "vision-transformer", "--run", "runs/digits", *short)
        assert done.code == 0, done
        if words[0] == "train":
            return
    done = regard(*words)
    assert done.code == 0, done
    page = home / (words[words.index("--out") + 1] if "--out" in words else "attention.html")
    assert "<!doctype html>" in page.read_text("utf-8").lower()
    page.unlink()
    assert done.out


def test_it_shows_every_way_in():
    assert len(blocks(PAGE, "python")) >= 3
    assert len(COMMANDS) >= 6


def document_of(file):
    (text,) = re.findall(
        r'id="regard-data"[^>]*>(.*?)</script>', file.read_text("utf-8"), re.DOTALL
    )
    return Document.from_json(text)


@pytest.mark.parametrize(
    ("words", "labels"),
    [
        ("--model bert --model other-bert 我爱中国", ["bert", "other-bert"]),
        ("bert other-bert 我爱中国", ["bert", "other-bert"]),
        ("tatoeba-zh-en runs/other 我爱中国", ["tatoeba-zh-en", "other"]),
        ("tatoeba-zh-en --model bert 我爱中国", ["tatoeba-zh-en", "bert"]),
        ("--model runs/other --model tatoeba-zh-en 我爱中国", ["other", "tatoeba-zh-en"]),
        ("tatoeba-zh-en 我爱中国 他爱你", [None, None]),
        ("bert 我爱中国 他爱你", [None, None]),
    ],
)
def test_two_models_or_texts_open_beside_each_other(words, labels, regard, home):
    done = regard("look", *shlex.split(words), "--out", "two.html")
    assert done.code == 0, done
    document = document_of(home / "two.html")
    assert document.tab == "compare"
    assert [example.label for example in document.examples] == labels
    assert all(f"{label}:" in done.out for label in labels if label)
    if labels[0] is not None:
        assert document.title == "我爱中国"


def test_one_text_of_one_model_opens_as_before(regard, home):
    assert regard("look", "tatoeba-zh-en", "我爱中国", "--out", "one.html").code == 0
    assert document_of(home / "one.html").tab is None


def test_each_line_of_a_file_is_an_example(regard, home):
    done = regard("look", "tatoeba-zh-en", "我", "--file", "lines.txt", "--out", "a.html")
    assert [line.split(" → ")[0] for line in done.out.splitlines() if " → " in line] == [
        "我",
        "我爱中国",
        "他爱你",
    ]


def test_a_long_text_is_shown_in_the_parts_it_is_translated_in(regard, home):
    done = regard("look", "tatoeba-zh-en", "我爱中国。" * 6, "--out", "a.html")
    assert done.out.count(" → ") > 1
    in_one_part = regard("look", "tatoeba-zh-en", "我爱中国。" * 20, "--target", "I love China.")
    assert in_one_part.out.count(" → ") == 1
    assert "cross 0" in in_one_part.out


def test_a_folder_s_layers_are_a_table(regard, home):
    done = regard("look", "--model", "bert", "article.txt", "other.txt", "--heads", "1")
    table = [line.split()[:3] for line in done.out.splitlines() if line.startswith("encoder")]
    assert table == [["encoder", "0", "1"], ["encoder", "1", "1"]] * 2
    assert "looked at most" in done.out


def test_a_text_for_a_folder_is_written_named_or_piped(regard, home):
    (home / "text.txt").write_text("我爱中国", "utf-8")
    commands = [("--model", "bert", "我爱中国"), ("bert", "我爱中国"), ("bert", "text.txt")]
    expected, *others = [regard("look", *words).out for words in commands]
    assert expected.startswith("我爱中国")
    assert others == [expected, expected]
    assert regard("look", "bert", stdin="我爱中国\n".encode()).out == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "RUN must be given, or --model; got neither"),
        ("tatoeba-zh-en", "text must be given to look into a run; got none in the command"),
        ("tatoeba-zh-en 我 --layers x", "--layers must be numbers from 0 and ranges of them"),
        ("--live", "RUN must be given with --live; got none"),
        ("tatoeba-zh-en 我 --live --serve", "--serve must be left out with --live"),
        ("tatoeba-zh-en 我 --live --beam-size 0", "must be at least 1; got 0"),
        ("bert --live", "bert must be a run folder"),
        ("gpt3 我", "hub: --model gpt3 --allow-download"),
        ("tatoeba-zh-en 我 --truncate", "--truncate must go with --model; got it without"),
        ("--model bert", "text must be given to look into a model; got none"),
        ("--model bert empty.txt", "empty.txt must hold text to look at; got an empty file"),
        ("--model bert none.txt", "none.txt must exist"),
        ("--model bert article.txt --beam-size 2", "--beam-size must go with a run"),
        ("bert bert 我", "models must be two different ones to compare; got bert twice"),
        ("bert other-bert tatoeba-zh-en 我", "models must be one, two to compare, or runs of one"),
        ("bert other-bert 我 --serve", "--serve must be left out with two models"),
    ],
)
def test_what_cannot_be_looked_into_is_named(words, message, regard, home):
    (home / "empty.txt").write_bytes(b" \n")
    assert message in regard.refused("look", *shlex.split(words))


def test_of_three_runs_the_mean_and_the_spread_are_drawn(regard, home):
    runs = [f"runs/seed-{seed}" for seed in (1, 2, 3)]
    done = regard("look", *runs, "我爱中国", "他爱你", "--out", "spread.html")
    assert done.code == 0, done
    assert done.out.count("mean and standard deviation of 3 runs") == 2
    assert "in 3 of 3 runs" in done.out
    made = (home / "spread.html").read_text("utf-8")
    assert made.count("<table>") == 2
    assert "<script" not in made
    message = regard.refused("look", *runs, "我", "--layers", "0")
    assert "--layers must be left out with three runs or more" in message


def test_a_long_text_is_cut_with_truncate(regard, home):
    (home / "long.txt").write_text("我爱中国" * 9, "utf-8")
    done = regard("look", "--model", "bert", "long.txt", "--truncate")
    assert done.out.splitlines()[0] == ("我爱中国" * 9)[:18]


def test_the_layers_of_links_can_be_chosen(regard, home):
    lines = "我爱中国\n".encode()
    run = "tatoeba-zh-en"
    every = regard("predict", run, "--attention", stdin=lines).out
    assert regard("predict", run, "--attention", "--layers", "0", stdin=lines).out == every
    refused = regard.refused("predict", run, "--attention", "--layers", "1", stdin=lines)
    assert "must attend to the source to be looked at; this one does not in layers 1." in refused
    refused = regard.refused("predict", run, "--layers", "0", stdin=lines)
    assert "--layers must go with --attention; got it without" in refused
