"""Documents in, summaries out: trained, evaluated, looked into and taken out by command."""

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

NAMES = ["Anna", "Bert", "Cleo", "Dora", "Emil", "Fritz"]
_TRAINING = {
    "training.updates": 3,
    "training.validate_every": 3,
    "training.validation_pairs": 3,
    "data.max_length": 40,
    "tokenizer.type": "words",
    "tokenizer.vocab_size": "none",
}
MODELS = {
    "summarisation": {
        "model.model_dim": 8,
        "model.num_heads": 2,
        "model.ffn_dim": 8,
        "model.num_encoder_layers": 1,
        "model.num_decoder_layers": 1,
        "decoding.max_ratio": 0.1,
    },
    "summarisation-pointer": {
        "model.embed_dim": 8,
        "model.hidden_dim": 8,
        "model.attention_dim": 8,
        "decoding.max_ratio": 0.1,
    },
    "sentence-extraction": {
        "model.model_dim": 8,
        "model.num_heads": 2,
        "model.ffn_dim": 8,
        "model.num_layers": 1,
    },
}
WRITERS = ["summarisation", "summarisation-pointer"]


def document(number: int) -> str:
    name, other = NAMES[number % 6], NAMES[number % 5]
    return f"Once there was {name} the {number}th. The cat of {other} slept. {name} left."


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("summaries")
    for name, count in (("train", 40), ("test", 12)):
        records = [
            {"document": document(n), "summary": f"{NAMES[n % 6]} left"}
            | ({"summaries": ["A cat slept"]} if name == "test" else {})
            for n in range(count)
        ]
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text(lines, "utf-8")
    return folder


@pytest.fixture(scope="module")
def trained(regard, home: Path):
    """A maker of runs: the run of a recipe, trained when it is first asked for."""

    def run(recipe: str) -> Path:
        folder = home / recipe
        if not folder.exists():
            settings = {**_TRAINING, **MODELS[recipe]}
            told = [each for key, value in settings.items() for each in ("--set", f"{key}={value}")]
            done = regard("train", recipe, home / "train.jsonl", "--run", folder, *told)
            assert done.code == 0, done
        return folder

    return run


@pytest.mark.parametrize("recipe", WRITERS)
def test_a_summary_stands_beside_sentences_and_chance(regard, trained, home: Path, recipe) -> None:
    run = trained(recipe)
    done = regard("evaluate", run, "--source", home / "test.jsonl", "--json")
    assert done.code == 0, done
    found = json.loads(done.out)
    names = [score["name"] for score in found["scores"]]
    assert names[:3] == ["ROUGE-L", "ROUGE-1", "ROUGE-2"]
    assert all(score["margin"] is not None for score in found["scores"][:3])
    assert "nrefs:2" in found["scores"][0]["signature"]
    baselines = {one["name"]: one for one in found["baselines"]}
    assert list(baselines)[:4] == [
        "the first sentence",
        "the first 2 words",
        "the sentence nearest to all",
        "TextRank's first sentence",
    ]
    assert all(0 < one["p_value"] <= 1 for one in baselines.values())
    (table,) = found["tables"]
    assert [row[0] for row in table["rows"]] == ["1-grams", "2-grams", "3-grams", "4-grams"]
    assert len(found["outputs"]) == 10


@pytest.mark.parametrize("recipe", WRITERS)
def test_what_was_copied_is_told_and_drawn(regard, trained, tmp_path: Path, recipe) -> None:
    run = trained(recipe)
    line = json.dumps({"document": document(3)}).encode()
    told = regard("predict", run, "--attention", "--output-format", "jsonl", stdin=line)
    assert told.code == 0, told
    said = json.loads(told.out)
    assert len(said["copied_from"]) == len(said["output_tokens"]) == len(said["attention"])
    looked = regard("look", run, document(3), "--out", tmp_path / "page.html")
    assert looked.code == 0, looked
    if said["translation"]:
        assert "copied, from which character on: " in looked.out
    layer = {"summarisation": 1, "summarisation-pointer": 0}[recipe]
    page = (tmp_path / "page.html").read_text("utf-8")
    assert f'"opening":{{"kind":"cross","layer":{layer},"head":"mean"}}' in page


def test_two_summarisers_are_compared_by_rouge(regard, trained, home: Path) -> None:
    one, other = map(trained, WRITERS)
    compared = regard("evaluate", one, "--source", home / "test.jsonl", "--compare", other)
    assert compared.code == 0, compared
    said = compared.out[compared.out.index(f"{other} → {one}") :]
    assert said.index("ROUGE-L") < said.index("ROUGE-1") < said.index("BLEU")


def test_sentences_are_taken_out_as_they_stand(regard, trained, home: Path) -> None:
    run = trained("sentence-extraction")
    told = regard("predict", run, home / "test.jsonl", "--output-format", "jsonl")
    assert told.code == 0, told
    for number, line in enumerate(told.out.splitlines()):
        said = json.loads(line)
        assert said["summary"] in document(number)
        assert len(said["sentences"]) == len(said["probabilities"]) == 3
    found = regard("evaluate", run, "--source", home / "test.jsonl")
    assert found.code == 0, found
    assert "beside it, TextRank's first sentence" in found.out
    assert "nearest to the summary, which is not known" in found.out
