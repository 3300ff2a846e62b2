"""Bytes in, a request out, or a sentence that says what is wrong with them."""

import json

import pytest
from pydantic import ValidationError

from regard.errors import SettingError
from regard.server.problems import Problem, invalid
from regard.server.requests import (
    AttentionRequest,
    ExplainRequest,
    Limits,
    PredictRequest,
    RowsRequest,
    inputs_of,
    read_object,
    sentences,
)


def read_request(model, body):
    """The request in a body, as a route gets it."""
    try:
        return model.model_validate(read_object(body))
    except ValidationError as error:
        (first, *_) = error.errors()
        raise invalid({**first, "loc": ("body", *first["loc"])}, model) from None


def refusal(body, model=PredictRequest):
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()

    def read():
        inputs_of(read_request(model, raw), Limits(max_length=20, max_texts=3))

    with pytest.raises(Problem) as refused:
        read()
    json.loads(refused.value.body())  # can be said at all
    assert len(refused.value.message) < 400
    return refused.value


def test_a_whole_request_is_read():
    body = {"texts": ["我爱中国", "ja"], "n_best": 2, "beam_size": 3, "length_penalty": 0.5}
    parsed = read_request(PredictRequest, json.dumps(body).encode())
    assert inputs_of(parsed, Limits()) == [("我爱中国", "texts[0]"), ("ja", "texts[1]")]
    assert (parsed.n_best, parsed.beam_size, parsed.length_penalty) == (2, 3, 0.5)
    assert read_request(PredictRequest, b'{"texts": []}').texts == []
    assert read_object(b'\xef\xbb\xbf{"text": "a"}') == {"text": "a"}  # with a byte order mark
    assert read_request(PredictRequest, b'{"text": "a", "length_penalty": 1}').length_penalty == 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "body must be JSON; got expecting value at character 0."),
        (b'{"text": "a"', "body must be JSON; got expecting ',' delimiter at character 12."),
        (b"\xff{}", "body must be UTF-8; got a bad byte at 0."),
        (b"[1]", "body must be a JSON object; got [1]."),
        (b'"text"', "body must be a JSON object; got 'text'."),
        (b"[" * 100_000, "body must be JSON; got brackets nested too deep."),
        (b'{"a":' * 100_000, "body must be JSON; got brackets nested too deep."),
        (b'{"text": NaN}', "body must be JSON; got NaN, which is no number in JSON."),
        (b'{"a": -Infinity}', "body must be JSON; got -Infinity, which is no number in JSON."),
        (b'{"a": 1' + b"0" * 5000 + b"}", "body must be JSON; got a number with too many digits."),
        (
            b'{"text": "a", "n_best": 1, "text": "b"}',
            "members must have different names; got 'text' twice.",
        ),
        (
            b'{"records": [{"text": "a", "aspect": "b", "\\u0061spect": "c"}]}',
            "members must have different names; got 'aspect' twice.",
        ),
    ],
    ids=range(12),
)
def test_what_is_no_json_object_is_refused(body, message):
    with pytest.raises(Problem) as refused:
        read_object(body)
    assert (refused.value.status, refused.value.message) == (400, message)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"text": 5}, "text must be text; got 5."),
        ({"text": True}, "text must be text; got True."),
        ({"texts": "ja"}, "texts must be a list; got 'ja'."),
        ({"texts": ["ja", 5]}, "texts[1] must be text; got 5."),
        ({"text": "ja", "beam_size": "4"}, "beam_size must be a whole number; got '4'."),
        ({"text": "ja", "beam_size": 2.5}, "beam_size must be a whole number; got 2.5."),
        ({"text": "ja", "beam_size": True}, "beam_size must be a whole number; got True."),
        ({"text": "ja", "beam_size": 0}, "beam_size must be at least 1; got 0."),
        ({"text": "ja", "n_best": None}, "n_best must be a whole number; got None."),
        ({"text": "ja", "alignments": 1}, "alignments must be true or false; got 1."),
        ({"text": "ja", "beam": 4}, "'beam' is no member of the request. Did you mean beam_size?"),
        ({}, "request must have one of text, texts and records; got none."),
        (
            {"text": "ja", "texts": []},
            "request must have one of text, texts and records; got text and texts.",
        ),
        ({"text": ""}, "text must hold something to read; got an empty text."),
        ({"text": " \t\u3000\n"}, "text must hold something to read; got an empty text."),
        ({"text": "\u200b \ufeff\u202e"}, "text must hold something to read; got an empty text."),
        ({"texts": ["ja", ""]}, "texts[1] must hold something to read; got an empty text."),
        ({"text": "a\x00"}, r"text must hold no control characters; got '\x00' at 1."),
        ({"text": "a\x85b"}, r"text must hold no control characters; got '\x85' at 1."),
        ({"text": "x" * 21}, "text must be at most 20 characters long; got 21. Send it in parts."),
    ],
    ids=range(20),
)
def test_a_wrong_member_is_named_with_its_rule(members, message):
    problem = refusal(members)
    assert (problem.status, problem.message) == (422, message)


def test_an_infinite_number_is_no_number():
    problem = refusal(b'{"text": "ja", "length_penalty": 1e999}')
    assert problem.message == "length_penalty must be a finite number; got inf."


def test_half_a_surrogate_pair_is_refused_and_a_whole_one_is_text():
    problem = refusal(b'{"text": "ab\\ud83d"}')
    assert problem.message == "text must be Unicode; got half a surrogate pair at 2."
    problem = refusal(b'{"\\ud83d": 5, "text": "ja"}')
    assert problem.message.startswith("name of a member must be Unicode")
    assert refusal(b'{"text": ["\\ud83d"]}').message == r"text must be text; got ['\ud83d']."
    whole = read_request(PredictRequest, b'{"text": "\\ud83d\\ude00"}')
    assert inputs_of(whole, Limits()) == [("😀", "text")]


def test_too_many_texts_are_too_large():
    problem = refusal({"texts": ["ja"] * 4})
    assert problem.status == 413
    assert problem.message == "texts must be at most 3; got 4. Send them in several requests."


def test_a_megabyte_is_not_quoted():
    problem = refusal({"text": "ja", "run": 5, "x" * 1_000_000: 1})
    assert len(problem.body()) < 400
    assert len(refusal({"texts": {"a": "b" * 1_000_000}}).body()) < 400


def test_rows_and_plans_have_rules_of_their_own():
    rows = read_request(RowsRequest, b'{"text": "ja", "layer": 1, "head": "mean", "keys": [0, 3]}')
    assert (rows.kind, rows.layer, rows.head, rows.keys) == ("cross", 1, "mean", [0, 3])
    for members, message in [
        ({"text": "ja", "kind": "sideways"}, "kind must be 'cross', 'encoder' or 'decoder'"),
        ({"text": "ja", "layer": -1}, "layer must be at least 0; got -1."),
        ({"text": "ja", "layer": "last"}, "layer must be"),
        ({"text": "ja", "queries": [0, -3]}, "queries[1] must be at least 0; got -3."),
        ({"text": "ja", "keys": [1]}, "keys must be at least 2 long; got [1]."),
        ({"text": "ja", "queries": []}, "queries must be at least 1 long; got []."),
        ({"text": "ja", "queries": [1] * 1025}, "queries must be at most 1024 long"),
        ({"layer": 1}, "text must be given; got ['layer']."),
    ]:
        assert refusal(members, RowsRequest).message.startswith(message)
    problem = refusal({"mask": "causal()", "queries": 10**9}, ExplainRequest)
    assert problem.message == "queries must be at most 1048576; got 1000000000."
    assert "text must be given" in refusal({}, AttentionRequest).message


def test_limits_grow_with_the_longest_text_and_are_checked():
    assert Limits().max_body == 1 << 20
    assert Limits(max_length=10**6).max_body > 6 * 10**6
    assert sentences("x" * 10_000) == 51
    for name in ("max_batch", "queue", "max_length", "max_texts", "max_beam", "max_looked"):
        with pytest.raises(SettingError, match=f"{name} must be at least 1; got 0"):
            Limits(**{name: 0})
    for name in ("timeout", "patience"):
        with pytest.raises(SettingError, match=f"{name} must be above 0; got 0"):
            Limits(**{name: 0})
