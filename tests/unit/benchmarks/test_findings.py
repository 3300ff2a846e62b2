"""Pages of findings have their numbers from the records, in both languages alike."""

import re

from benchmarks import findings, measuring, occasion, tables


def test_a_block_stands_between_its_marks():
    page = "before\n<!-- record: one -->\nold\n<!-- end -->\nafter\n"
    filled = findings.filled(page, {"one": ("new", "新")}, 1)
    assert filled == "before\n<!-- record: one -->\n新\n<!-- end -->\nafter\n"
    assert findings.filled(filled, {"one": ("new", "新")}, 0).count("new") == 1


def test_both_languages_have_the_same_blocks_and_none_is_left_out():
    made, named = findings.blocks(measuring.read_records()), set()
    for english, chinese in zip(findings.PAGES[::2], findings.PAGES[1::2], strict=True):
        names = [
            re.findall(r"<!-- record: ([\w-]+) -->", (occasion.ROOT / page).read_text("utf-8"))
            for page in (english, chinese)
        ]
        assert names[0] == names[1]
        named |= set(names[0])
    assert named == made.keys()


def test_sentences_have_the_same_numbers_in_both_languages_and_none_typed_by_hand():
    for name, says in findings.SENTENCES.items():
        numbers = [set(re.findall(r"{(\w+?)(?:_zh)?}", each)) for each in (says["en"], says["zh"])]
        assert numbers[0] == numbers[1], name
        typed = re.sub(r"{.*?}|50\s%|10 (?:to|%)", "", says["en"])
        assert not tables.NUMBER.findall(typed), name
