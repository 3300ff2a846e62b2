"""How-tos and the other pages: files can be read as they are shown, and commands can be typed."""

import re
import shlex
from contextlib import suppress
from pathlib import Path

import pytest
from cyclopts.exceptions import MissingArgumentError

from regard.cli import run_command
from regard.cli.app import app

DOCS = Path(__file__).parents[3] / "docs"
HOW_TOS = sorted((DOCS / "how-to").glob("*.md"))
PAGES = [*sorted(DOCS.rglob("*.md")), *(DOCS.parent.glob("README*.md"))]

_FILE = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```', re.DOTALL | re.MULTILINE)
_SHELL = re.compile(r"^```(?:bash|sh|console)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_SAID = re.compile(r"`(regard [^`]+)`")
# What stands for something of the reader's.
_LEFT_OUT = re.compile(r"…|\.\.\.$|\bCOMMAND\b")


def typed(text):
    """The lines of a page that are to be typed into a shell."""
    blocks = [block.replace("\\\n", "") for block in _SHELL.findall(text)]  # continued lines
    lines = [line for block in blocks for line in block.splitlines()]
    return [line.removeprefix("$ ") for line in lines if "regard" in line]


def commands(text):
    """The words of every ``regard`` command of a page, in blocks and in its sentences."""
    command_words = [regard_of(line) for line in [*typed(text), *_SAID.findall(text)]]
    return [words for words in command_words if words and not _LEFT_OUT.search(" ".join(words))]


def regard_of(line):
    """The words after ``regard`` of a line of shell, a pipe and settings before it left out."""
    words = shlex.split(line, comments=True)
    words = words[words.index("|") + 1 :] if "|" in words else words
    words = [word for word in words if not re.fullmatch(r"[A-Z_]+=\w+", word)]
    return words[1:] if words[:1] == ["regard"] else []


@pytest.mark.parametrize("page", HOW_TOS, ids=lambda page: page.name)
def test_a_file_can_be_read_as_it_is_shown(page, tmp_path, capsys):
    text = page.read_text("utf-8")
    ((name, content),) = _FILE.findall(text)
    (tmp_path / name).write_text(content, "utf-8")
    recipes = [words for words in commands(text) if words[0] == "train" and name in words]
    assert recipes
    for words in recipes:
        if "--pretrained" in words:  # which guesses, from more rows than these
            continue
        # Sentence pairs are looked at without a recipe.
        recipe = [] if name == "pairs.tsv" and "translation" in page.name else words[1:2]
        code = run_command(["data", "check", *recipe, str(tmp_path / name)])
        captured = capsys.readouterr()
        assert code in (0, 1), captured.err
        assert "cannot be read" not in captured.out


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS.parent)))
def test_every_command_has_the_options_that_it_is_given(page):
    text = page.read_text("utf-8")
    for words in commands(text):
        # What a sentence says of a command may leave out the run; a line to type may not.
        with suppress(*(() if words in map(regard_of, typed(text)) else (MissingArgumentError,))):
            app.parse_args(words, exit_on_error=False, print_error=False)


def test_both_languages_show_the_same_file_and_commands():
    for page in HOW_TOS:
        if not page.name.endswith(".zh.md"):
            texts = [each.read_text("utf-8") for each in (page, page.with_suffix(".zh.md"))]
            assert _FILE.findall(texts[0]) == _FILE.findall(texts[1])
            commands_of = [[regard_of(line) for line in typed(text)] for text in texts]
            assert commands_of[0] == commands_of[1]
