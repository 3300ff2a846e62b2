"""Two documents in one page."""

from dataclasses import replace

import pytest

from regard.errors import DataError
from regard.viewer import Document, Example, Token, View, beside

EXAMPLE = Example(
    source="ja",
    output="nee",
    source_tokens=(Token(text="ja", start=0, end=2),),
    output_tokens=(Token(text="nee", start=0, end=3),),
)
SMALL = Document(
    title="Ja",
    task="translation",
    model="small",
    examples=(EXAMPLE, EXAMPLE),
    source_language="nl",
    output_language="nl",
    opening=View(kind="cross"),
)
LARGE = replace(
    SMALL, title="Large", model="large", examples=(EXAMPLE,), output_language="af", opening=None
)


def test_examples_of_both_follow_each_other_with_their_models_names() -> None:
    both = beside(SMALL, LARGE)
    assert [example.label for example in both.examples] == ["small", "small", "large"]
    assert (both.title, both.model, both.opening) == ("Ja", "small · large", SMALL.opening)
    assert (both.source_language, both.output_language) == ("nl", None)
    assert Document.from_json(both.to_json()) == both


def test_labels_may_be_given_or_are_the_titles_of_one_model() -> None:
    edited = replace(SMALL, title="Muted", examples=(replace(EXAMPLE, label="head 3"),))
    both = beside(SMALL, edited)
    assert [example.label for example in both.examples] == ["Ja", "Ja", "Muted: head 3"]
    assert both.model == "small"
    named = beside(SMALL, LARGE, labels=("before", "after"))
    assert [example.label for example in named.examples] == ["before", "before", "after"]


def test_what_cannot_be_told_apart_or_is_not_there_is_refused() -> None:
    with pytest.raises(DataError, match=r"labels must differ; got 'Ja' twice\. Pass labels=\."):
        beside(SMALL, SMALL)
    with pytest.raises(DataError, match="documents must have examples to stand side by side"):
        beside(SMALL, replace(LARGE, examples=()))
