"""Pages on every public name, from the packages' own lists."""

import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from tools.website import source

# What each package is, in both languages. A package with a list of public names has to be here, or
# in a row of `PARTS`.
PACKAGES: dict[str, tuple[str, str]] = {
    "regard": ("the door: all that most people need", "入口：常用的都在这里"),
    "regard.attention": ("the engine", "注意力引擎"),
    "regard.attention.scores": ("how a query and a key match", "打分函数：查询与键有多匹配"),
    "regard.attention.masks": ("which keys a query may look at", "掩码：查询可以看哪些键"),
    "regard.attention.testing": ("checks of attention, anyone's", "检查注意力：自己的、别人的"),
    "regard.layers": ("modules that own weights", "层：带参数的模块"),
    "regard.models": ("architectures", "模型架构"),
    "regard.runtime": ("models packed for fast use on a CPU", "为 CPU 推理打包好的模型"),
    "regard.decoding": ("searches and samples", "搜索与采样"),
    "regard.text": ("readers, tokenizers, batches", "读取、分词、批量"),
    "regard.metrics": ("public metrics", "公开的评价指标"),
    "regard.tasks": ("jobs, and recipes for them", "任务与配方"),
    "regard.training": ("from text to a run folder", "从文本到运行文件夹"),
    "regard.inference": ("a run in use", "使用训练好的运行"),
    "regard.inference.bulk": ("answers to any number of files", "回答任意多个文件"),
    "regard.interop": ("torch's own modules and Hugging Face", "torch 自带的模块与 Hugging Face"),
    "regard.viewer": ("pages and pictures of attention", "注意力的网页与图"),
    "regard.runs": ("the run folder", "运行文件夹"),
    "regard.export": ("runs in other forms", "导出成别的形式"),
    "regard.server": ("runs over HTTP", "HTTP 服务"),
    "regard.devices": ("CPU and GPU", "CPU 与 GPU"),
    "regard.cli": ("the command line, from Python", "在 Python 里调用命令行"),
}
# Packages that are parts of another's page.
PARTS = {
    "regard.tasks": (
        "labels.classification",
        "labels.image_classification",
        "labels.regression",
        "labels.sentence_extraction",
        "labels.tagging",
        "questions.multiple_choice",
        "questions.pair_matching",
        "questions.question_answering",
        "questions.sentence_selection",
        "running_text.language_modelling",
        "running_text.masked_language_modelling",
        "sequences.generation",
        "sequences.translation",
    )
}
# Words of these pages, in both languages.
_PYTHON = ("Python", "Python 接口")
_INTRO = (
    "Every public name, with its shapes, errors and an example; examples are run by tests. "
    "The letters of shapes are those of the [glossary](../glossary.md).",
    "全部公开的名字，连同形状、错误和示例；点开名字，就到英文参考里的那一条，示例都由测试跑过。"
    "形状所用的字母见[术语表](../glossary.md)。",
)
_COLUMNS = ("| package | what it is | names |", "| 包 | 用途 | 名字个数 |")
_NAMES = ("| name | what you get | source |", "| 名字 | 说明（英文） | 源码 |")


def pages() -> dict[str, str]:
    """The pages of Python names by their places, English and Chinese."""
    found = {}
    for number, ending in enumerate((".md", ".zh.md")):
        found[f"reference/python{ending}"] = _overview(number)
        for package in PACKAGES:
            found[f"{place(package)}{ending}"] = _page(package, number)
    return found


def place(package: str) -> str:
    """Where a package's page is, without its ending."""
    return f"reference/{package}"


def documented() -> list[str]:
    """Every package whose names are shown, on a page of its own or on another's."""
    parts = [f"{package}.{part}" for package, names in PARTS.items() for part in names]
    return [*PACKAGES, *parts]


def public(package: str) -> list[str]:
    """The names that a package's list has and no package above it shows already."""
    return sorted(getattr(import_module(package), "__all__", []), key=_by_kind)


def home(package: str, name: str) -> str:
    """The package whose page explains a name: the nearest to where it is made."""
    value = getattr(import_module(package), name)
    made = getattr(value, "__module__", "") if _is_explained(value) else package
    for candidate in sorted(documented(), key=len, reverse=True):
        is_there = candidate == made or made.startswith(f"{candidate}.")
        if is_there and name in public(candidate):
            return candidate
    return package


def _overview(language: int) -> str:
    rows = [
        f"| [`{package}`]({package}.md) | {said[language]} | {len(public(package))} |"
        for package, said in PACKAGES.items()
    ]
    head = [
        f"# {_PYTHON[language]}",
        "",
        _INTRO[language],
        "",
        _COLUMNS[language],
        "|---|---|---:|",
    ]
    return "\n".join([*head, *rows, ""])


def _page(package: str, language: int) -> str:
    title = f"# `{package}`: {PACKAGES[package][language]}"
    lines = [title.replace(": ", "：") if language else title, ""]
    for part in (package, *(f"{package}.{name}" for name in PARTS.get(package, ()))):
        if part != package:
            lines += [f"## `{part}`", ""]
        lines += [import_module(part).__doc__ or "", ""]
        rows = [_row(part, name, language) for name in public(part)]
        lines += [_NAMES[language], "|---|---|---|", *rows, ""]
        if not language:  # docstrings are English: Chinese pages lead to them
            lines += [line for name in public(part) for line in _explained(part, name)]
    return "\n".join(lines)


def _row(package: str, name: str, language: int) -> str:
    value = getattr(import_module(package), name)
    first = (inspect.getdoc(value) or "").partition("\n")[0] if _is_explained(value) else ""
    file = f"src/{getattr(value, '__module__', None) or package}".replace(".", "/") + ".py"
    words = Path(file).name
    is_there = _is_explained(value) and (source.ROOT / file).is_file()
    made = source.link(file, language, words, name=value.__name__, depth=1) if is_there else ""
    said = first.replace("|", "&#124;")
    return f"| [`{name}`][{home(package, name)}.{name}] | {said} | {made} |"


def _explained(package: str, name: str) -> Iterator[str]:
    if home(package, name) == package:
        level = 3 if package.count(".") > 1 and package not in PACKAGES else 2
        yield from (f"::: {package}.{name}", "    options:", f"      heading_level: {level}", "")


def _is_explained(value: object) -> bool:
    return inspect.isclass(value) or inspect.isfunction(value)


def _by_kind(name: str) -> tuple[bool, bool, str]:
    return not name.isupper(), not name[:1].isupper(), name
