import pytest

from regard.text.languages import (
    are_exchanged,
    guess_language,
    markup,
    misplaced,
    misreading,
    stray_character,
)

CHINESE = ["我爱中国。", "Tom认识我。", "你好！", "东京是城市。", "他在看书。"]
PLAIN = ["I love China.", "Tom knows me.", "Hello!", "Tokyo is a city.", "He reads."]


def test_right_pairs_are_left_alone():
    for sources, targets in ((["Hello"], ["Hallo"]), (CHINESE, PLAIN), (["1"], ["1"])):
        assert not any(misplaced(sources, targets).values())


def test_sides_in_the_others_script_are_found():
    sources, targets = [PLAIN[0], *CHINESE[1:]], [CHINESE[0], *PLAIN[1:]]
    assert misplaced(sources, targets)["exchanged"] == [0]
    placement = misplaced(["Hello you", *CHINESE, "你"], ["Hi", *PLAIN, "我"])
    assert placement == {"exchanged": [], "source": [0], "target": [len(CHINESE) + 1]}


def test_half_of_the_pairs_may_be_exchanged():
    sources = ["Tom!", CHINESE[2], *PLAIN[3:], CHINESE[0]]
    targets = ["Tom.", PLAIN[2], *CHINESE[3:], PLAIN[0]]
    assert misplaced(sources, targets)["exchanged"] == [2, 3]
    assert misplaced(targets, sources)["exchanged"] == [2, 3]


def test_equal_sides_are_no_evidence():
    assert misplaced([*CHINESE, "Tom"], [*PLAIN, "Tom"])["source"] == []


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("我昨天和他一起去了北京。", "zh"),
        ("私は昨日、彼と一緒に東京へ行きました。", "ja"),
        ("나는 어제 그와 함께 서울에 갔다.", "ko"),
        ("Я вчера ездил с ним в Москву.", "ru"),
        ("The man and the woman are not in the house.", "en"),
        ("Der Mann und die Frau sind nicht auf der Straße.", "de"),
        ("L'homme et la femme ne sont pas dans la maison.", "fr"),
        ("El hombre y la mujer no están en la casa.", "es"),
        ("De man en de vrouw zijn niet op het plein.", "nl"),
        ("他说「の」是一个日文的字，我不知道是什么意思。", "zh"),
        ("12 345 — !?", None),
        ("", None),
    ],
)
def test_languages_are_known_by_letters_or_little_words(text, language):
    assert guess_language([text] * 3) == language


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("schöner Tag", "cp1252"),
        ("schöner Tag", "latin-1"),
        ("it’s ‘fine’", "cp1252"),
        ("Это по-русски", "latin-1"),
        ("我爱中国", "latin-1"),
        ("我爱中国", "gb18030"),
        ("他们在学校学", "gb18030"),
    ],
)
def test_utf8_read_as_something_else_is_found(text, encoding):
    read_wrongly = text.encode().decode(encoding)
    assert "should be" in misreading(f"x {read_wrongly} y")
    assert misreading(text) is None


@pytest.mark.parametrize("text", ["a\ufffdb", "锟斤拷锟斤拷", "ï¿½"])
def test_lost_characters_are_found(text):
    assert "lost" in misreading(text)


@pytest.mark.parametrize(
    "text", ["Ärger à la carte", "联通", "À ÉTÉ", "«Ça va?»", "中国人民解放军", "Â", "Ünïcödé"]
)
def test_honest_text_is_not_suspected(text):
    assert misreading(text) is None


def test_stray_characters_are_named():
    assert stray_character("it\x92s") == "U+0092"
    assert stray_character("a\x00b") == "U+0000"
    assert stray_character("\ue5d2") == "U+E5D2"
    assert stray_character("é 我 👩‍🚀 e\u0301") is None


def test_markup_is_entities_and_tags():
    assert markup("stone &amp; tile") == "&amp;"
    assert markup("it&#39;s") == "&#39;"
    assert markup('<a href="x">y</a>') == '<a href="x">'
    assert markup("R&D; 3 < 4 > 2; <3") is None


@pytest.mark.parametrize(
    ("languages", "expected"),
    [(("zh", "en"), False), (("en", "zh"), True), (("en", None), False), (("de", "en"), False)],
)
def test_sides_are_exchanged_where_each_is_in_the_language_of_the_other(languages, expected):
    sources, targets = ["我们要去北京", "你是谁"], ["We want to go to Beijing", "Who are you"]
    assert are_exchanged(sources, targets, languages) is expected
