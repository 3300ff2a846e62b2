"""Which combinations are kept for the split "new"."""

import pytest
from tools.phrasebook.grammar import build, word
from tools.phrasebook.held_out import CONSTRUCTION_PAIRS, PARTNERS, is_new
from tools.phrasebook.lexicon.verbs import ACTIONS, LIKINGS


def test_the_shown_sentence_is_not_a_new_combination():
    assert "中国" not in PARTNERS.get("爱", frozenset())
    assert "爱" not in PARTNERS.get("中国", frozenset())


def test_two_words_kept_apart_make_a_sentence_new():
    first, others = next(iter(sorted(PARTNERS.items())))
    second = min(others)
    assert is_new(build(f"{first} {second}", "x"))
    assert not is_new(word(first, "x"))


def test_two_constructions_kept_apart_make_a_sentence_new():
    first, second = sorted(min(CONSTRUCTION_PAIRS, key=sorted))
    inner = build("x", "x", name=second)
    assert is_new(build("{x}", "{x}", x=inner, name=first))
    assert not is_new(inner)


@pytest.mark.parametrize("verb", [*ACTIONS, *LIKINGS], ids=lambda verb: f"{verb.zh}-{verb.en}")
def test_a_verb_keeps_most_of_its_objects(verb):
    objects = {noun.zh for noun in verb.objects}
    assert len(objects & PARTNERS.get(verb.zh, frozenset())) <= len(objects) / 3
