"""A run exported to CTranslate2: the page's script, without regard, translates as we do."""

import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import ctranslate2
import pytest

from regard.export import export_run
from regard.inference import Predictor
from regard.text.phrasebook import phrases

pytestmark = pytest.mark.slow

EXPORTING = Path(__file__).parents[2] / "docs" / "exporting.md"
RECIPE = """
task = "translation"
[data]
train = "train.tsv"
source_language = "zh"
target_language = "en"
[tokenizer]
vocab_size = 1400
[model]
type = "transformer"
model_dim = 48
ffn_dim = 96
num_heads = 4
num_encoder_layers = 2
num_decoder_layers = 2
norm = "pre"
dropout = 0.0
[training]
updates = 200
batch_tokens = 1024
learning_rate = 0.008
warmup = 20
schedule = "linear"
validate_every = 200
precision = "float32"
"""


@pytest.fixture(scope="module")
def sources() -> list[str]:
    return [phrase.source for phrase in random.Random(1).sample(phrases("test"), 60)]


@pytest.fixture(scope="module")
def translator(regard, tmp_path_factory) -> Path:
    """A run of a Transformer that has learned something of the phrasebook."""
    folder = tmp_path_factory.mktemp("translator")
    drawn = random.Random(0).sample(phrases("train"), 2000)
    lines = [f"{phrase.source}\t{phrase.target}\n" for phrase in drawn]
    (folder / "train.tsv").write_text("".join(lines), "utf-8")
    (folder / "small.toml").write_text(RECIPE, "utf-8")
    trained = regard("train", folder / "small.toml", "--run", folder / "run")
    assert trained.code == 0, trained
    return folder / "run"


@pytest.fixture(scope="module")
def exported(translator, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("exported") / "ct2"
    export_run(translator, "ctranslate2", out)
    return out


def python_of(section: str) -> Iterator[str]:
    text = EXPORTING.read_text("utf-8").split(f"## {section}\n")[1].split("\n## ")[0]
    return (found[1] for found in re.finditer(r"```python\n(.*?)```", text, re.DOTALL))


def test_the_script_of_the_page_translates_as_we_do(translator, exported, sources, tmp_path):
    script = tmp_path / "translate.py"
    (code,) = python_of("CTranslate2")
    script.write_text(f"{code}\nassert 'regard' not in sys.modules\n", "utf-8")
    done = subprocess.run(
        [sys.executable, "-P", script, exported],
        input="\n".join(sources),
        capture_output=True,
        encoding="utf-8",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    best = [found[0] for found in Predictor.load(translator).translate(sources)]
    alike = [
        (ours.text, theirs)
        for ours, theirs in zip(best, done.stdout.splitlines(), strict=True)
        if ours.is_finished  # CTranslate2 goes on for longer
    ]
    assert len(set(alike)) > len(sources) / 2
    for ours, theirs in alike:
        assert ours == theirs


@pytest.mark.parametrize("width", [1, 5])
def test_ctranslate2_gives_the_scores_that_we_give(translator, exported, sources, width):
    predictor = Predictor.load(translator)
    names, encode = predictor.tokenizer.source.names, predictor.tokenizer.source.encode
    found = ctranslate2.Translator(str(exported), intra_threads=1).translate_batch(
        [[names[each] for each in encode(source)] for source in sources],
        beam_size=width,
        num_hypotheses=width,
        min_decoding_length=0,
        length_penalty=1e-9,
        return_scores=True,
    )
    best = [each[0] for each in predictor.translate(sources, beam_size=width)]
    assert sum(each.is_finished for each in best) > len(sources) / 2
    for ours, theirs in zip(best, found, strict=True):
        if not ours.is_finished:
            continue
        scores = [
            score / ((6 + len(tokens)) / 6) ** 0.6
            for tokens, score in zip(theirs.hypotheses, theirs.scores, strict=True)
        ]
        assert ours.score == pytest.approx(max(scores), abs=1e-4)
        assert [names[each] for each in ours.tokens] == theirs.hypotheses[scores.index(max(scores))]


def test_the_command_writes_smaller_weights_and_refuses_what_it_cannot_hold(
    regard, translator, exported, run, tmp_path
):
    out = tmp_path / "int8"
    done = regard("export", translator, out, "--to", "ctranslate2", "--precision", "int8")
    assert (done.code, done.out, done.err) == (0, "", f"wrote {out}\n")
    assert ctranslate2.Translator(str(out), intra_threads=1).compute_type == "int8_float32"
    small, large = ((each / "model.bin").stat().st_size for each in (out, exported))
    assert small < large / 2
    other = tmp_path / "other"
    said = regard.refused("export", run, other, "--to", "ctranslate2")
    assert "and it is 'rnn_seq2seq' of translation; train it with --set model.type=" in said
    assert "Forms that hold it: --to bundle" in said
    said = regard.refused("export", run, other, "--to", "bundle", "--precision", "int8")
    assert "precision must be left out for bundle" in said
    assert not other.exists()
