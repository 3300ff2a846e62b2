"""Messages of gettext are pairs; subtitles and markup are refused with the way out."""

import pytest

from regard.errors import DataError
from regard.text import BadLines, read_lines, read_pairs
from regard.text.reading.foreign import UNTRANSLATED

MESSAGES = r"""# German
msgid ""
msgstr ""
"Language: de\n"

#: a.c:1
msgctxt "menu"
msgid "Open \"it\""
msgstr "„Es“ öffnen"
#, fuzzy, c-format
msgid "Close"
msgstr "Zu"

msgid ""
"A long "
"line\n"
msgstr "Eine lange Zeile\n"

msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d Datei"
msgstr[1] "%d Dateien"

msgid "Nothing"
msgstr ""

#~ msgid "Old"
#~ msgstr "Alt"
"""


def test_messages_are_pairs_and_fuzzy_or_missing_ones_are_left_out(write):
    bad_lines = BadLines()
    pairs = list(read_pairs(write("de.po", MESSAGES), bad_lines=bad_lines))
    assert [(pair.source, pair.target) for pair in pairs] == [
        ('Open "it"', "„Es“ öffnen"),
        ("A long line", "Eine lange Zeile"),
        ("%d file", "%d Datei"),
        ("%d files", "%d Dateien"),
    ]
    assert bad_lines.counts == {UNTRANSLATED: 2}


SUBTITLES = {
    "a.srt": "{n}\n00:00:0{n},000 --> 00:00:0{n},900\nHello {n}.\nAgain.\n\n",
    "a.vtt": "00:0{n}.000 --> 00:0{n}.900\nHello {n}.\n\n",
    "a.ass": "Dialogue: 0,0:00:0{n}.00,0:00:0{n}.90,Default,,0,0,0,,Hello {n}.\n",
    "a.sub": "{{{n}0}}{{{n}9}}Hello {n}.\n",
}


@pytest.mark.parametrize("name", SUBTITLES)
def test_subtitles_are_refused_however_they_are_read(name, write):
    cure = r"Take them out.* > a-text\.txt" if "-->" in SUBTITLES[name] else "Save their text"
    path = write(name, "".join(SUBTITLES[name].format(n=n) for n in range(1, 9)))
    for read in (read_lines, lambda file: read_pairs(file, write("b.txt", "x\n"))):
        with pytest.raises(DataError, match=rf"got subtitles, .* {cure}"):
            list(read(path))


def test_markup_is_no_side_of_pairs(write):
    page = write("a.xml", "<?xml version='1.0'?>\n<p>Hello</p>\n")
    with pytest.raises(DataError, match=r"a\.xml must hold running text; got markup"):
        list(read_pairs(page, write("b.txt", "x\ny\n")))
