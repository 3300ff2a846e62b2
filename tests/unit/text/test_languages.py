import pytest

from regard.text.languages import main_script, misplaced, side_script

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
    for sources, targets in ((["Hello"], ["Hallo"]), (CHINESE, PLAIN), (["1"], ["1"])):
        assert not any(misplaced(sources, targets).values())


def test_exchanged_sides_are_found_by_script():
    sources, targets = [PLAIN[0], *CHINESE[1:]], [CHINESE[0], *PLAIN[1:]]
    assert misplaced(sources, targets)["exchanged"] == [0]


def test_a_side_in_the_others_script_is_found():
    placement = misplaced(["Hello you", *CHINESE, "你"], ["Hi", *PLAIN, "我"])
    assert placement == {"exchanged": [], "source": [0], "target": [len(CHINESE) + 1]}


def test_equal_sides_are_no_evidence():
    assert misplaced([*CHINESE, "Tom"], [*PLAIN, "Tom"])["source"] == []
