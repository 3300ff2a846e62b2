"""Function words get the possible links that a careful annotator would add."""

from tools.phrasebook.guideline import function_word_links


def added(chinese, english, links):
    chinese, english = chinese.split(), english.split()
    found = function_word_links(chinese, english, [(i, j, True) for i, j in links])
    assert not any(sure for *_, sure in found)
    return {(chinese[i], english[j]) for i, j, _ in found}


def test_a_preposition_goes_with_the_verb_that_asks_for_it():
    assert added("他 去 韩国", "he goes to Korea", [(0, 0), (1, 1), (2, 3)]) == {("去", "to")}


def test_a_preposition_of_place_does_not_go_with_the_verb():
    assert added("他 在 家 工作", "he now works at home", [(0, 0), (1, 3), (2, 4), (3, 2)]) == set()


def test_be_without_a_counterpart_goes_with_what_opens_the_predicate():
    chinese, english = ["他", "比", "我", "高"], ["he", "is", "taller", "than", "me"]
    links = [(0, 0, True), (3, 2, True), (3, 1, False), (1, 3, True), (2, 4, True)]
    assert function_word_links(chinese, english, links) == [(1, 1, False)]


def test_be_with_a_counterpart_stays_with_it():
    assert added("他 是 最 高 的", "he is the tallest", [(0, 0), (1, 1), (3, 3)]) == set()


def test_the_article_goes_with_what_makes_its_noun_definite():
    chinese, english = ["他", "把", "书", "丢", "了"], ["he", "lost", "the", "book"]
    links = [(2, 3, True), (2, 2, False), (3, 1, True)]
    assert function_word_links(chinese, english, links) == [(1, 2, False)]


def test_conjunctions_in_two_parts_share_their_english():
    found = added("他 又 高 又 瘦", "he is both tall and thin", [(1, 2), (3, 4)])
    assert found == {("又", "both"), ("又", "and")}


def test_a_closing_mark_goes_with_a_closing_particle():
    assert added("多 美 啊 ！", "how beautiful !", [(0, 0), (1, 1), (3, 2)]) == {("啊", "!")}
