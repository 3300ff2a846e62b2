"""English inflection, word by word."""

import pytest
from tools.phrasebook.lexicon.verbs import ACTIONS, ACTIVITIES, DAILY, DEEDS, MILESTONES
from tools.phrasebook.morphology import (
    agreeing,
    article,
    be,
    comparative,
    inflect,
    plural,
    superlative,
)

FORMS = ("third", "past", "participle", "ing")


@pytest.mark.parametrize(
    ("verb", "expected"),
    [
        ("love", "loves loved loved loving"),
        ("study", "studies studied studied studying"),
        ("play", "plays played played playing"),
        ("watch", "watches watched watched watching"),
        ("fix", "fixes fixed fixed fixing"),
        ("shop", "shops shopped shopped shopping"),
        ("chat", "chats chatted chatted chatting"),
        ("swim", "swims swam swum swimming"),
        ("run", "runs ran run running"),
        ("write", "writes wrote written writing"),
        ("choose", "chooses chose chosen choosing"),
        ("wear", "wears wore worn wearing"),
        ("open", "opens opened opened opening"),
        ("visit", "visits visited visited visiting"),
        ("repair", "repairs repaired repaired repairing"),
        ("wait", "waits waited waited waiting"),
        ("ski", "skis skied skied skiing"),
        ("see", "sees saw seen seeing"),
        ("have", "has had had having"),
        ("go", "goes went gone going"),
        ("get up", "gets_up got_up gotten_up getting_up"),
        ("take care of", "takes_care_of took_care_of taken_care_of taking_care_of"),
        ("quarrel", "quarrels quarreled quarreled quarreling"),
        ("travel", "travels traveled traveled traveling"),
        ("cry", "cries cried cried crying"),
        ("teach", "teaches taught taught teaching"),
    ],
)
def test_verbs(verb, expected):
    assert [inflect(verb, form).replace(" ", "_") for form in FORMS] == expected.split()


@pytest.mark.parametrize(
    ("noun", "expected"),
    [
        ("apple", "apples"),
        ("peach", "peaches"),
        ("strawberry", "strawberries"),
        ("toy", "toys"),
        ("potato", "potatoes"),
        ("photo", "photos"),
        ("piano", "pianos"),
        ("box", "boxes"),
        ("bus", "buses"),
        ("knife", "knives"),
        ("scarf", "scarves"),
        ("wolf", "wolves"),
        ("bookshelf", "bookshelves"),
        ("mouse", "mice"),
        ("child", "children"),
        ("woman", "women"),
        ("sheep", "sheep"),
        ("TV series", "TV series"),
        ("police officer", "police officers"),
        ("steamed bun", "steamed buns"),
        ("toothbrush", "toothbrushes"),
        ("secretary", "secretaries"),
    ],
)
def test_plurals(noun, expected):
    assert plural(noun) == expected


@pytest.mark.parametrize(
    ("adjective", "more", "most"),
    [
        ("tall", "taller", "tallest"),
        ("big", "bigger", "biggest"),
        ("thin", "thinner", "thinnest"),
        ("sweet", "sweeter", "sweetest"),
        ("new", "newer", "newest"),
        ("safe", "safer", "safest"),
        ("noisy", "noisier", "noisiest"),
        ("shy", "shyer", "shyest"),
        ("quiet", "quieter", "quietest"),
        ("simple", "simpler", "simplest"),
        ("tired", "more tired", "most tired"),
        ("famous", "more famous", "most famous"),
        ("expensive", "more expensive", "most expensive"),
        ("well-known", "more well-known", "most well-known"),
        ("good", "better", "best"),
        ("polite", "more polite", "most polite"),
        ("brave", "braver", "bravest"),
        ("dry", "drier", "driest"),
    ],
)
def test_comparison(adjective, more, most):
    assert (comparative(adjective), superlative(adjective)) == (more, most)


@pytest.mark.parametrize(
    ("following", "expected"),
    [("apple", "an"), ("umbrella", "an"), ("university", "a"), ("hour", "an"), ("dog", "a")],
)
def test_articles(following, expected):
    assert article(following) == expected


def test_agreement():
    assert [be(person) for person in ("first", "singular", "plural")] == ["am", "is", "are"]
    assert [be(person, past=True) for person in ("first", "singular", "plural")] == [
        "was",
        "was",
        "were",
    ]
    assert agreeing("watch TV", "singular") == "watches TV"
    assert agreeing("watch TV", "first") == "watch TV"


def test_every_verb_of_the_lexicon_has_plausible_forms():
    for verb in (*ACTIONS, *DEEDS, *ACTIVITIES, *DAILY, *MILESTONES):
        past = verb.forms["past"].en[0]
        assert verb.forms["ing"].en[0].endswith("ing")
        assert past.endswith("ed") or past == inflect(verb.en, "past").split()[0]
        assert "eed" not in past
        assert not past.endswith(("yed", "eded")) or past.endswith(("ayed", "oyed"))
