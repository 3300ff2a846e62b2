"""Answers and summaries of documents: trained, evaluated, predicted and inspected by command."""

import json

import pytest

pytestmark = pytest.mark.slow

NAMES = ["Anna", "Bert", "Cleo", "Dora", "Emil", "Fritz"]
_TRAINING = {"training.updates": 3, "training.validate_every": 3, "training.validation_pairs": 3}
_TRAINING |= {"tokenizer.type": "words", "tokenizer.vocab_size": "none", "data.max_length": 40}
_TRANSFORMER = {"model.model_dim": 8, "model.num_heads": 2, "model.ffn_dim": 8}
_RECURRENT = {"model.embed_dim": 8, "model.hidden_dim": 8, "model.attention_dim": 8}
RECIPES = {
    "generation-copy": _RECURRENT | {"training.metric": "rouge_l", "data.max_length": 24},
    "summarisation-pointer": _RECURRENT | {"decoding.max_ratio": 0.1},
    "sentence-extraction": _TRANSFORMER | {"model.num_layers": 1},
}


def question(number):
    cat = f"the cat of {NAMES[number % 5]}"
    story = f"Once there was {NAMES[number % 6]} the {number}th. The {cat[4:]} slept."
    text = f"Who slept beside {NAMES[number % 4]}?"
    return {"context": story, "question": text, "answers": ["the cat", cat]}


def document(number):
    name, other = NAMES[number % 6], NAMES[number % 5]
    return f"Once there was {name} the {number}th. The cat of {other} slept. {name} left."


def summarised(number):
    summaries = [f"{NAMES[number % 6]} left", "A cat slept"]
    return {"document": document(number), "summary": summaries[0], "summaries": summaries[1:]}


@pytest.fixture(scope="module")
def trained(regard, tmp_path_factory):
    """A maker of runs, trained at their first use, and of their files to test on."""
    home = tmp_path_factory.mktemp("documents")

    def run(recipe):
        folder, test = home / recipe, home / f"{recipe}-test.jsonl"
        if not folder.exists():
            records = [*map(question if recipe == "generation-copy" else summarised, range(40))]
            test.write_text("".join(f"{json.dumps(each)}\n" for each in records[:12]), "utf-8")
            lines = [{k: v for k, v in each.items() if k != "summaries"} for each in records]
            text = "".join(f"{json.dumps(each)}\n" for each in lines)
            (home / "train.jsonl").write_text(text, "utf-8")
            settings = {**_TRAINING, **RECIPES[recipe]}
            options = [word for name, v in settings.items() for word in ("--set", f"{name}={v}")]
            done = regard("train", recipe, home / "train.jsonl", "--run", folder, *options)
            assert done.code == 0, done
        return folder, test

    return run


def test_evaluation_begins_with_rouge_and_that_of_sentences(regard, trained):
    run, test = trained("generation-copy")
    done = regard("evaluate", run, test, "--method", "greedy")
    assert done.code == 0, done
    assert done.out.index("ROUGE-L") < done.out.index("BLEU")
    assert "the first sentence" in done.out
    assert "the sentence that shares most words with the question" in done.out
    held_out = regard("evaluate", run, "--split", "valid", "--json")
    assert json.loads(held_out.out)["scores"][0]["name"] == "ROUGE-L"


def test_a_json_line_is_a_record_wherever_it_is_read(regard, trained, tmp_path):
    run, _ = trained("generation-copy")
    record = question(0)
    lines = (f"{record['question']}\t{record['context']}", json.dumps(record))
    typed, as_json = (
        regard("predict", run, "--beam-size", 1, stdin=line.encode()).out for line in lines
    )
    assert typed == as_json
    for line in lines:
        drawing = regard("look", run, line, "--out", tmp_path / "page.html")
        assert drawing.out.startswith("Who slept beside Anna? ‖ The cat of Anna slept."), drawing
    message = regard.refused("predict", run, stdin=b'{"text": "A cat."}\n')
    assert "stdin:1: expected the key 'document' or 'context'; found 'text'" in message
    scored = regard("predict", run, "--score", stdin=json.dumps(record).encode())
    assert scored.code == 0, scored
    assert scored.out.endswith("\tthe cat\n")


def test_copied_words_are_printed_and_drawn(regard, trained, tmp_path):
    run, _ = trained("summarisation-pointer")
    line = json.dumps({"document": document(3)}).encode()
    done = regard("predict", run, "--attention", "--output-format", "jsonl", stdin=line)
    assert done.code == 0, done
    answer = json.loads(done.out)
    assert len(answer["copied_from"]) == len(answer["output_tokens"]) == len(answer["attention"])
    drawing = regard("look", run, document(3), "--out", tmp_path / "page.html")
    assert drawing.code == 0, drawing
    if answer["translation"]:
        assert "copied, from which character on: " in drawing.out
    page = (tmp_path / "page.html").read_text("utf-8")
    assert '"opening":{"kind":"cross","layer":0,"head":"mean"}' in page


def test_sentences_are_extracted_unchanged(regard, trained):
    run, test = trained("sentence-extraction")
    done = regard("predict", run, test, "--output-format", "jsonl")
    assert done.code == 0, done
    for number, line in enumerate(done.out.splitlines()):
        answer = json.loads(line)
        assert answer["summary"] in document(number)
        assert len(answer["sentences"]) == len(answer["probabilities"]) == 3
    evaluated = regard("evaluate", run, test)
    assert evaluated.code == 0, evaluated
    assert "beside it, TextRank's first sentence" in evaluated.out
    assert "nearest to the summary, which is not known" in evaluated.out
