"""Settings of answers and of looks are the same for the command, Python and the server."""

import inspect
import json
from dataclasses import fields

import pytest
from tests.unit.server.conftest import answers_of

from regard.cli import run_command
from regard.cli.app import app
from regard.inference import Predictor
from regard.inference.options import AnswerOptions
from regard.interop import look
from regard.server import Limits, Service
from regard.server.requests import AttentionRequest, PredictRequest
from regard.tasks import DecodingConfig
from regard.viewer.options import LookKeywords, LookOptions

# What a door calls otherwise.
FLAGS = {"against": "not"}
MEMBERS = {"attention": "alignments"}
# A value of each setting, of a run that writes a text for a text or of a language model.
TRANSLATED = {
    "method": "greedy",
    "beam_size": 2,
    "length_penalty": 3.0,
    "coverage_penalty": 0.5,
    "min_length": 4,
    "repetition_penalty": 3.0,
    "no_repeat_ngram": 1,
    "prefix": "b",
    "avoid": ["a"],
    "max_ratio": 0.0,
    "n_best": 3,
    "attention": True,
}
SAMPLED = {"temperature": 0.5, "top_k": 2, "top_p": 0.5, "seed": 5}
CONTINUED = {"max_tokens": 3, "one_line": True}
CASES = [
    *(("translator", {name: value}) for name, value in TRANSLATED.items()),
    ("translator", {"attention": True, "layers": [0]}),
    *(("translator", {"method": "sample", name: value}) for name, value in SAMPLED.items()),
    *(("letters", {name: value}) for name, value in CONTINUED.items()),
]


def names(kind):
    return {each.name for each in fields(kind)}


def flags(command):
    """Names of the options of a command."""
    every = app[command].assemble_argument_collection()
    return {name.removeprefix("--") for each in every for name in each.names}


def test_every_door_has_every_setting():
    for kind, command, request in (
        (AnswerOptions, "predict", PredictRequest),
        (LookOptions, "look", AttentionRequest),
    ):
        assert {FLAGS.get(each, each).replace("_", "-") for each in names(kind)} <= flags(command)
        assert {MEMBERS.get(each, each) for each in names(kind)} <= {*request.model_fields}
    arguments = {*inspect.signature(Predictor.predict).parameters} - {"self", "records", "progress"}
    # How much is worked on at once says nothing of the answers.
    searched = names(DecodingConfig) - {"batch_tokens"}
    assert arguments - {"decoding"} | searched == names(AnswerOptions)
    arguments = {*inspect.signature(Predictor.look).parameters}
    assert arguments - {"self", "texts"} == names(LookOptions) == {*LookKeywords.__annotations__}
    assert names(LookOptions) < {*inspect.signature(look).parameters}


def test_every_setting_is_tried():
    assert {name for _, settings in CASES for name in settings} == names(AnswerOptions)


def words_of(settings):
    """A command line's words for settings."""
    for name, value in settings.items():
        for each in value if isinstance(value, list) else [value]:
            yield f"--{name.replace('_', '-')}"
            if value is not True:
                yield str(each)


@pytest.mark.parametrize(("kind", "settings"), CASES)
def test_every_door_answers_alike(kind, settings, request, tmp_path, capsys):
    run = request.getfixturevalue(f"{kind}_run")
    predictor = Predictor.load(run)
    text = "abc fed"
    python = {name: tuple(v) if name == "avoid" else v for name, v in settings.items()}
    (expected,) = predictor.predict([text], **python)
    (tmp_path / "lines.txt").write_text(f"{text}\n", "utf-8")
    command = ["predict", str(run), str(tmp_path / "lines.txt"), "--output-format", "jsonl"]
    assert run_command([*command, *words_of(settings)]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(expected.to_dict()))
    members = {MEMBERS.get(name, name): value for name, value in settings.items()}
    service = Service({"run": predictor}, Limits())
    (reply,) = answers_of(service, ("/predict", {"text": text, **members}))
    assert reply.status_code == 200, reply.text
    (answer,) = reply.json()[predictor.use.answers_name]
    answer.pop("unknown", None)
    assert answer == json.loads(json.dumps(expected.to_dict()))
