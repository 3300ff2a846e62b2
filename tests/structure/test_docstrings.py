"""Names in docstrings exist, and no figure stands there that a record would outlive."""

import ast
import builtins
import importlib
import re
import sys
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path

from regard import models
from regard.tasks import DecodingConfig
from regard.tasks.settings import data
from regard.text import TokenizerConfig
from regard.training import TrainingConfig

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "regard"
FILES = sorted(PACKAGE.rglob("*.py"))

# Names of the world that no code here spells, and letters of formulas.
WORLD = {
    "Host",
    "conlleval",
    "torchrun",
    "vmap",
    "grad",
    "jacrev",
    "jvp",
    "attn_implementation",
} | {
    *("set_attn_implementation", "from_pretrained", "Literal", "as", "arange"),
    *("c_i", "q_j", "e", "j", "t", "TEXT"),
}


def _settings(*kinds):
    return {field.name for kind in kinds for field in fields(kind)}


SECTIONS = {
    "data": _settings(*(kind for kind in vars(data).values() if is_dataclass(kind))),
    "decoding": _settings(DecodingConfig),
    "model": {"type"}.union(
        *(_settings(getattr(models, name)) for name in models.__all__ if name.endswith("Config"))
    ),
    "tokenizer": _settings(TokenizerConfig),
    "training": _settings(TrainingConfig),
}

_QUOTED = re.compile(r"``([^`]+)``")
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(\(\))?")
_FILE = re.compile(r"[\w./-]+\.(css|html|js|json|jsonl|md|py|safetensors|toml|tsv|txt|xz)")
_FIGURE = re.compile(
    r"(?i)(\d[\d.,]*|half|twice|third|quarter|fortieth|two|three|four|five|six|seven|ten) ?"
    r"(times (as|the speed|faster|slower|smaller)|× (as|the)|(%|of the) ?(time|speed))"
    r"|\d[\d.,]* ?(µs|ms)\b"
)


def docstrings(tree):
    """Every docstring of a module, with the line where its owner begins."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), " ".join(text.split())


@cache
def tree_of(file):
    return ast.parse(file.read_text("utf-8"))


@cache
def defined():
    """Names that the package defines in any module: classes, functions, attributes, words."""
    names = set(dir(builtins)) | set(sys.stdlib_module_names)
    for file in FILES:
        tree = tree_of(file)
        names.update(file.relative_to(PACKAGE).with_suffix("").parts)
        for node in ast.walk(tree):
            match node:
                case ast.FunctionDef(name="__init__", args=arguments):
                    names.update(each.arg for each in (*arguments.args, *arguments.kwonlyargs))
                case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                    names.add(name)
                case ast.Attribute(value=ast.Name(id="self"), attr=name):
                    names.add(name)
                case ast.Constant(value=str() as word) if word.isidentifier():
                    names.add(word)
                case ast.AnnAssign(target=ast.Name(id=name)):
                    names.add(name)
        for node in tree.body:
            if isinstance(node, ast.Assign):
                names.update(each.id for each in node.targets if isinstance(each, ast.Name))
    return names


@cache
def spelled(file):
    """Every identifier in the code of a module."""
    fields = ("id", "attr", "arg", "name", "asname", "module")
    values = [getattr(node, each, None) for node in ast.walk(tree_of(file)) for each in fields]
    return {part for value in values if isinstance(value, str) for part in value.split(".")}


@cache
def rooms():
    """The parts of the package, and of its first room, which docstrings name without it."""
    folders = (PACKAGE, PACKAGE / "attention")
    paths = [path for folder in folders for path in folder.iterdir()]
    return {path.stem for path in paths if path.suffix == ".py" or (path / "__init__.py").exists()}


def resolves(path):
    """Whether a dotted path can be imported, or is an attribute of what can."""
    *parents, last = path.split(".")
    try:
        owner = importlib.import_module(path)
    except ImportError:
        if not parents:
            return False
        try:
            owner = importlib.import_module(".".join(parents))
        except ImportError:
            return len(parents) > 1 and _is_of_class(parents, last)
        return hasattr(owner, last)
    return owner is not None


def _is_of_class(parents, last):
    try:
        kind = getattr(importlib.import_module(".".join(parents[:-1])), parents[-1])
    except (ImportError, AttributeError):
        return False
    return hasattr(kind, last) or last in getattr(kind, "__annotations__", {})


def is_there(name, file):
    """Whether a name of a docstring is of the code, a setting, a library or the world."""
    first, *rest = parts = name.removesuffix("()").split(".")
    if name in WORLD or first in WORLD:
        return True
    if not rest:
        return first in spelled(file) or first in defined()
    section, setting = parts[0], parts[-1]
    if len(parts) == 2 and section in SECTIONS:
        own = section in spelled(file) and setting in spelled(file) | defined()
        return own or setting in SECTIONS[section] or resolves(f"regard.{name}")
    if first in rooms():
        return resolves(f"regard.{name}") or resolves(f"regard.attention.{name}")
    if first == "regard":
        return resolves(name)
    is_spelled = all(part in spelled(file) or part in defined() for part in parts)
    return is_spelled or resolves(name)  # of a library


@cache
def files():
    """The paths of the repository from its folders and from the package's, and their names."""
    paths = [path for top in ("src", "docs", "benchmarks") for path in (ROOT / top).rglob("*")]
    return {path.relative_to(ROOT).as_posix() for path in paths if path.is_file()}


def is_file(name):
    """Whether a file of that name is in the repository, or the code writes or reads one."""
    if any(path == name or path.endswith(f"/{name}") for path in files()):
        return True
    return name in words()


@cache
def words():
    """Strings in the code that are one word."""
    nodes = [node for file in FILES for node in ast.walk(tree_of(file))]
    strings = (node.value for node in nodes if isinstance(node, ast.Constant))
    return {text for text in strings if isinstance(text, str) and " " not in text}


def test_names_in_docstrings_are_there():
    stale = []
    for file in FILES:
        for line, text in docstrings(tree_of(file)):
            for name in _QUOTED.findall(text):
                if _FILE.fullmatch(name):
                    is_stale = not is_file(name)
                else:
                    is_stale = _NAME.fullmatch(name) and not is_there(name, file)
                if is_stale:
                    stale.append(f"{file.relative_to(PACKAGE)}:{line}: {name}")
    assert stale == []


def test_a_stale_name_is_noticed():
    file = PACKAGE / "attention" / "attend.py"
    there = ["attend", "regard.attention.call.plan", "kernels.attention.dot", "training.minutes"]
    gone = ["attended", "regard.attention.plan", "kernels.dot", "training.minuets", "scores.dott"]
    assert [is_there(name, file) for name in there] == [True] * len(there)
    assert [is_there(name, file) for name in gone] == [False] * len(gone)
    assert is_file("benchmarks/records/attention.json")
    assert not is_file("benchmarks/records/attention.jsn")


def test_rooms_that_the_guide_names_are_there():
    guide = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    table = re.findall(r"^\| (`.+?) \|", guide.partition("## Adding something")[0], re.MULTILINE)
    named = [name for row in table for name in re.findall(r"`([^`]+)`", row)]
    inner = guide.partition("`attention` has rooms of its own:")[2].partition(". ")[0]
    named += [f"attention.{name}" for name in re.findall(r"`([a-z_]+)`", inner)]
    assert len(named) > 30
    assert [name for name in named if not resolves(f"regard.{name}")] == []


def test_docstrings_hold_no_figure_of_speed():
    held = []
    for file in [*FILES, *sorted((ROOT / "tools").rglob("*.py"))]:
        for line, text in docstrings(tree_of(file)):
            if found := _FIGURE.search(text):
                held.append(f"{file.relative_to(ROOT)}:{line}: {found[0]}")
    assert held == []
