"""From words to sentences."""

from tools.phrasebook.grammar import build, word
from tools.phrasebook.surface import finish

TOM = word("汤姆", "Tom")


def words(text, spans):
    return [text[start:end] for start, end in spans]


def test_a_statement_gets_its_full_stops_and_they_are_linked():
    phrase = finish(build("{who} 走#go 了~go", "{who} left#go", who=TOM))
    assert (phrase.source, phrase.target) == ("汤姆走了。", "Tom left.")
    assert (3, 2) in phrase.sure


def test_without_a_chinese_full_stop_the_english_one_has_no_link():
    phrase = finish(build("{who} 走#go 了~go", "{who} left#go", who=TOM), stop=False)
    assert (phrase.source, phrase.target) == ("汤姆走了", "Tom left.")
    assert 2 not in {j for _, j in phrase.possible}


def test_a_question_keeps_its_own_mark():
    phrase = finish(build("谁#who 走#go 了~go ？#end", "who#who left#go ?#end"))
    assert (phrase.source, phrase.target) == ("谁走了？", "Who left?")


def test_a_becomes_an_by_the_word_that_follows():
    apple = word("苹果", "apple")
    red = word("红", "red")
    assert finish(build("{x}", "a {x}", x=apple)).target == "An apple."
    assert finish(build("{c} {x}", "a {c} {x}", c=red, x=apple)).target == "A red apple."


def test_an_owner_is_one_word_surely_linked_to_the_owner_alone():
    phrase = finish(build("{who} 的#of 书#book", "{who} 's#of book#book", who=TOM))
    assert words(phrase.target, phrase.target_words) == ["Tom's", "book", "."]
    assert {link for link in phrase.possible if link[1] == 0} == {(0, 0), (1, 0)}
    assert (0, 0) in phrase.sure
    assert (1, 0) not in phrase.sure


def test_the_target_is_the_first_reference():
    phrase = finish(TOM)
    assert phrase.references[0] == phrase.target
