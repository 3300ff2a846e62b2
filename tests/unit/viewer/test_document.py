import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from regard.errors import DataError
from regard.viewer import (
    Change,
    Document,
    Example,
    GoldLinks,
    HeadLines,
    HeadMap,
    Importance,
    LayerSummary,
    Token,
    View,
    beside,
    importances_of,
    pack,
    pack_integers,
)

S, T = 3, 2


def example(**changes: object) -> Example:
    made = Example(
        source="我爱你",
        output="I do",
        source_tokens=tuple(Token(text=c, start=i, end=i + 1) for i, c in enumerate("我爱你")),
        output_tokens=(Token(text="I", start=0, end=1), Token(text="▁do", start=2, end=4)),
        maps=(
            HeadMap(kind="cross", layer=0, head=0, rows=((0.123456, 0.5, 0.0), (1 / 3, 0.0, 2e-7))),
            HeadMap(kind="encoder", layer=1, head="mean", rows=((1 / 3,) * S,) * S),
            HeadMap(kind="decoder", layer=0, head=2, rows=((1.0, 0.0), (0.5, 0.5))),
        ),
        score=-1.25,
        gold=GoldLinks(sure=((0, 0),), possible=((2, 1),)),
    )
    return replace(made, **changes)


def document(**changes: object) -> Document:
    return Document(
        title="A title",
        task="translation",
        model="tiny",
        examples=(example(**changes),),
        source_language="zh",
        opening=View(kind="cross", layer=0, head=0),
    )


def changed(**members: object) -> str:
    return json.dumps({**json.loads(document().to_json()), **members})


def changed_example(**members: object) -> str:
    first = {**json.loads(document().to_json())["examples"][0], **members}
    return changed(examples=[first])


def with_map(**members: object) -> str:
    return changed_example(maps=[{"kind": "cross", "layer": 0, "head": 0, "rows": [], **members}])


def test_weights_keep_four_significant_digits():
    rows = json.loads(document().to_json())["examples"][0]["maps"][0]["rows"]
    assert rows == [[0.1235, 0.5, 0.0], [0.3333, 0.0, 2e-07]]


def test_json_names_format_and_version():
    members = json.loads(document().to_json())
    assert (members["format"], members["version"]) == ("regard.attention", 3)


def test_half_a_surrogate_pair_can_be_written_as_utf8():
    text = document(source="\ud83d我爱你").to_json()
    assert Document.from_json(text.encode().decode()).examples[0].source[0] == "\ud83d"


def test_unknown_members_are_skipped():
    assert Document.from_json(changed(summaries=[1, 2])) == document()
    assert Document.from_json(changed_example(entropy=[0.5])) == document()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"document must be JSON; got '\{'…"),
        ("[1]", r"document must be an object; got \[1\]"),
        (changed(format="other"), r"format must be 'regard.attention'; got 'other'"),
        (changed(version=4), r"version must be at most 3; got 4.*update"),
        (changed(version="1"), r"version must be a whole number; got '1'"),
        (changed(version=True), r"version must be a whole number; got True"),
        (changed(title=3), r"title must be text; got 3"),
        (changed(examples=[{}]), r"examples\[0\] must have a member 'source'; got nothing"),
        (changed_example(score="-1"), r"examples\[0\].score must be a number; got '-1'"),
        (changed_example(score=float("nan")), r"examples\[0\]: score must be finite.*got nan"),
        (changed_example(gold={"sure": [[0]], "possible": []}), r"sure\[0\] must be a pair"),
        (
            changed_example(gold={"sure": [[0, T]]}),
            r"links must be pairs .* of 3 and 2 tokens",
        ),
        (
            changed_example(source_tokens=[{"text": "我", "start": 0, "end": 9}]),
            r"source_tokens must lie within the 3 characters of source; got '我' at 0:9",
        ),
        (
            with_map(kind="self"),
            r"maps\[0\]: kind must be one of cross, .*; got 'self'",
        ),
        (with_map(layer=-1), r"maps\[0\]: layer must be at least 0; got -1"),
        (with_map(head="all"), r"maps\[0\].head must be a whole number; got 'all'"),
        (
            with_map(rows=[[1], [1]]),
            r"rows of a cross map must be 2 × 3 weights; got 2 × 1",
        ),
        (with_map(rows=[[1.5]]), r"maps\[0\]: weights must be between 0 and 1; got 1.5"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, message: str):
    with pytest.raises(DataError, match=message):
        Document.from_json(text)


H, N = 2, 3


def summary(**changes: object) -> LayerSummary:
    """Of the source's three tokens, in two heads."""
    line = HeadLines(values=pack([[0.5] * N] * H))
    made = LayerSummary(
        kind="encoder",
        layer=1,
        heads=(0, 3),
        measures={"entropy": (0.5, None)},
        entropy=line,
        distance=HeadLines(values=pack([[1.0, 2.0]] * H), places=2),
        first=line,
        received=HeadLines(values=pack([[0.5, 1.5, 1.0]] * H, scale="log")),
        pooled=pack([[[1.0, 1.0], [1.0, 0.0]]] * H, scale="log"),
        bucket=(2, 2),
        start=(1, 0),
        top_heads=(3,),
        top_keys=pack_integers([[[0, 1], [1, -1], [2, 0]]]),
        top_weights=pack([[[0.9, 0.1], [1.0, 0.0], [0.6, 0.4]]], scale="log"),
        rows=pack([[[0.2, 0.3, 0.5]] * N] * H),
    )
    return replace(made, **changes)


def with_summary(**changes: object) -> Document:
    extra = {
        "summaries": (summary(**changes),),
        "started": False,
        "label": "mine",
        "changes": (Change(edit="head 1 muted", output="I", score=-3.0),),
        "importances": (Importance(method="leave one out", values=(0.1, 0.5, 0.0), output=1),),
    }
    return document(**extra)


def changed_summary(**members: object) -> str:
    found = json.loads(with_summary().to_json())
    found["examples"][0]["summaries"][0].update(members)
    return json.dumps(found)


def packed(**members: object) -> dict[str, object]:
    found = json.loads(with_summary().to_json())
    return {**found["examples"][0]["summaries"][0]["rows"], **members}


def with_importance(values: list[float]) -> str:
    return changed_example(importances=[{"method": "x", "values": values}])


def with_entropy(**members: object) -> str:
    return changed_summary(entropy=members)


def test_everything_survives_a_round_trip():
    assert Document.from_json(with_summary().to_json()) == with_summary()


def test_documents_of_version_2_are_still_read():
    members = json.loads(with_summary().to_json())
    for example_members in members["examples"]:
        for summary in example_members["summaries"]:
            del summary["top_counts"]
            for one in summary.values():
                if isinstance(one, dict):
                    one.pop("steps", None)
    assert Document.from_json(json.dumps({**members, "version": 2})) == with_summary()


def test_documents_of_version_1_are_still_read():
    members = json.loads(document().to_json())
    added = ("summaries", "started", "label", "search", "changes", "importances")
    for example_members in members["examples"]:
        for name in added:
            del example_members[name]
    assert Document.from_json(json.dumps({**members, "version": 1})) == document()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (changed_example(started=1), r"examples\[0\].started must be true or false; got 1"),
        (changed_example(summaries=3), r"examples\[0\].summaries must be a list; got 3"),
        (changed_example(changes=[{"edit": "x"}]), r"must have a member 'output'; got edit"),
        (
            with_importance([1.0]),
            r"have a value for each of 3 tokens; got 1 of 'x'",
        ),
        (with_importance([1, 2, float("nan")]), r"importances must be finite; got nan of 'x'"),
        (changed_summary(kind="self"), r"summaries\[0\]: kind must be one of .*; got 'self'"),
        (changed_summary(layer=-1), r"summaries\[0\]: layer must be at least 0; got -1"),
        (changed_summary(bucket=[1]), r"bucket must be a pair \[queries, keys\]; got \[1\]"),
        (changed_summary(bucket=[0, 1]), r"bucket must be at least 1; got 0"),
        (changed_summary(measures={"entropy": [1.0]}), r"have a number for each of 2 heads; got 1"),
        (changed_summary(measures={"x": ["a", 1]}), r"measures.x must be a number; got 'a'"),
        (changed_summary(top_heads=[2]), r"top_heads must be among heads; got 2"),
        (changed_summary(top_counts=[1, 1, 1]), r"a number for each of . top_heads; got 3"),
        (changed_summary(rows=packed(steps=1)), r"rows.steps must be true or false; got 1"),
        (changed_summary(top_keys=None), r"top_keys and top_weights must be given together"),
        (changed_summary(rows=4), r"summaries\[0\].rows must be an object; got 4"),
        (changed_summary(rows=packed(bits=9)), r"rows: bits must be 8, 16 or 32; got 9"),
        (changed_summary(rows=packed(data="")), r"rows: data must hold 18 bytes.*got 0"),
        (
            changed_summary(rows=packed(shape=[2, 9])),
            r"rows must .* \[2, 3, 3\]; got \[2, 9\]",
        ),
        (changed_summary(start=[0, 0], bucket=[1, 2]), r"\[2, 3, 2\]; got \[2, 2, 2\]"),
        (with_entropy(values=packed(), places=1), r"must be of shape \[2, 3\]; got \[2, 3, 3\]"),
        (with_entropy(places=1), r"entropy must have a member 'values'; got places"),
    ],
)
def test_what_cannot_be_read_of_version_2_is_named(text: str, message: str):
    with pytest.raises(DataError, match=message):
        Document.from_json(text)


JA = Example(
    source="ja",
    output="nee",
    source_tokens=(Token(text="ja", start=0, end=2),),
    output_tokens=(Token(text="nee", start=0, end=3),),
)
SMALL = Document(
    title="Ja",
    task="translation",
    model="small",
    examples=(JA, JA),
    source_language="nl",
    output_language="nl",
    opening=View(kind="cross"),
)
LARGE = replace(
    SMALL, title="Large", model="large", examples=(JA,), output_language="af", opening=None
)


def test_examples_of_both_follow_each_other_with_their_models_names():
    both = beside(SMALL, LARGE)
    assert [example.label for example in both.examples] == ["small", "small", "large"]
    assert (both.title, both.model, both.opening) == ("Ja", "small · large", SMALL.opening)
    assert (both.source_language, both.output_language) == ("nl", None)
    assert Document.from_json(both.to_json()) == both


def test_labels_may_be_given_or_are_the_titles_of_one_model():
    edited = replace(SMALL, title="Muted", examples=(replace(JA, label="head 3"),))
    both = beside(SMALL, edited)
    assert [example.label for example in both.examples] == ["Ja", "Ja", "Muted: head 3"]
    assert both.model == "small"
    named = beside(SMALL, LARGE, labels=("before", "after"))
    assert [example.label for example in named.examples] == ["before", "before", "after"]


def test_what_cannot_be_told_apart_or_is_not_there_is_refused():
    with pytest.raises(DataError, match=r"labels must differ; got 'Ja' twice\. Pass labels=\."):
        beside(SMALL, SMALL)
    with pytest.raises(DataError, match="documents must have examples to stand side by side"):
        beside(SMALL, replace(LARGE, examples=()))


def test_attention_comes_first_and_the_others_tell_how_they_agree_with_it():
    found = importances_of(
        SimpleNamespace(
            output=(3, 17),
            evidence={
                "removed": torch.tensor([0.5, -1.23456789]),
                "attention": torch.tensor([0.25, 0.75]),
                "gradient": torch.zeros(2),
            },
            correlation={
                ("removed", "gradient"): 0.9,
                ("removed", "attention"): -0.5,
                ("attention", "gradient"): float("nan"),
            },
        ),
        output=3,
    )
    assert [one.method for one in found] == ["attention", "gradient × input", "leave one out"]
    assert [one.correlation for one in found] == [None, None, -0.5]
    assert found[2].values == (0.5, -1.235)
    assert {one.output for one in found} == {3}
