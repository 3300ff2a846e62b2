"""Searches as plain data: read back as written, and refused where they contradict themselves."""

import json
from dataclasses import replace
from typing import Any

import pytest

from regard.errors import DataError
from regard.viewer import Document, Example, SearchTree, Token
from regard.viewer.search import Beginning, Extension, SearchAnswer

END = Token(text="⟨end⟩", start=2, end=2)


def search() -> SearchTree:
    first = Beginning(
        parent=-1,
        text="",
        log_prob=0.0,
        extensions=(
            Extension(text="ja", probability=0.75, outcome="kept"),
            Extension(text="je", probability=0.2, outcome="kept"),
        ),
    )
    end = Extension(text="⟨end⟩", probability=0.5, outcome="ended")
    held = tuple(
        Beginning(parent=0, text=text, log_prob=log_prob, extensions=(end,))
        for text, log_prob in (("ja", -0.2877), ("je", -1.6094))
    )
    return SearchTree(
        beam_size=2,
        steps=((first,), held),
        path=(0, 0),
        probabilities=(0.75, None),
        answers=(SearchAnswer(text="ja", score=-0.98, log_prob=-0.98, is_finished=True),),
    )


def document() -> Document:
    example = Example(
        source="ja",
        output="ja",
        source_tokens=(END,),
        output_tokens=(Token(text="ja", start=0, end=2), END),
        search=search(),
    )
    return Document(title="", task="", model="", examples=(example,))


def test_a_search_is_read_as_it_was_written() -> None:
    assert Document.from_json(document().to_json()) == document()
    given = replace(search(), beam_size=None, answers=())
    shown = replace(document(), examples=(replace(document().examples[0], search=given),))
    assert Document.from_json(shown.to_json()) == shown


BROKEN: dict[str, tuple[list[Any], Any]] = {
    r"search\.beam_size must be a whole number; got '2'": (["beam_size"], "2"),
    r"search must have a member 'parent'": (["steps", 0, 0], {"text": ""}),
    r"search\.steps\[0\]\.beginnings\[0\]\.text must be text": (["steps", 0, 0, "text"], 1),
    r"outcome must be one of dropped, ended, kept; got 'lost'": (
        ["steps", 0, 0, "extensions", 0, "outcome"],
        "lost",
    ),
    r"probability must be between 0 and 1; got 1\.5": (["probabilities", 0], 1.5),
    r"probabilities must be as many as steps, 2; got 2 and 1": (["probabilities"], [0.5]),
    r"places among the 2 beginnings of step 1; got 2": (["path", 1], 2),
    r"among the 1 beginnings of the step before; got \[0, 1\] at step 1": (
        ["steps", 1, 1, "parent"],
        1,
    ),
    r"answers\[0\]\.score must be a number": (["answers", 0, "score"], None),
    r"answers\[0\]: log_prob must be finite": (["answers", 0, "log_prob"], float("inf")),
}


@pytest.mark.parametrize("message", BROKEN)
def test_a_search_that_contradicts_itself_is_refused(message: str) -> None:
    path, value = BROKEN[message]
    members = json.loads(document().to_json())
    place = members["examples"][0]["search"]
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    with pytest.raises(DataError, match=message.replace("search must have", "must have")):
        Document.from_json(json.dumps(members))
