"""Documents are read back as written, and refused by name where they are broken."""

import json
from dataclasses import replace

import pytest

from regard.errors import DataError
from regard.viewer import (
    Change,
    Document,
    Example,
    GoldLinks,
    HeadLines,
    HeadMap,
    HeadVectors,
    Importance,
    LayerSummary,
    SearchTree,
    Token,
    View,
    beside,
    pack,
    pack_integers,
)
from regard.viewer.search import Beginning, Extension, SearchAnswer

H, N = 2, 3
LINE = HeadLines(values=pack([[0.5] * N] * H))
SUMMARY = LayerSummary(  # of the source's three tokens, in two heads
    kind="encoder",
    layer=1,
    heads=(0, 3),
    measures={"entropy": (0.5, None)},
    entropy=LINE,
    distance=HeadLines(values=pack([[1.0, 2.0]] * H), places=2),
    first=LINE,
    received=HeadLines(values=pack([[0.5, 1.5, 1.0]] * H, scale="log")),
    pooled=pack([[[1.0, 1.0], [1.0, 0.0]]] * H, scale="log"),
    bucket=(2, 2),
    start=(1, 0),
    top_heads=(3,),
    top_keys=pack_integers([[[0, 1], [1, -1], [2, 0]]]),
    top_weights=pack([[[0.9, 0.1], [1.0, 0.0], [0.6, 0.4]]], scale="log"),
    rows=pack([[[0.2, 0.3, 0.5]] * N] * H),
)
ENDED = Extension(text="⟨end⟩", probability=0.5, outcome="ended")
SEARCH = SearchTree(
    beam_size=2,
    steps=(
        (
            Beginning(
                parent=-1,
                text="",
                log_prob=0.0,
                extensions=(
                    Extension(text="ja", probability=0.75, outcome="kept"),
                    Extension(text="je", probability=0.2, outcome="kept"),
                ),
            ),
        ),
        (
            Beginning(parent=0, text="ja", log_prob=-0.2877, extensions=(ENDED,)),
            Beginning(parent=0, text="je", log_prob=-1.6094, extensions=(ENDED,)),
        ),
    ),
    path=(0, 0),
    probabilities=(0.75, None),
    answers=(SearchAnswer(text="ja", score=-0.98, log_prob=-0.98, is_finished=True),),
)
PLAIN = Example(
    source="我爱你",
    output="I do",
    source_tokens=tuple(Token(text=c, start=i, end=i + 1) for i, c in enumerate("我爱你")),
    output_tokens=(Token(text="I", start=0, end=1), Token(text="▁do", start=2, end=4)),
    maps=(
        HeadMap(kind="cross", layer=0, head=0, rows=((0.123456, 0.5, 0.0), (1 / 3, 0.0, 2e-7))),
        HeadMap(kind="encoder", layer=1, head="mean", rows=((1 / 3,) * N,) * N),
        HeadMap(kind="decoder", layer=0, head=2, rows=((1.0, 0.0), (0.5, 0.5))),
    ),
    score=-1.25,
    gold=GoldLinks(sure=((0, 0),), possible=((2, 1),)),
)
FULL = replace(
    PLAIN,
    summaries=(SUMMARY,),
    started=False,
    label="mine",
    search=SEARCH,
    changes=(Change(edit="head 1 muted", output="I", score=-3.0),),
    importances=(Importance(method="leave one out", values=(0.1, 0.5, 0.0), output=1),),
    segments=(0, 1, 1),
    vectors=(
        HeadVectors(
            kind="encoder",
            layer=1,
            head=3,
            query=pack([[0.5, 1.0]] * N, bits=32),
            key=pack([[0.5, 1.0]] * N),
            scale=0.7,
            softcap=30.0,
            bias=pack([[0.0, 1.0, 2.0]] * N),
        ),
    ),
)


def document(example):
    return Document(
        title="A title",
        task="translation",
        model="tiny",
        examples=(example,),
        source_language="zh",
        opening=View(kind="cross", layer=0, head=0),
    )


def members_of(example):
    return json.loads(document(example).to_json())


def test_everything_survives_a_round_trip():
    for search in (SEARCH, replace(SEARCH, beam_size=None, answers=())):
        written = document(replace(FULL, search=search))
        assert Document.from_json(written.to_json()) == written


def test_weights_keep_four_significant_digits_and_json_names_its_version():
    members = members_of(PLAIN)
    assert (members["format"], members["version"]) == ("regard.attention", 3)
    rows = members["examples"][0]["maps"][0]["rows"]
    assert rows == [[0.1235, 0.5, 0.0], [0.3333, 0.0, 2e-07]]


def test_half_a_surrogate_pair_can_be_written_as_utf8():
    text = document(replace(PLAIN, source="\ud83d我爱你")).to_json()
    assert Document.from_json(text.encode().decode()).examples[0].source[0] == "\ud83d"


def test_unknown_members_are_skipped():
    members = members_of(PLAIN)
    members["summaries"], members["examples"][0]["entropy"] = [1, 2], [0.5]
    assert Document.from_json(json.dumps(members)) == document(PLAIN)


def test_documents_of_versions_1_and_2_are_still_read():
    members = members_of(FULL)
    for summary in members["examples"][0]["summaries"]:
        del summary["top_counts"]
        for one in summary.values():
            if isinstance(one, dict):
                one.pop("steps", None)
    assert Document.from_json(json.dumps({**members, "version": 2})) == document(FULL)
    members = members_of(PLAIN)
    for name in ("summaries", "started", "label", "search", "changes", "importances"):
        del members["examples"][0][name]
    assert Document.from_json(json.dumps({**members, "version": 1})) == document(PLAIN)


# A place in a whole document, what stands there instead, and what is said.
BROKEN = [
    ("format", "other", r"format must be 'regard.attention'; got 'other'"),
    ("version", 4, r"version must be at most 3; got 4.*update"),
    ("version", "1", r"version must be a whole number; got '1'"),
    ("version", True, r"version must be a whole number; got True"),
    ("title", 3, r"title must be text; got 3"),
    ("examples", [{}], r"examples\[0\] must have a member 'source'; got nothing"),
    ("score", "-1", r"examples\[0\].score must be a number; got '-1'"),
    ("score", float("nan"), r"examples\[0\]: score must be finite.*got nan"),
    ("gold.sure", [[0]], r"gold\.sure\[0\] must be a list of 2; got \[0\]"),
    ("gold.sure", [[0, 2]], r"links must be pairs .* of 3 and 2 tokens"),
    ("source_tokens.0.end", 9, r"must lie within the 3 characters of source; got '我' at 0:9"),
    ("maps.0.kind", "self", r"maps\[0\]: kind must be one of cross, .*; got 'self'"),
    ("maps.0.layer", -1, r"maps\[0\]: layer must be at least 0; got -1"),
    ("maps.0.head", "all", r"maps\[0\].head must be a whole number; got 'all'"),
    ("maps.0.rows", [[1], [1]], r"rows of a cross map must be 2 × 3 weights; got 2 × 1"),
    ("maps.0.rows", [[1.5]], r"maps\[0\]: weights must be between 0 and 1; got 1.5"),
    ("started", 1, r"examples\[0\].started must be true or false; got 1"),
    ("summaries", 3, r"examples\[0\].summaries must be a list; got 3"),
    ("changes", [{"edit": "x"}], r"must have a member 'output'; got edit"),
    ("importances.0.values", [1.0], r"a value for each of 3 tokens; got 1 of 'leave one out'"),
    ("importances.0.values", [1, 2, float("nan")], r"importances must be finite; got nan of"),
    ("summaries.0.kind", "self", r"summaries\[0\]: kind must be one of .*; got 'self'"),
    ("summaries.0.layer", -1, r"summaries\[0\]: layer must be at least 0; got -1"),
    ("summaries.0.bucket", [1], r"summaries\[0\]\.bucket must be a list of 2; got \[1\]"),
    ("summaries.0.bucket", [0, 1], r"bucket must be at least 1; got 0"),
    ("summaries.0.bucket", [9, 9], r"\[2, 1, 1\]; got \[2, 2, 2\]"),
    ("summaries.0.measures", {"x": [1.0]}, r"have a number for each of 2 heads; got 1"),
    ("summaries.0.measures", {"x": ["a", 1]}, r"measures\.x\[0\] must be a number; got 'a'"),
    ("summaries.0.top_heads", [2], r"top_heads must be among heads; got 2"),
    ("summaries.0.top_counts", [1, 1, 1], r"a number for each of . top_heads; got 3"),
    ("summaries.0.top_keys", None, r"top_keys and top_weights must be given together"),
    ("summaries.0.rows", 4, r"summaries\[0\].rows must be an object; got 4"),
    ("summaries.0.rows.steps", 1, r"rows.steps must be true or false; got 1"),
    ("summaries.0.rows.bits", 9, r"rows: bits must be 8, 16 or 32; got 9"),
    ("summaries.0.rows.data", "", r"rows: data must hold 18 bytes.*got 0"),
    ("summaries.0.rows.shape", [2, 9], r"rows must .* \[2, 3, 3\]; got \[2, 9\]"),
    ("summaries.0.entropy.values.shape", [2, 3, 1], r"shape \[2, 3\]; got \[2, 3, 1\]"),
    ("summaries.0.entropy", {"places": 1}, r"entropy must have a member 'values'; got places"),
    ("segments", [0, 1], r"segments must be 0 or 1 for each of 3 tokens; got \[0, 1\] of 2"),
    ("segments", [0, 1, 2], r"segments must be 0 or 1 for each of 3 tokens; got \[0, 1, 2\]"),
    ("vectors.0.kind", "self", r"vectors\[0\]: kind must be one of .*; got 'self'"),
    ("vectors.0.head", -1, r"vectors\[0\]: head must be at least 0; got -1"),
    (
        "vectors.0.key.shape",
        [2, 3],
        r"key must be of shape \[3, 2\]; got \[2, 3\] in encoder layer 1",
    ),
    ("vectors.0.bias.shape", [9, 1], r"bias must be of shape \[3, 3\]; got \[9, 1\]"),
    ("search.beam_size", "2", r"search\.beam_size must be a whole number; got '2'"),
    ("search.steps.0.0", {"text": ""}, r"must have a member 'parent'"),
    ("search.steps.0.0.text", 1, r"search\.steps\[0\]\[0\]\.text must be text"),
    (
        "search.steps.0.0.extensions.0.outcome",
        "lost",
        r"outcome must be one of dropped, ended, kept; got 'lost'",
    ),
    ("search.probabilities.0", 1.5, r"probability must be between 0 and 1; got 1\.5"),
    ("search.probabilities", [0.5], r"must be as many as steps, 2; got 2 and 1"),
    ("search.path.1", 2, r"indices among the 2 beginnings of step 1; got 2"),
    ("search.steps.1.1.parent", 1, r"among the 1 beginnings .* before; got \[0, 1\] at step 1"),
    ("search.answers.0.score", None, r"answers\[0\]\.score must be a number"),
    ("search.answers.0.log_prob", float("inf"), r"answers\[0\]: log_prob must be finite"),
]


@pytest.mark.parametrize(("path", "value", "message"), BROKEN)
def test_what_cannot_be_read_is_named(path, value, message):
    members = members_of(FULL)
    *names, last = (int(name) if name.isdigit() else name for name in path.split("."))
    node = members if names == [] and last in members else members["examples"][0]
    for name in names:
        node = node[name]
    node[last] = value
    with pytest.raises(DataError, match=message):
        Document.from_json(json.dumps(members))


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", r"document must be JSON; got '\{'…"), ("[1]", r"document must be an object; got \[1\]")],
)
def test_what_is_no_document_is_named(text, message):
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


def test_ambiguous_or_missing_names_are_refused():
    with pytest.raises(DataError, match=r"labels must differ; got 'Ja' twice\. Pass labels=\."):
        beside(SMALL, SMALL)
    with pytest.raises(DataError, match="documents must have examples to stand side by side"):
        beside(SMALL, replace(LARGE, examples=()))
