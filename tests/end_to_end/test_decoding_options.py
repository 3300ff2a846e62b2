"""The search's options on the command line, and the scores of given outputs."""

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

LINE = "我爱中国\n".encode()


def test_samples_differ_by_seed_and_come_again_with_it(regard, run: Path) -> None:
    sampled = ("predict", run, "--method", "sample", "--temperature", 3, "--n-best", 4, "--seed")
    first, again, other = (regard(*sampled, seed, stdin=LINE).out for seed in (1, 1, 2))
    assert first == again != other
    assert len(first.splitlines()) == 4


def test_outputs_are_scored(regard, run: Path, tmp_path: Path) -> None:
    best = json.loads(regard("predict", run, "--output-format", "jsonl", stdin=LINE).out)
    pair = f"我爱中国\t{best['translation']}\n".encode()
    score, log_prob, target = regard("predict", run, "--score", stdin=pair).out.split("\t")
    assert float(score) == pytest.approx(best["score"], abs=1e-3)
    assert float(log_prob) == pytest.approx(best["log_prob"], abs=1e-3)
    assert target == f"{best['translation']}\n"
    file = tmp_path / "pairs.jsonl"
    file.write_text('{"source": "我", "target": "I"}\n\n', "utf-8")
    done = regard("predict", run, file, "--score", "--output-format", "jsonl")
    records = [json.loads(line) for line in done.out.splitlines()]
    assert len(records[0]["log_probs"]) == len(records[0]["tokens"])
    assert "score" not in records[1]


def test_evaluation_searches_by_the_options(regard, run: Path) -> None:
    scores = [
        json.loads(regard("evaluate", run, "--json", *options).out)["scores"]
        for options in ([], ["--method", "sample", "--temperature", 3])
    ]
    assert scores[0] != scores[1]
