"""Our figures against what the sacrebleu command prints for the same files."""

import json
import random
import subprocess
import sys

import pytest

from regard.metrics import bleu, chrf, compare

pytestmark = [pytest.mark.parity, pytest.mark.slow]

WORDS = {
    "zh": ("", list("我你他爱欢中国北京茶的了在昨今天去来看书吃。，")),
    "en": (" ", ["The", "the", "a", "man", "Woman", "dog", "runs", "on", "red", "bike", ",", "."]),
}


def corpus(language, seed):
    draw = random.Random(seed)
    space, words = WORDS[language]
    first, second, outputs, others = [], [], [], []
    for _ in range(60):
        line = draw.choices(words, k=draw.randint(3, 15))
        first.append(space.join(line))
        second.append(space.join(draw.sample(line, len(line))))
        outputs.append(space.join(word for word in line if draw.random() < 0.9))
        others.append(space.join(word for word in line if draw.random() < 0.8))
    return first, second, outputs, others


def sacrebleu_says(folder, files, *options):
    for name, lines in files.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    references = [name for name in files if name.startswith("ref")]
    systems = [name for name in files if name.startswith("out")]
    command = [sys.executable, "-m", "sacrebleu", *references, "-i", *systems, *options]
    done = subprocess.run(
        [*command, "--format", "json", "--width", "6"],
        cwd=folder,
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("language", sorted(WORDS))
def test_figures_signatures_and_intervals(tmp_path, language):
    first, second, outputs, _ = corpus(language, 1)
    pairs = list(zip(first, second, strict=True))
    tokenizer = {"zh": "zh", "en": "13a"}[language]
    reported = sacrebleu_says(
        tmp_path,
        {"ref1": first, "ref2": second, "out": outputs},
        *("-m", "bleu", "chrf", "-tok", tokenizer, "--confidence", "--confidence-n", "200"),
    )
    ours = [
        bleu(outputs, pairs, target_language=language, resamples=200),
        chrf(outputs, pairs, resamples=200),
    ]
    for theirs, score in zip(reported, ours, strict=True):
        assert theirs["name"] == score.name
        assert sorted(theirs["signature"].split("|")) == sorted(score.signature.split("|"))
        assert theirs["score"] == pytest.approx(score.value, abs=1e-5)
        assert theirs["confidence_mean"] == pytest.approx(score.mean, abs=1e-3)
        assert theirs["confidence_var"] == pytest.approx(score.margin, abs=1e-3)


def test_lower_cased_bleu(tmp_path):
    first, _, outputs, _ = corpus("en", 2)
    files = {"ref1": first, "out": outputs}
    reported = sacrebleu_says(tmp_path, files, "-m", "bleu", "-lc", "-tok", "none", "--force")
    score = bleu(outputs, first, lowercase=True, tokenize="none")
    assert (reported["score"], reported["signature"]) == (
        pytest.approx(score.value, abs=1e-5),
        score.signature,
    )


def test_paired_tests(tmp_path):
    first, second, outputs, others = corpus("en", 3)
    reported = sacrebleu_says(
        tmp_path,
        {"ref1": first, "ref2": second, "out1": outputs, "out2": others},
        *("--paired-ar", "--paired-ar-n", "300", "-m", "bleu", "chrf"),
    )
    pairs = list(zip(first, second, strict=True))
    for comparison in compare(outputs, others, pairs, trials=300):
        theirs = [system[comparison.name] for system in reported]
        assert theirs[0]["score"] == pytest.approx(comparison.first, abs=1e-5)
        assert theirs[1]["score"] == pytest.approx(comparison.second, abs=1e-5)
        assert theirs[1]["p_value"] == pytest.approx(comparison.p_value, abs=1e-5)
