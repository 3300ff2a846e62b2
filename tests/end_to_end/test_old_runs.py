"""Runs that commits 33c24e5, 5dc9e81 and 2bb07e7 trained: read, used and resumed as they were then.

``tests/fixtures/runs_33c24e5/make.py`` made them, with what those commits' commands said of them,
and recorded anew what is meant to be another thing since.
"""

import asyncio
import json
import zipfile
from pathlib import Path

import httpx
import pytest
from tests.end_to_end.recordings import has_like_words, is_like

from regard.inference import Predictor, load
from regard.runs import Run
from regard.server import Limits, Service, make_app
from regard.tasks import recipe_from_table
from regard.training import ConsoleReporter
from regard.training.session import fit as train

pytestmark = pytest.mark.slow

FIXTURES = Path(__file__).parents[1] / "fixtures"
COMMITS = ("33c24e5", "5dc9e81", "2bb07e7")
# By the commit and the run's name, "33c24e5/tagging".
RECORDED = {
    f"{commit}/{name}": commands
    for commit in COMMITS
    for name, commands in json.loads(
        (FIXTURES / f"runs_{commit}" / "recorded.json").read_text("utf-8")
    ).items()
}
# The validation of those whose interrupted training ends otherwise since: by their names.
RESUMED = {
    f"{commit}/{name}": figures
    for commit in COMMITS
    for name, figures in json.loads(
        (FIXTURES / f"runs_{commit}" / "resumed.json").read_text("utf-8")
    ).items()
}
# Of 5dc9e81 the kinds that 2bb07e7 has, too; all its runs are served and asked below.
USED = [
    name
    for name in RECORDED
    if not name.startswith("5dc9e81") or name.replace("5dc9e81", "2bb07e7") in RECORDED
]
COMMANDS = [
    pytest.param(name, each["command"], each["out"], id=f"{name}: {' '.join(each['command'])}")
    for name in USED
    for each in RECORDED[name]
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with ``run`` and ``begun`` of each name."""
    folder = tmp_path_factory.mktemp("old")
    for name in RECORDED:
        with zipfile.ZipFile(FIXTURES / f"runs_{name}.zip") as packed:
            packed.extractall(folder / name)
    return folder


@pytest.fixture(autouse=True)
def _from_the_texts(monkeypatch):
    """Paths in these runs are relative to the folder of their texts."""
    monkeypatch.chdir(FIXTURES / "runs_33c24e5" / "texts")


@pytest.mark.parametrize(("name", "command", "recorded"), COMMANDS)
def test_a_command_prints_what_it_printed(regard, runs, tmp_path, name, command, recorded):
    run, page = str(runs / name / "run"), str(tmp_path / "page.html")
    done = regard(*(word.replace("RUN.html", page).replace("RUN", run) for word in command))
    assert done.code == 0, done
    printed = done.out.replace(run, "RUN")
    if "jsonl" in command or "--json" in command:
        pairs = zip(printed.splitlines(), recorded.splitlines(), strict=True)
        for line, before in pairs:
            assert is_like(json.loads(line), json.loads(before)), (line, before)
    else:
        assert has_like_words(printed, recorded), (printed, recorded)
    if command[0] == "look":
        assert Path(page).read_text("utf-8").startswith("<!")


@pytest.mark.parametrize("name", USED)
def test_an_interrupted_training_resumes_to_its_recorded_end(runs, name):
    expected = Run.open(runs / name / "run").summary
    interrupted = runs / name / "begun"
    recipe = recipe_from_table(Run.open(interrupted).recipe)
    summary = train(recipe, interrupted, reporter=ConsoleReporter(quiet=True)).summary
    assert summary["updates"] == expected["updates"]
    # Adam makes steps of what is hardly more than a rounding.
    recorded = RESUMED.get(name, expected["validation"])
    assert is_like(summary["validation"], recorded, rel=5e-3)


def requests_of(name):
    """The file of inputs of a run, and its texts as a request."""
    file = Path(RECORDED[name][0]["command"][2])
    lines = file.read_text("utf-8").splitlines()
    if "/language-model" in name:
        return file, {"text": lines[0], "max_tokens": 8}
    is_text = file.suffix == ".txt"
    return file, {"texts": lines} if is_text else {"records": [*map(json.loads, lines)]}


async def posted(app, *requests):
    """Answers of a server to requests."""
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        replies = [(await client.post("/predict", json=members)).json() for members in requests]
        return [each.get("answers") or each["translations"] for each in replies]


def test_all_runs_are_served_and_answer_as_they_did(regard, runs, monkeypatch):
    served = {}
    monkeypatch.setattr("regard.server.serve", lambda models, **_: served.update(models))
    # A server names its runs by their folders.
    names = {name: f"served-{name.replace('/', '-')}" for name in RECORDED}
    folders = [(runs / name / "run").rename(runs / folder) for name, folder in names.items()]
    assert regard("serve", *folders).code == 0
    requests_by_run = [requests_of(name) for name in RECORDED]
    requests = [
        {"run": names[name], **members}
        for name, (_, members) in zip(RECORDED, requests_by_run, strict=True)
    ]
    answers = asyncio.run(posted(make_app(Service(served, Limits())), *requests))
    for name, replies in zip(RECORDED, answers, strict=True):
        recorded = next(each["out"] for each in RECORDED[name] if "jsonl" in each["command"])
        expected = [json.loads(line) for line in recorded.splitlines()]
        for each, old in zip(replies, expected[: len(replies)], strict=True):
            assert is_like(each, old), (name, each, old)


@pytest.mark.parametrize("name", [name for name in RECORDED if name.startswith("5dc9e81")])
def test_an_answer_is_the_same_record_from_command_server_and_python(regard, tmp_path, name):
    with zipfile.ZipFile(FIXTURES / f"runs_{name}.zip") as packed:
        packed.extractall(tmp_path)
    run = tmp_path / "run"
    file, members = requests_of(name)
    writes = "/translation" in name or "/generation" in name
    continues = "/language-model" in name
    options = ["--max-tokens", 8] if continues else ["--n-best", 2] * writes
    attention = ["--attention"] * writes
    if continues:
        file = tmp_path / file
        file.write_text(f"{members['text']}\n", "utf-8")
    done = regard("predict", run, file, "--output-format", "jsonl", *options, *attention)
    records = [json.loads(line) for line in done.out.splitlines()]
    if writes:
        members |= {"n_best": 2, "alignments": True}
        assert all({"log_prob", "n_best", "links", "attention"} <= each.keys() for each in records)

    app = make_app(Service({"run": Predictor.load(run)}, Limits()))
    (answers,) = asyncio.run(posted(app, members))
    assert_alike(answers, records)

    decoding = {"max_tokens": 8} if continues else {"n_best": 2} if writes else {}
    texts = members.get("texts") or members.get("records") or members["text"]
    plain = [each.to_dict() for each in load(run).predict(texts, **decoding)]
    attended = {"source_tokens", "output_tokens", "attention", "links", "copied_from"}
    without = [
        {key: value for key, value in each.items() if not writes or key not in attended}
        for each in records
    ]
    assert_alike(plain, without)
    if not continues:
        # Nor does an answer depend on its company.
        single = [load(run).predict([text], **decoding)[0].to_dict() for text in texts]
        assert_alike(single, without)
        options = [*options, "--output-format", "jsonl", "--output", tmp_path / "answers"]
        assert regard("predict", run, "--input", file, *options).code == 0
        (out,) = (tmp_path / "answers").glob("*.jsonl")
        assert_alike(map(json.loads, out.read_text("utf-8").splitlines()), without)


def assert_alike(outputs, records):
    for one, other in zip(outputs, records, strict=True):
        plain, expected = json.loads(json.dumps(one)), dict(other)
        assert list(plain) == list(expected)
        for value, expected_value in zip(flat(plain), flat(expected), strict=True):
            assert value == (
                pytest.approx(expected_value, abs=2e-6, rel=0)
                if type(expected_value) is float
                else expected_value
            )


def flat(value):
    """The numbers and texts in JSON, one after another."""
    if isinstance(value, dict | list):
        each = value.values() if isinstance(value, dict) else value
        return [one for member in each for one in flat(member)]
    return [value]
