"""The course and the tutorials are run from top to bottom, and print what they say they print."""

import ast
import json
import re
import shlex
import shutil
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from pathlib import Path

import pytest
from tests.end_to_end.fresh_python import process
from tools.notebooks import DOCS, notebook, pages

pytestmark = pytest.mark.slow

NAMES = [str(page.relative_to(DOCS)) for page in pages()]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def text_of(name):
    return (DOCS / name).read_text("utf-8")


def blocks(name):
    return BLOCK.findall(text_of(name))


@pytest.fixture
def home(run, tmp_path, monkeypatch):
    """A folder with a run by the name of the translator that comes with the package."""
    shutil.copytree(run, tmp_path / "tatoeba-zh-en")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(printed, expected):
    flags = ELLIPSIS | NORMALIZE_WHITESPACE
    assert OutputChecker().check_output(expected, printed, flags), (
        f"{expected}\n--- but said\n{printed}"
    )


def run_command(line, regard):
    piped, _, command = line.removeprefix("!").rpartition("|")
    words = shlex.split(command)
    assert words.pop(0) == "regard"
    stdin = shlex.split(piped)[1].encode() + b"\n" if piped else b""
    done = regard(*words, stdin=stdin)
    assert done.code == 0, done
    return done.out


def run_cell(source, name, python, regard):
    """Do what a notebook does with a cell of code; what it prints."""
    if source.startswith("!"):
        return run_command(source, regard)
    if source.startswith("%%writefile "):
        first, _, content = source.partition("\n")
        Path(first.removeprefix("%%writefile ")).write_text(content, "utf-8")
        return ""
    return python.run(source, name)


def code_cells(name):
    notebook_cells = json.loads(notebook(text_of(name)))
    return [cell for cell in notebook_cells["cells"] if cell["cell_type"] == "code"]


def different_programs():
    """The pages, without those whose other language has the same code but for comments."""
    programs, names = set(), []
    for name in NAMES:
        program = []
        for cell in code_cells(name):
            source = "".join(cell["source"])
            is_python = not source.startswith(("!", "%%"))
            program.append((ast.dump(ast.parse(source)) if is_python else source, *cell["outputs"]))
        if (text := repr(program)) not in programs:
            programs.add(text)
            names.append(name)
    return names


@pytest.mark.parametrize("name", different_programs())
def test_a_tutorial_does_what_it_says_as_a_notebook(name, regard, home):
    code = code_cells(name)
    assert len(code) == sum(kind != "text" for kind in commands_and_code(name))
    with process() as python:
        for cell in code:
            printed = run_cell("".join(cell["source"]), name, python, regard)
            for output in cell["outputs"]:
                check(printed, "".join(output["text"]))


def commands_and_code(name):
    counts = [(kind, content.count("$ ") or 1) for kind, content in blocks(name)]
    return [kind for kind, count in counts for _ in range(count if kind == "console" else 1)]


def test_a_wrong_output_would_be_found():
    check("a  1.23\nb\n", "a 1...\nb\n")
    with pytest.raises(AssertionError, match="but said"):
        check("a\n", "b\n")


def test_each_is_there_in_both_languages_with_the_same_code():
    english = [name for name in NAMES if not name.endswith(".zh.md")]
    assert [name.replace(".md", ".zh.md") for name in english] == [
        name for name in NAMES if name not in english
    ]
    assert len(english) == 14
    for name in english:
        kinds, others = ([kind for kind, _ in blocks(each)] for each in (name, _chinese(name)))
        assert kinds == others


@pytest.mark.parametrize("name", NAMES)
def test_links_and_pictures_are_there(name):
    for target in re.findall(r"\]\(([^)#]+)\)", text_of(name)):
        assert "://" in target or (DOCS / name).parent.joinpath(target).is_file(), target


def _chinese(name):
    return name.replace(".md", ".zh.md")
