"""Everything that pages say stands in tables, in English and in Chinese."""

import json
import re
from pathlib import Path

import pytest

from regard.tasks import TASKS

ROOT = Path(__file__).parents[3]
STATIC = ROOT / "src" / "regard" / "viewer" / "static"
SERVED = ROOT / "src" / "regard" / "server" / "static"
MODULES = sorted(file for folder in (STATIC, SERVED) for file in folder.rglob("*.js"))
TABLES = [file for file in MODULES if file.name in ("strings.js", "phrases.js")]
READERS = [file for file in MODULES if file not in TABLES]
HOLES = re.compile(r"\{(\w+)\}")
CHINESE = re.compile("[\u4e00-\u9fff]")
# Signs between names, and numbers.
SIGNS = {"sentence.gap", "list.comma", "scale.one"}


def table():
    text = "".join(file.read_text("utf-8") for file in TABLES)
    lines = re.findall(r'^  ("[\w.-]+": \[.*\]),$', text, re.MULTILINE)
    keys = [json.loads(f"{{{line}}}").popitem()[0] for line in lines]
    assert len(keys) == len(set(keys)) > 200
    return json.loads("{" + ",".join(lines) + "}")


def phrases():
    text = (STATIC / "page" / "strings.js").read_text("utf-8").partition("export const PHRASES")[2]
    return [json.loads(line) for line in re.findall(r"^  (\[.*\]),$", text, re.MULTILINE)]


@pytest.mark.parametrize("key", table())
def test_every_key_has_english_and_chinese(key):
    english, chinese = table()[key]
    sides = {"source", "output"}  # which Chinese alone names
    assert set(HOLES.findall(english)) - sides == set(HOLES.findall(chinese)) - sides
    is_other = key.startswith("language.")  # the button of the other language
    assert bool(CHINESE.search(english)) == is_other
    is_signs = key in SIGNS or not re.search("[a-z]", HOLES.sub("", english))
    assert bool(CHINESE.search(chinese)) != is_other or is_signs


def test_sentences_of_python_have_the_same_holes_in_both():
    for english, chinese in phrases():
        assert HOLES.findall(english) == sorted(HOLES.findall(chinese), key=english.index)
        assert CHINESE.search(chinese)


def test_every_task_has_a_name_in_chinese():
    assert {name.replace("_", " ") for name in TASKS} <= {english for english, _ in phrases()}


def test_every_key_is_used_and_every_key_used_is_there():
    text = "".join(file.read_text("utf-8") for file in READERS)
    text += (SERVED / "inspector.html").read_text("utf-8")
    used = set(re.findall(r'\bt\("([^"]+)"', text)) | set(re.findall(r'data-says="([^"]+)"', text))
    strings = table()
    assert used <= set(strings)
    dynamic = set(re.findall(r"`([a-z.-]+\.)\$\{", text))  # such as t(`kind.${kind}`)
    words = set(re.findall(r'"([\w.-]+)"', text))  # chosen among, such as t(isOne ? "a" : "b")
    for key in set(strings) - used - words:
        assert any(map(key.startswith, dynamic)) or key.endswith(".says"), key


# Literals that people see begin with a capital or hold words; those of programs are names, keys,
# selectors, styles, and the headings of a CSV file, which other programs read.
PROSE = re.compile(r"[A-Z][a-z]+ [a-z]+|\b[a-z]{2,} [a-z]{2,} [a-z]{2,}\b")
NAMES = {"output so far", "queries and keys", "A man is reading a book."}  # the last is to be read
PROGRAM = re.compile(
    r"columns|class:|className|querySelector|content-|font|policy|addEventListener|^import|"
    r"\bmatches\(|case |throw|FONT|getContext|\bd:|path:|http|application/|text/"
)


@pytest.mark.parametrize("file", READERS, ids=lambda file: file.name)
def test_no_module_says_anything_of_its_own(file):
    text = re.sub(r"/\*[\s\S]*?\*/|(?<![:\"'`\w])//.*", "", file.read_text("utf-8"))
    for line in text.splitlines():
        if PROGRAM.search(line):
            continue
        for literal in re.findall(r'"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`', line):
            prose = re.sub(r"\$\{[^}]*\}", "", "".join(literal))
            assert prose in NAMES or not PROSE.search(prose), (
                f"{file.name}: {prose!r} must stand in strings.js"
            )
        for name in ("title", "aria-label", "placeholder", "aria-roledescription", "textContent"):
            attribute = re.search(rf'{name}"?(?::| =) "([^"]*[A-Za-z]{{2}}[^"]*)"', line)
            assert attribute is None, (
                f"{file.name}: {attribute and attribute[1]!r} must stand in strings.js"
            )
