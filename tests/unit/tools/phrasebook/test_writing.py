"""The file of the phrasebook: made again from the grammar, it is the one that ships."""

import lzma

from tools.phrasebook.corpus import draw
from tools.phrasebook.grammar import build, word
from tools.phrasebook.surface import finish
from tools.phrasebook.writing import compressed, contents

from regard.text.phrasebook import FILE


def test_the_file_that_ships_is_what_the_grammar_writes():
    # The text and not the file: another liblzma may write other bytes of the same text.
    assert lzma.decompress(FILE.read_bytes()) == contents(draw())


def test_a_line_has_the_words_and_the_links_of_a_pair():
    who = word("汤姆", "Tom")
    phrase = finish(build("{who} 的#of 书#book", "{who} 's#of book#book", who=who, name="owned"))
    assert contents({"valid": [phrase]}).decode() == (
        "valid\t汤姆|的|书|。\tTom's book|.\t0-0 2-1 3-2\t1-0\towned\n"
    )


def test_a_text_is_compressed_to_the_same_bytes_each_time():
    text = b"train\t" * 100
    assert compressed(text) == compressed(text)
    assert lzma.LZMADecompressor().decompress(compressed(text)) == text


def test_the_compressed_file_carries_its_sha256():
    reader = lzma.LZMADecompressor()
    reader.decompress(FILE.read_bytes())
    assert reader.check == lzma.CHECK_SHA256
