"""Programs of exports' READMEs and of the page run as they stand, and answer as regard does."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.unit.export.random_runs import (
    classifier,
    language_model,
    masked_model,
    tagger,
    translator,
)

from regard.decoding import beam
from regard.export import FORMS, export_run
from regard.export.form import reading
from regard.export.onnx_graphs import _SEARCH
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


def run_program(folder, lines=(), *, before=ALONE):
    assert "python program.py" in (folder / "README.md").read_text("utf-8")
    return run_code(before + (folder / "program.py").read_text("utf-8"), folder, lines)


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
    lines = [*LINES, "(rain) rains learners", " 爱 rain "]
    for line, printed in zip(lines, run_code(ALONE + code, tmp_path, lines), strict=True):
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
    lines = [*LINES, "", " "]
    assert run_program(tmp_path / "out", lines) == translations_of(predictor, lines)


BEAM = {"beam_size": 5, "length_penalty": 1.0, "min_length": 2, "no_repeat_ngram": None}


@pytest.fixture(scope="module")
def transformer_for_onnxruntime(tmp_path_factory):
    """A translator and the folder of its graphs, which take long to make."""
    home = tmp_path_factory.mktemp("onnx")
    sizes = {"max_length": 120, "num_encoder_layers": 1, "num_decoder_layers": 1}
    options = {"data": {"max_length": 100}, "decoding": {**BEAM, "max_ratio": 2.0}}
    predictor = translator(home / "run", tokenizer=TOKENIZERS["bpe"], **options, **sizes)
    export_run(home / "run", "onnx", home / "out")
    return predictor, home / "out"


@pytest.mark.slow
def test_a_recurrent_translator_for_onnxruntime_has_the_beam_of_the_run(tmp_path):
    sizes = {"type": "rnn_seq2seq", "embed_dim": 12, "hidden_dim": 14}
    options = {"data": {"max_length": 100}, "decoding": BEAM}
    predictor = translator(tmp_path / "run", tokenizer=TOKENIZERS["words"], **options, **sizes)
    export_run(tmp_path / "run", "onnx", tmp_path / "out")
    lines = [*LINES, "", *(f"{first} {last}" for first in LINES for last in LINES)]
    assert run_program(tmp_path / "out", lines) == translations_of(predictor, lines)


@pytest.mark.slow
def test_a_transformer_for_onnxruntime_has_the_beam_of_the_run(transformer_for_onnxruntime):
    predictor, folder = transformer_for_onnxruntime
    lines = [*LINES, "", " "]
    assert run_program(folder, lines) == translations_of(predictor, lines)


class Stateless:
    def select(self, rows):
        return self


@pytest.mark.parametrize("end", [3, 0])
@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize(("penalty", "least"), [(0.0, 0), (1.0, 3)])
def test_the_search_of_the_program_is_that_of_regard(width, penalty, least, end):
    program = {"BEAM": width, "PENALTY": penalty, "END": end}
    exec(_SEARCH.partition("decoder = ")[0], program)
    torch.manual_seed(width)
    for limit in range(least + 1, 14):
        table = (2 * torch.randn(9, 9)).log_softmax(-1)
        (ours,) = beam(
            lambda token, state, table=table: (table[token], state),
            Stateless(),
            batch_size=1,
            bos_id=2,
            eos_id=end,
            max_lengths=limit,
            beam_size=width,
            length_penalty=penalty,
            min_length=least,
            forbidden=[token for token in (0, 1, 2) if token != end],
        )
        theirs = program["search"](
            lambda tokens, state, table=table: (table[tokens[:, -1]].numpy().copy(), state),
            {},
            np.array([[2]]),
            limit,
            least,
        )
        assert theirs == list(ours[0].tokens)


@pytest.mark.parametrize("form", ["ctranslate2", pytest.param("onnx", marks=pytest.mark.slow)])
def test_a_language_model(form, tmp_path):
    # CTranslate2 writes half a window at most, and its README says so.
    window = {"method": "greedy", "max_tokens": 10}
    several = {"method": "beam", "beam_size": 3, "max_tokens": 60}
    settings = {"one_line": True, **(window if form == "ctranslate2" else several)}
    predictor = language_model(tmp_path / "run", decoding=settings)
    export_run(tmp_path / "run", form, tmp_path / "out")
    prompts = ["I love", "Does he"]
    texts = [prediction.text() for prediction in predictor.predict(prompts)]
    assert run_program(tmp_path / "out", prompts) == texts


@pytest.mark.slow
@pytest.mark.parametrize("form", ["onnx", "torch"])
def test_a_tagger_is_called_with_numbers(form, tmp_path):
    tagger(tmp_path / "run", parts="convolution", num_layers=1)
    export_run(tmp_path / "run", form, tmp_path / "out")
    before = ALONE if form == "onnx" else ""
    assert run_program(tmp_path / "out", before=before)


@pytest.mark.slow
def test_folders_for_transformers(tmp_path):
    code = "import os\n"
    for make in (translator, classifier, masked_model):
        folder = tmp_path / make.__name__
        make(folder / "run")
        export_run(folder / "run", "huggingface", folder / "out")
        page = (folder / "out" / "README.md").read_text("utf-8")
        (block,) = re.findall(r"```python\n(.+?)```", page, re.S)
        code += f"os.chdir({str(folder / 'out')!r})\n{block}\nprint('|')\n"
    *printed, _ = "\n".join(run_code(code, tmp_path, ())).split("|")
    assert all(each.strip() for each in printed)


@pytest.mark.slow
def test_a_folder_for_transformers_without_a_tokenizer_of_theirs(tmp_path):
    predictor = greedy_translator(tmp_path / "run", "words", max_length=120)
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    before = 'import sys\nsys.modules["regard"] = None\n'
    printed = run_program(tmp_path / "out", LINES, before=before)
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
    greedy = predictor.decoding.changed(method="greedy", min_length=0)
    outputs = predictor.translate(lines, decoding=greedy)
    for (ours, *_), theirs in zip(outputs, printed, strict=True):
        assert theirs == ours.text or not ours.is_finished
