import itertools

import pytest

from regard.text.languages import main_script, misplaced, side_script

PEOPLE = ["the man", "a woman", "the child", "my friend", "this teacher"]
DOES = ["reads the book", "sees the house", "drinks some water", "buys a car", "knows nothing"]
LEUTE = ["der Mann", "eine Frau", "das Kind", "mein Freund", "dieser Lehrer"]
TUT = ["liest das Buch", "sieht das Haus", "trinkt etwas Wasser", "kauft ein Auto", "weiß nichts"]
ENGLISH = [f"{who} {does} today." for who, does in itertools.product(PEOPLE, DOES)]
GERMAN = [f"{wer} {tut} heute." for wer, tut in itertools.product(LEUTE, TUT)]
CHINESE = ["我爱中国。", "Tom认识我。", "你好！", "东京是城市。", "他在看书。"]
PLAIN = ["I love China.", "Tom knows me.", "Hello!", "Tokyo is a city.", "He reads."]


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("我爱Tom和中国", "Han or kana"),
        ("Привет, Tom", "Cyrillic"),
        ("Ελλάδα", "Greek"),
        ("1 + 1", ""),
    ],
)
def test_the_main_script_is_that_of_most_letters(text, script):
    assert main_script(text) == script


def test_a_side_without_letters_has_no_script():
    assert side_script(["1", "2"]) == ""


def test_right_pairs_are_left_alone():
    for sources, targets in ((ENGLISH, GERMAN), (CHINESE, PLAIN), (["1"], ["1"])):
        placement = misplaced(sources, targets)
        assert not placement.exchanged
        assert not placement.source_in_target
        assert not placement.target_in_source


def test_exchanged_sides_are_found_by_script():
    sources, targets = [PLAIN[0], *CHINESE[1:]], [CHINESE[0], *PLAIN[1:]]
    assert misplaced(sources, targets).exchanged == (0,)


def test_exchanged_sides_are_found_by_what_the_languages_look_like():
    sources, targets = list(ENGLISH), list(GERMAN)
    for i in (3, 11):
        sources[i], targets[i] = targets[i], sources[i]
    assert misplaced(sources, targets).exchanged == (3, 11)


def test_a_side_in_the_others_language_is_found():
    sources, targets = list(ENGLISH), list(GERMAN)
    sources[4], targets[7] = GERMAN[12], ENGLISH[20]
    placement = misplaced(sources, targets)
    assert placement.source_in_target == (4,)
    assert placement.target_in_source == (7,)
    assert placement.exchanged == ()
    assert misplaced(["Hello you", *CHINESE], ["Hi", *PLAIN]).source_in_target == (0,)


def test_equal_sides_are_no_evidence():
    placement = misplaced([*ENGLISH, "der Mann liest"], [*GERMAN, "der Mann liest"])
    assert placement.source_in_target == ()
