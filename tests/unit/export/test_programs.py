"""Programs of exports' READMEs and of the page run as they stand, and answer as regard does."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.export.random_runs import (
    classifier,
    language_model,
    masked_model,
    tagger,
    translator,
)

from regard.export import FORMS, export_run
from regard.export.form import reading
from regard.text import TokenizerConfig, train_pair_tokenizer

pytestmark = pytest.mark.usefixtures("as_users_have_it")

TOKENIZERS = {
    "words": {"type": "words", "shared": False},
    "characters": {"type": "characters", "shared": True},
    "bpe": {"type": "bpe", "may_shrink": True, "shared": True},
}
LINES = [
    "我爱中国。",
    "Does  it rain?  I love 中国, aren't we?",
    "3个人在那里。",
    "learner’s １２ 12 e\u0301t\u00e9 (unknownword)",
]
ALONE = 'import sys\nsys.modules["regard"] = sys.modules["torch"] = None\n'


def run_readme(folder, lines=(), *, before=ALONE):
    (code,) = re.findall(r"```python\n(.+?)```", (folder / "README.md").read_text("utf-8"), re.S)
    return run_code(before + code, folder, lines)


def run_code(code, folder, lines):
    done = subprocess.run(
        [sys.executable, "-c", code, folder],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        encoding="utf-8",
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_texts_are_cut_as_by_regard(kind, tmp_path):
    settings = TokenizerConfig(**TOKENIZERS[kind])
    pair = train_pair_tokenizer([*LINES, "learner rains"], LINES[:2], settings)
    pair.save(tmp_path / "tokenizer")
    side = "shared" if pair.is_shared else "source"
    code = f"{reading(pair.source)}\nencode, decode = reader({side!r})\n"
    code += "for line in sys.stdin:\n    print(*encode(line), decode(encode(line)))\n"
    (tmp_path / "README.md").write_text(f"```python\n{code}```", "utf-8")
    lines = [*LINES, "(rain) rains learners", " 爱 rain "]
    for line, printed in zip(lines, run_readme(tmp_path, lines), strict=True):
        ids = pair.source.encode(line)
        known = [each for each in ids if each > 3]
        assert printed == " ".join([*map(str, ids), pair.source.decode(known)]), line


def greedy_translator(path, kind, **model):
    decoding = {"method": "greedy", "max_ratio": 2.0}
    options = {"data": {"max_length": 100}, "decoding": decoding}
    return translator(path, tokenizer=TOKENIZERS[kind], **options, **model)


def translations_of(predictor, lines):
    return [hypotheses[0].text for hypotheses in predictor.translate(lines)]


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_a_translator_for_ctranslate2(kind, tmp_path):
    predictor = greedy_translator(tmp_path / "run", kind, max_length=120)
    export_run(tmp_path / "run", "ctranslate2", tmp_path / "out")
    printed = run_readme(tmp_path / "out", LINES)
    for theirs, ours in zip(printed, translations_of(predictor, LINES), strict=True):
        assert theirs.startswith(ours)  # regard stops sooner


@pytest.fixture(scope="module")
def transformer_for_onnxruntime(tmp_path_factory):
    """A translator and the folder of its graphs, which take long to make."""
    home = tmp_path_factory.mktemp("onnx")
    sizes = {"max_length": 120, "num_encoder_layers": 1, "num_decoder_layers": 1}
    predictor = greedy_translator(home / "run", "bpe", **sizes)
    export_run(home / "run", "onnx", home / "out")
    return predictor, home / "out"


@pytest.mark.slow
def test_a_recurrent_translator_for_onnxruntime(tmp_path):
    sizes = {"type": "rnn_seq2seq", "embed_dim": 12, "hidden_dim": 14}
    predictor = greedy_translator(tmp_path / "run", "words", **sizes)
    export_run(tmp_path / "run", "onnx", tmp_path / "out")
    assert run_readme(tmp_path / "out", LINES) == translations_of(predictor, LINES)


@pytest.mark.slow
def test_a_transformer_for_onnxruntime_by_its_readme(transformer_for_onnxruntime):
    predictor, folder = transformer_for_onnxruntime
    assert run_readme(folder, LINES) == translations_of(predictor, LINES)


@pytest.mark.parametrize("form", ["ctranslate2", pytest.param("onnx", marks=pytest.mark.slow)])
def test_a_language_model(form, tmp_path):
    predictor = language_model(tmp_path / "run", decoding={"one_line": True})
    export_run(tmp_path / "run", form, tmp_path / "out")
    prompts = ["I love", "Does he"]
    texts = [prediction.text() for prediction in predictor.predict(prompts)]
    assert run_readme(tmp_path / "out", prompts) == texts


@pytest.mark.slow
@pytest.mark.parametrize("form", ["onnx", "torch"])
def test_a_tagger_is_called_with_numbers(form, tmp_path):
    tagger(tmp_path / "run", parts="convolution")
    export_run(tmp_path / "run", form, tmp_path / "out")
    before = ALONE if form == "onnx" else ""
    assert run_readme(tmp_path / "out", before=before)


@pytest.mark.parametrize("make", [translator, classifier, masked_model, tagger])
@pytest.mark.slow
def test_a_folder_for_transformers(make, tmp_path):
    make(tmp_path / "run")
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    assert make is tagger or run_readme(tmp_path / "out", before="")


@pytest.mark.slow
def test_a_folder_for_transformers_without_a_tokenizer_of_theirs(tmp_path):
    predictor = greedy_translator(tmp_path / "run", "words", max_length=120)
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    before = 'import sys\nsys.modules["regard"] = None\n'
    printed = run_readme(tmp_path / "out", LINES, before=before)
    for theirs, ours in zip(printed, translations_of(predictor, LINES), strict=True):
        assert theirs.startswith(ours)


def test_a_bundle_names_itself(tmp_path):
    predictor = tagger(None)
    assert "regard predict 'my run.regard' FILE" in FORMS["bundle"].usage(
        predictor, "my run.regard"
    )


def run_script_of_the_page(package, folder):
    """Output of the script of docs/exporting.md for some lines, and those lines."""
    page = (Path(__file__).parents[3] / "docs" / "exporting.md").read_text("utf-8")
    codes = re.findall(r"```python\n(.+?)```", page, re.DOTALL)
    script = next(code for code in codes if package in code)
    assert len(script.splitlines()) < 40
    lines = [*LINES, "Äpfel und Birnen", "«Tom»  sings", "你好 😀"]
    printed = run_code(ALONE + script, folder, lines)
    assert len(set(printed)) > 3
    return lines, printed


@pytest.mark.slow
def test_the_script_of_the_page_for_ctranslate2_decodes_as_we_do(tmp_path):
    options = {"data": {"max_length": 100}, "decoding": {"max_ratio": 2.0}}
    predictor = translator(tmp_path / "run", tokenizer=TOKENIZERS["bpe"], max_length=120, **options)
    export_run(tmp_path / "run", "ctranslate2", tmp_path / "out")
    lines, printed = run_script_of_the_page("ctranslate2", tmp_path / "out")
    for (ours, *_), theirs in zip(predictor.translate(lines), printed, strict=True):
        assert theirs == ours.text or not ours.is_finished  # where CTranslate2 goes on for longer


@pytest.mark.slow
def test_the_script_of_the_page_for_onnxruntime_decodes_as_we_do(transformer_for_onnxruntime):
    predictor, folder = transformer_for_onnxruntime
    lines, printed = run_script_of_the_page("onnxru", folder)
    for (ours, *_), theirs in zip(predictor.translate(lines), printed, strict=True):
        assert theirs == ours.text or not ours.is_finished
