"""Documents in, answers out: trained, evaluated and asked by command."""

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

NAMES = ["Anna", "Bert", "Cleo", "Dora", "Emil", "Fritz"]
SETTINGS = {
    "training.updates": 4,
    "training.validate_every": 4,
    "training.validation_pairs": 3,
    "training.metric": "rouge_l",
    "data.max_length": 24,
    "tokenizer.vocab_size": "none",
    "model.embed_dim": 8,
    "model.hidden_dim": 8,
    "model.attention_dim": 8,
}


def records(count: int) -> list[dict[str, object]]:
    return [
        {
            "context": f"Once there was {NAMES[i % 6]} the {i}th. The cat of {NAMES[i % 5]} slept.",
            "question": f"Who slept beside {NAMES[i % 4]}?",
            "answers": ["the cat", f"the cat of {NAMES[i % 5]}"],
        }
        for i in range(count)
    ]


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stories")
    for name, count in (("train", 40), ("test", 12)):
        lines = "".join(json.dumps(record) + "\n" for record in records(count))
        (folder / f"{name}.jsonl").write_text(lines, "utf-8")
    return folder


@pytest.fixture(scope="module")
def asked(regard, stories: Path) -> Path:
    settings = [each for name, value in SETTINGS.items() for each in ("--set", f"{name}={value}")]
    trained = regard(
        *("train", "generation-copy", stories / "train.jsonl", "--run", stories / "run"), *settings
    )
    assert trained.code == 0, trained
    assert "rouge" in trained.err.lower() + trained.out.lower()
    return stories / "run"


def test_evaluation_begins_with_rouge_beside_sentences(regard, asked: Path, stories: Path) -> None:
    done = regard("evaluate", asked, "--source", stories / "test.jsonl", "--method", "greedy")
    assert done.code == 0, done
    assert done.out.index("ROUGE-L") < done.out.index("BLEU")
    assert "the first sentence" in done.out
    assert "the sentence that shares most words with the question" in done.out
    both = ("--source", stories / "test.jsonl", "--target", stories / "test.jsonl")
    refused = regard.refused("evaluate", asked, *both)
    assert "--target must be left out for a run of generation" in refused
    held_out = regard("evaluate", asked, "--split", "valid", "--json")
    assert json.loads(held_out.out)["scores"][0]["name"] == "ROUGE-L"


def test_questions_are_answered_from_files_and_lines(regard, asked: Path, stories: Path) -> None:
    record = records(1)[0]
    line = f"{record['question']}\t{record['context']}\n".encode()
    typed = json.loads(regard("predict", asked, "--output-format", "jsonl", stdin=line).out)
    arguments = ("predict", asked, stories / "test.jsonl", "--output-format", "jsonl")
    first = json.loads(regard(*arguments).out.splitlines()[0])
    # Others in the batch may change the last digit.
    for name in ("score", "log_prob"):
        assert typed.pop(name) == pytest.approx(first.pop(name), abs=1e-4)
    assert typed == first
    # The sentence that shares more with the question comes first; the source is cut, not in parts.
    assert first["source"].startswith("Who slept beside Anna? ‖ The cat of Anna slept. Once")
    long = regard("predict", asked, stdin=("Who?\t" + "A cat slept. " * 99 + "\n").encode())
    assert len(long.out.splitlines()) == 1
    assert "parts" not in long.err


def test_a_json_line_is_a_record_wherever_it_is_read(regard, asked: Path, tmp_path: Path) -> None:
    record = records(1)[0]
    line = f"{record['question']}\t{record['context']}"
    typed, as_json = (
        regard("predict", asked, "--beam-size", 1, stdin=text.encode()).out
        for text in (line, json.dumps(record))
    )
    assert typed == as_json
    for text in (line, json.dumps(record)):
        looked = regard("look", asked, text, "--out", tmp_path / "page.html")
        assert looked.out.startswith("Who slept beside Anna? ‖ The cat of Anna slept."), looked
    message = regard.refused("predict", asked, stdin=b'{"text": "A cat."}\n')
    assert "stdin:1: expected the key 'document' or 'context'; found 'text'" in message
    scored = regard("predict", asked, "--score", stdin=json.dumps(record).encode())
    assert scored.code == 0, scored
    assert scored.out.endswith("\tthe cat\n")


def test_a_document_without_an_answer_is_an_error_before_training(regard, stories: Path) -> None:
    bad = stories / "bad.jsonl"
    bad.write_text(json.dumps(records(1)[0]) + '\n{"context": "A cat."}\n', "utf-8")
    message = regard.refused("train", "generation-copy", bad, "--run", stories / "none")
    assert "bad.jsonl:2: expected the key 'answers' or 'answer' or 'summary'" in message
    assert not (stories / "none").exists()
